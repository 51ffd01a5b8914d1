"""Cases of elementwise operators of one input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erf
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Bound, Case, Tensor, bound
from onemodel_kernels.testing.inputs import booleans, edges, empty, integers, normal, uniform

TWO_ULP = bound(ulp=2.0, why="own polynomials promise 2 ulp")
EXACT = bound()
FORMULA = bound(ulp=4.0, absolute=2e-7, why="several roundings")

_erf = np.vectorize(erf, otypes=[np.float64])


def _sigmoid(x: Tensor) -> Tensor:
    return np.asarray(1 / (1 + np.exp(-x)))


def _sign(x: Tensor) -> Tensor:
    return np.asarray(np.where(x == 0, x, np.sign(x)))


def _at_least_one(n: int) -> Tensor:
    return uniform(n, seed=4, low=1.0, high=50.0)


_ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Floor": np.floor,
    "Identity": lambda x: x,
    "Neg": np.negative,
    "Reciprocal": np.reciprocal,
    "Relu": lambda x: np.where(x < 0, 0, x),
    "Round": np.rint,
    "Sign": _sign,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Trunc": np.trunc,
}
_ELEMENTARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": _erf,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log10": np.log10,
    "Log1p": np.log1p,
    "Log2": np.log2,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": _sigmoid,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": lambda x: np.logaddexp(0, x),
    "Tan": np.tan,
    "Tanh": np.tanh,
}
_OWN = {"Square", "Trunc", "Expm1", "Log10", "Log1p", "Log2", "Rsqrt"}


def _of(name: str, function: Callable[[Tensor], Tensor], limit: Bound) -> Iterator[Case]:
    onnx = name not in _OWN
    x = _at_least_one(100) if name == "Acosh" else normal(9, 33, seed=5, scale=2.0)
    if name in ("Acos", "Asin", "Atanh"):
        x = uniform(9, 33, seed=6, low=-1.0, high=1.0)
    yield Case(f"{name}-normal", name, (x,), function, bound=limit, onnx=onnx)
    for dtype in (np.float32, np.float64):
        wide = bound(ulp=4.0, why="the oracle is f64 itself") if dtype == np.float64 else limit
        kind = np.dtype(dtype).name
        edge = limit if limit.exact else wide
        yield Case(f"{name}-edges-{kind}", name, (edges(dtype),), function, bound=edge, onnx=False)
    half = bound(ulp=1.0, why="computed in f32 and rounded once more")
    yield Case(
        f"{name}-float16",
        name,
        (x.astype(np.float16),),
        function,
        bound=EXACT if limit.exact else half,
        onnx=False,
    )
    yield Case(f"{name}-empty", name, (empty(0, 3),), function, onnx=False)


def _integers() -> Iterator[Case]:
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "Abs": np.abs,
        "Neg": np.negative,
        "Sign": np.sign,
        "Square": np.square,
    }
    for name, function in functions.items():
        for dtype in (np.int8, np.int32, np.int64):
            kind = np.dtype(dtype).name
            yield Case(f"{name}-{kind}", name, (edges(dtype),), function, onnx=name != "Square")
    yield Case("Not-bool", "Not", (booleans(5, 7),), np.logical_not)
    yield Case("BitwiseNot-uint8", "BitwiseNot", (edges(np.uint8),), np.invert)
    yield Case("IsNaN-edges", "IsNaN", (edges(),), np.isnan)
    yield Case("IsInf-edges", "IsInf", (edges(),), np.isinf)
    yield Case("IsInf-positive", "IsInf", (edges(),), np.isposinf, {"detect_negative": 0})


def _casts() -> Iterator[Case]:
    names = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
    for source in names:
        x: Any = integers(4, 9, seed=7, low=0, high=120).astype(source)
        for target in names:
            if source != target:
                yield Case(
                    f"Cast-{source}-{target}",
                    "Cast",
                    (x,),
                    lambda x, target=target: x.astype(target),
                    {"to": target},
                )
    for target in ("float16", "float64"):
        yield Case(
            f"Cast-edges-{target}",
            "Cast",
            (edges(),),
            lambda x, target=target: x.astype(target),
            {"to": target},
        )
    whole = normal(50, seed=8, scale=100.0)
    yield Case("Cast-truncates", "Cast", (whole,), lambda x: x.astype(np.int32), {"to": "int32"})


CASES = (
    *(case for name, f in _ROUNDED.items() for case in _of(name, f, EXACT)),
    *(case for name, f in _ELEMENTARY.items() for case in _of(name, f, TWO_ULP)),
    *_integers(),
    *_casts(),
)
