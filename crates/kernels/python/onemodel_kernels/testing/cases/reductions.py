"""Cases of reductions, arg-reductions, running sums and softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import booleans, empty, integers, normal

_ONCE = bound(ulp=1.0, why="summed in f64 and rounded once")
_TWO_ULP = bound(ulp=2.0, absolute=1e-6, why="sums and an elementary function")
_ROWS = bound(ulp=24.0, absolute=1e-7, why="x - max is rounded before e^x")
_GRADIENT = bound(scaled=1e-6, absolute=1e-6, why="several roundings and cancellation")
_LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "all": ((3, 50), None),
    "rows": ((40, 33), (1,)),
    "columns": ((33, 40), (0,)),
    "middle": ((4, 37, 6), (1,)),
    "channels": ((3, 5, 7, 9), (0, 2, 3)),
    "ends": ((6, 9, 20), (0, -1)),
    "one": ((5, 1), (1,)),
    "long": ((2, 3000), (-1,)),
    "short": ((70, 10), (1,)),
    "turned": ((100, 32), (1,)),
    "pairs": ((1000, 2), (1,)),
    "wide": ((37, 1100), (0,)),
    "deep": ((300, 24), (0,)),
    "planes": ((3, 70, 40), (1,)),
}
Function = Callable[..., Tensor]


def _norm(x: Tensor, **how: Any) -> Tensor:
    return np.asarray(np.sqrt(np.sum(x * x, **how)))


def _log_sum_exp(x: Tensor, **how: Any) -> Tensor:
    return np.asarray(np.log(np.sum(np.exp(x), **how)))


_FLOATS: dict[str, tuple[Function, Any]] = {
    "ReduceSum": (np.sum, _ONCE),
    "ReduceMean": (np.mean, _ONCE),
    "ReduceMax": (np.max, bound()),
    "ReduceMin": (np.min, bound()),
    "ReduceProd": (np.prod, _ONCE),
    "ReduceL1": (lambda x, **how: np.sum(np.abs(x), **how), _ONCE),
    "ReduceL2": (_norm, _ONCE),
    "ReduceSumSquare": (lambda x, **how: np.sum(x * x, **how), _ONCE),
    "ReduceLogSumExp": (_log_sum_exp, _TWO_ULP),
}


def _reductions() -> Iterator[Case]:
    for name, (function, limit) in _FLOATS.items():
        for layout, (shape, axes) in _LAYOUTS.items():
            for keep in (0, 1):
                yield Case(
                    f"{name}-{layout}-{keep}",
                    name,
                    (normal(*shape, seed=1),),
                    lambda x, f=function, a=axes, k=keep: f(x, axis=a, keepdims=bool(k)),
                    {"keepdims": keep} if axes is None else {"axes": axes, "keepdims": keep},
                    limit,
                )
    for name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"):
        whole = integers(12, 19, seed=2)
        function = _FLOATS[name][0]
        yield Case(
            f"{name}-int64",
            name,
            (whole,),
            lambda x, f=function: f(x, axis=0),
            {"axes": (0,), "keepdims": 0},
        )
    positive = np.abs(normal(6, 40, seed=3)) + 1
    yield Case(
        "ReduceLogSum",
        "ReduceLogSum",
        (positive,),
        lambda x: np.log(np.sum(x, axis=1)),
        {"axes": (1,), "keepdims": 0},
        _ONCE,
    )
    truths = booleans(7, 9, seed=4)
    rows = {"axes": (1,), "keepdims": 0}
    yield Case("ReduceAny", "ReduceAny", (truths,), lambda x: x.any(1), rows, onnx=False)
    yield Case("ReduceAll", "ReduceAll", (truths,), lambda x: x.all(1), rows, onnx=False)
    nothing = {"axes": (0,), "keepdims": 0}
    yield Case("ReduceSum-empty", "ReduceSum", (empty(0, 3),), lambda x: x.sum(0), nothing)
    yield Case("ReduceProd-empty", "ReduceProd", (empty(0, 3),), lambda x: x.prod(0), nothing)
    missing = normal(3, 20, seed=5)
    missing[1, 7] = np.nan
    rows = {"axes": (1,), "keepdims": 0}
    # ONNX Runtime ignores NaN in extrema.
    yield Case("ReduceMax-nan", "ReduceMax", (missing,), lambda x: x.max(1), rows, onnx=False)
    yield Case("ReduceMin-nan", "ReduceMin", (missing,), lambda x: x.min(1), rows, onnx=False)
    zeros = np.zeros((4, 40), np.float32)
    zeros[1] = -0.0
    zeros[2, 1::2] = -0.0
    zeros[3] = -np.inf
    yield Case("ReduceMax-zeros", "ReduceMax", (zeros,), _greatest, rows, onnx=False)
    upside = {"axes": (0,), "keepdims": 0}
    yield Case(
        "ReduceMin-zeros", "ReduceMin", (-zeros.T,), lambda x: -_greatest(-x.T), upside, onnx=False
    )
    for shape, target in (((4, 5, 6), (5, 1)), ((4, 5, 6), (6,)), ((2, 3, 8, 8), (1, 3, 1, 1))):
        name = "x".join(map(str, target))
        yield Case(
            f"SumTo-{name}",
            "SumTo",
            (normal(*shape, seed=6),),
            lambda x, t=target: _sum_to(x, t),
            {"shape": target},
            _ONCE,
            onnx=False,
        )


def _greatest(x: Tensor) -> Tensor:
    """The maxima of rows, where +0.0 is above -0.0."""
    found = x.max(1)
    positive = ((x == 0) & ~np.signbit(x)).any(1)
    return np.where((found == 0) & positive, 0.0, found)


def _sum_to(x: Tensor, target: tuple[int, ...]) -> Tensor:
    lead = x.ndim - len(target)
    axes = tuple(a for a in range(x.ndim) if a < lead or target[a - lead] == 1 != x.shape[a])
    return np.asarray(x.sum(axes).reshape(target))


def _places() -> Iterator[Case]:
    x = np.round(normal(6, 21, seed=7, scale=2.0))
    for axis in (0, 1, -1):
        for name, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            yield Case(
                f"{name}-{axis}",
                name,
                (x,),
                lambda x, f=function, a=axis: f(x, axis=a).astype(np.int64),
                {"axis": axis, "keepdims": 0},
            )
    yield Case(
        "ArgMax-last",
        "ArgMax",
        (x,),
        lambda x: (x.shape[1] - 1 - np.argmax(x[:, ::-1], axis=1)).astype(np.int64),
        {"axis": 1, "keepdims": 0, "select_last_index": 1},
    )
    tall = np.round(normal(70, 20, 33, seed=13, scale=2.0))
    tall[3, 4, 5] = tall[3, 9, 5] = np.nan
    tall[5, :, 6] = -0.0
    tall[5, 7, 6] = 0.0
    for axis in (0, 1, 2):
        for name, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            yield Case(
                f"{name}-tall-{axis}",
                name,
                (tall,),
                lambda x, f=function, a=axis: f(x, axis=a).astype(np.int64),
                {"axis": axis, "keepdims": 0},
                # ONNX Runtime has its own idea of NaN.
                onnx=False,
            )
    clean = np.nan_to_num(tall, nan=1.0)
    yield Case(
        "ArgMin-tall-last",
        "ArgMin",
        (clean,),
        lambda x: (x.shape[0] - 1 - np.argmin(x[::-1], axis=0)).astype(np.int64),
        {"axis": 0, "keepdims": 0, "select_last_index": 1},
    )
    running = normal(4, 30, 5, seed=8)
    for axis in (0, 1, 2):
        yield Case(
            f"CumSum-{axis}",
            "CumSum",
            (running,),
            lambda x, a=axis: np.cumsum(x, axis=a),
            {"axis": axis},
            _ONCE,
        )
    yield Case(
        "CumSum-rows",
        "CumSum",
        (normal(21, 37, seed=14),),
        lambda x: np.cumsum(x[:, ::-1].astype(np.float64), axis=1)[:, ::-1],
        {"axis": 1, "reverse": 1},
        _ONCE,
    )
    yield Case(
        "CumSum-reverse-exclusive",
        "CumSum",
        (integers(3, 11, seed=9),),
        lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1] - x,
        {"axis": 1, "reverse": 1, "exclusive": 1},
    )


def _softmax(x: Tensor, axis: int) -> Tensor:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def _log_softmax(x: Tensor, axis: int) -> Tensor:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(_softmax(x, axis)))


def _rows() -> Iterator[Case]:
    shapes: tuple[tuple[tuple[int, ...], int], ...] = (
        ((5, 7), 1),
        ((5, 7), 0),
        ((3, 100), -1),
        ((2, 5, 33), 1),
        ((4, 1000), 1),
        ((70, 10), 1),
        ((150, 32), -1),
        ((70, 3), 0),
        ((2, 3000), 1),
        ((3, 40, 2), 1),
    )
    for shape, axis in shapes:
        name = f"{'x'.join(map(str, shape))}-{axis}"
        x, g = normal(*shape, seed=10, scale=3.0), normal(*shape, seed=11)
        attributes = {"axis": axis}
        yield Case(
            f"Softmax-{name}",
            "Softmax",
            (x,),
            lambda x, a=axis: _softmax(x, a),
            attributes,
            _ROWS,
        )
        yield Case(
            f"LogSoftmax-{name}",
            "LogSoftmax",
            (x,),
            lambda x, a=axis: np.log(_softmax(x, a)),
            attributes,
            bound(ulp=4.0, absolute=2e-6, why="two differences"),
        )
        y = _softmax(x.astype(np.float64), axis).astype(np.float32)
        yield Case(
            f"SoftmaxGrad-{name}",
            "SoftmaxGrad",
            (y, g),
            lambda y, g, a=axis: y * (g - (y * g).sum(a, keepdims=True)),
            attributes,
            _GRADIENT,
            onnx=False,
        )
        yield Case(
            f"LogSoftmaxGrad-{name}",
            "LogSoftmaxGrad",
            (np.log(y), g),
            lambda y, g, a=axis: g - np.exp(y) * g.sum(a, keepdims=True),
            attributes,
            _GRADIENT,
            onnx=False,
        )
    odd = normal(70, 9, seed=15)
    odd[3, 4], odd[5], odd[7, 8] = np.nan, -np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        # ONNX Runtime gives numbers for a row of nothing but -inf.
        for axis, given in ((1, odd), (0, odd.T.copy()), (1, np.tile(odd, 4))):
            for name, function in (("Softmax", _softmax), ("LogSoftmax", _log_softmax)):
                yield Case(
                    f"{name}-odd-{'x'.join(map(str, given.shape))}",
                    name,
                    (given,),
                    lambda x, f=function, a=axis: f(x, a),
                    {"axis": axis},
                    _ROWS
                    if name == "Softmax"
                    else bound(ulp=4.0, absolute=2e-6, why="differences"),
                    onnx=False,
                )
    wide = normal(3, 50, seed=12, dtype=np.float64)
    tight = bound(ulp=64.0, absolute=1e-16, why="the oracle is f64 itself")
    yield Case("Softmax-float64", "Softmax", (wide,), lambda x: _softmax(x, -1), bound=tight)


CASES = (*_reductions(), *_places(), *_rows())
