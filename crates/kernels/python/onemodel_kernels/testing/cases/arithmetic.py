"""Cases of binary arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case
from onemodel_kernels.testing.inputs import edges, empty, integers, normal

_OPERATORS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
_SHAPES = {
    "same": ((3, 5), (3, 5)),
    "row": ((4, 17), (17,)),
    "column": ((4, 17), (4, 1)),
    "outer": ((7, 1), (1, 9)),
    "scalar": ((2, 3), ()),
    "long": ((1000,), (1000,)),
    "deep": ((2, 1, 3, 1), (4, 1, 5)),
    "columns": ((6, 45), (6, 1)),
    "channels": ((2, 5, 7, 9), (1, 5, 1, 1)),
    "images": ((3, 4, 5, 6), (3, 1, 1, 1)),
    "planes": ((2, 3, 5, 7), (2, 1, 5, 7)),
    "crossed": ((70, 1), (1, 90)),
    "number": ((), (70000,)),
    "numbers": ((33,), (1,)),
}


def _pairs(dtype: Any) -> tuple[Any, Any]:
    one = edges(dtype)
    return np.repeat(one, len(one)), np.tile(one, len(one))


def _cases() -> Iterator[Case]:
    for name, function in _OPERATORS.items():
        for shape, (left, right) in _SHAPES.items():
            inputs = (normal(*left, seed=1), normal(*right, seed=2))
            yield Case(f"{name}-{shape}", name, inputs, function)
        # Integers wrap, as numpy's arrays do.
        for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8):
            kind = np.dtype(dtype).name
            yield Case(f"{name}-edges-{kind}", name, _pairs(dtype), function)
        yield Case(f"{name}-empty", name, (empty(0, 4), normal(4)), function)
        whole = (integers(3, 4, seed=3), integers(4, seed=4))
        yield Case(f"{name}-integers", name, whole, function)


CASES = tuple(_cases())
