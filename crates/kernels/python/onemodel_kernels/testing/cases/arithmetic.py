"""Cases of binary arithmetic."""

from __future__ import annotations

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
}


def _pairs(dtype: Any) -> tuple[Any, Any]:
    one = edges(dtype)
    return np.repeat(one, len(one)), np.tile(one, len(one))


def _cases() -> list[Case]:
    found = []
    for name, function in _OPERATORS.items():
        for shape, (left, right) in _SHAPES.items():
            inputs = (normal(*left, seed=1), normal(*right, seed=2))
            found.append(Case(f"{name}-{shape}", name, inputs, function))
        for dtype in (np.float32, np.float64):
            found.append(
                Case(f"{name}-edges-{np.dtype(dtype).name}", name, _pairs(dtype), function)
            )
        for dtype in (np.int32, np.int64, np.uint8):
            # Integers wrap, as numpy's arrays do.
            found.append(
                Case(f"{name}-edges-{np.dtype(dtype).name}", name, _pairs(dtype), function)
            )
        found.append(Case(f"{name}-empty", name, (empty(0, 4), normal(4)), function))
        found.append(
            Case(
                f"{name}-integers",
                name,
                (integers(3, 4, seed=3), integers(4, seed=4)),
                function,
            )
        )
    return found


CASES = _cases()
