"""Cases of operators that choose or place elements by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor
from onemodel_kernels.testing.inputs import edges, empty, integers, normal

X = normal(4, 5, 6, seed=1)
_COMBINE: dict[str, Callable[[Any, Any], float]] = {
    "none": lambda _, b: b,
    "add": lambda a, b: float(np.float32(a) + np.float32(b)),
    "mul": lambda a, b: float(np.float32(a) * np.float32(b)),
    "max": max,
    "min": min,
}


def _gathers() -> list[Case]:
    rows = integers(2, 3, seed=2, low=-5, high=5)
    places = integers(4, 7, 6, seed=3, low=-5, high=5)
    pairs = np.array([[0, 1], [3, -1]])
    return [
        Case("Gather", "Gather", (X, rows), lambda x, i: np.take(x, i, 1), {"axis": 1}),
        Case(
            "Gather-int32",
            "Gather",
            (X, integers(3, seed=4, low=0, high=4, dtype=np.int32)),
            lambda x, i: x[i],
            {"axis": 0},
        ),
        Case("Gather-scalar", "Gather", (X, np.array(-2)), lambda x, _: x[..., -2], {"axis": -1}),
        Case(
            "Gather-nothing",
            "Gather",
            (X, empty(0, dtype=np.int64)),
            lambda x, _: x[:0],
            {"axis": 0},
        ),
        Case(
            "GatherElements",
            "GatherElements",
            (X, places),
            lambda x, i: np.take_along_axis(x, i, 1),
            {"axis": 1},
        ),
        Case("GatherND", "GatherND", (X, pairs), lambda x, _: x[[0, 3], [1, -1]]),
        Case(
            "GatherND-batch",
            "GatherND",
            (X, np.array([[1], [2], [0], [4]])),
            lambda x, _: x[[0, 1, 2, 3], [1, 2, 0, 4]],
            {"batch_dims": 1},
        ),
    ]


def _scatter_elements(reduction: str, axis: int) -> Callable[..., Tensor]:
    combine = _COMBINE[reduction]

    def oracle(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
        out = x.copy()
        for at in np.ndindex(index.shape):
            to = list(at)
            to[axis] = index[at]
            out[tuple(to)] = combine(out[tuple(to)], updates[at])
        return out

    return oracle


def _scatter_rows(reduction: str) -> Callable[..., Tensor]:
    combine = _COMBINE[reduction]

    def oracle(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
        out = x.copy()
        for at in np.ndindex(index.shape[:-1]):
            row = out[tuple(index[at])]
            for place in np.ndindex(row.shape):
                row[place] = combine(row[place], updates[at][place])
        return out

    return oracle


def _scatters() -> list[Case]:
    found = []
    for reduction in _COMBINE:
        index = integers(3, 9, 4, seed=5, low=-5, high=5)
        updates = normal(3, 9, 4, seed=6)
        found.append(
            Case(
                f"ScatterElements-{reduction}",
                "ScatterElements",
                (X, index, updates),
                _scatter_elements(reduction, 1),
                {"axis": 1, "reduction": reduction},
            )
        )
        rows = integers(7, 1, seed=7, low=-4, high=4)
        slices = normal(7, 5, 6, seed=8)
        found.append(
            Case(
                f"ScatterND-{reduction}",
                "ScatterND",
                (X, rows, slices),
                _scatter_rows(reduction),
                {"reduction": reduction},
            )
        )
    index = integers(40, seed=9, low=-5, high=5)
    src = normal(4, 40, 6, seed=10)

    def added(x: Tensor, index: Tensor, src: Tensor) -> Tensor:
        out = x.astype(np.float32)
        for k, at in enumerate(index):
            out[:, at] += src[:, k].astype(np.float32)
        return out

    found.append(Case("IndexAdd", "IndexAdd", (X, index, src), added, {"axis": 1}, onnx=False))
    return found


def _one_hots() -> list[Case]:
    index = np.array([[0, 2, -1], [5, 3, 1]])

    def oracle(axis: int) -> Callable[..., Tensor]:
        def hot(index: Tensor, values: Tensor) -> Tensor:
            at = np.where(index < 0, index + 4, index)
            chosen = np.where(np.arange(4) == at[..., None], values[1], values[0])
            return np.moveaxis(chosen, -1, axis)

        return hot

    return [
        Case(
            f"OneHot-{axis}",
            "OneHot",
            (index, np.array([0, 1], np.float32)),
            oracle(axis),
            {"axis": axis, "depth": 4},
        )
        for axis in (-1, 0, 1)
    ]


def _best(axis: int, k: int, largest: int) -> Callable[..., Any]:
    def oracle(x: Tensor) -> tuple[Tensor, Tensor]:
        order = np.argsort(-x if largest else x, axis=axis, kind="stable")
        order = np.take(order, range(k), axis)
        return np.take_along_axis(x, order, axis), order

    return oracle


def _top_k() -> list[Case]:
    found = []
    x = integers(3, 40, 4, seed=11, low=-5, high=5).astype(np.float32)
    for axis in (0, 1, 2):
        for largest in (0, 1):
            k = 3
            attributes = {"axis": axis, "largest": largest, "sorted": 1}
            found.append(
                Case(
                    f"TopK-{axis}-{largest}",
                    "TopK",
                    (x,),
                    _best(axis, k, largest),
                    {**attributes, "k": k},
                    onnx_attributes={**attributes, "K": (k,)},
                )
            )
    ties = np.round(normal(4, 333, seed=12, scale=3.0))
    for k in (1, 40, 100, 333):
        for largest in (0, 1):
            attributes = {"axis": 1, "largest": largest, "sorted": 1}
            found.append(
                Case(
                    f"TopK-ties-{k}-{largest}",
                    "TopK",
                    (ties,),
                    _best(1, k, largest),
                    {**attributes, "k": k},
                    onnx_attributes={**attributes, "K": (k,)},
                )
            )
    line = edges()
    count = len(line)

    def ordered(x: Tensor) -> tuple[Tensor, Tensor]:
        # numpy sorts NaN last, which is where the greatest belongs; reversed, ties stay by index.
        ranks = np.unique(x, return_inverse=True)[1]
        order = np.argsort(-ranks, kind="stable")
        return x[order], order

    # ONNX Runtime misplaces NaN.
    found.append(Case("TopK-edges", "TopK", (line,), ordered, {"axis": 0, "k": count}, onnx=False))
    return found


CASES = [*_gathers(), *_scatters(), *_one_hots(), *_top_k()]
