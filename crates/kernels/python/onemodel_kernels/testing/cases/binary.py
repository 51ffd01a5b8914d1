"""Cases of division, powers, comparison, logic, selection and operators of many inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import booleans, edges, empty, integers, normal, uniform

_TWO_ULP = bound(ulp=2.0, why="an elementary function")
_COMPARISONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}


def _pairs(dtype: Any) -> tuple[Tensor, Tensor]:
    one = edges(dtype)
    return np.repeat(one, len(one)), np.tile(one, len(one))


def _divisions() -> Iterator[Case]:
    a, b = normal(5, 1, 9, seed=1), normal(4, 9, seed=2)
    yield Case("Div-broadcast", "Div", (a, b), np.divide)
    yield Case("Div-edges", "Div", _pairs(np.float32), np.divide)
    yield Case("FloorDiv-float", "FloorDiv", (a, b), lambda a, b: np.floor(a / b), onnx=False)
    yield Case("Mod-float", "Mod", (a, b), np.fmod, {"fmod": 1})
    whole, divisor = integers(6, 20, seed=3, low=-50, high=50), integers(20, seed=4, low=1, high=9)
    divisor[::2] *= -1
    yield Case("Div-int", "Div", (whole, divisor), lambda a, b: np.trunc(a / b).astype(np.int64))
    yield Case("FloorDiv-int", "FloorDiv", (whole, divisor), np.floor_divide, onnx=False)
    yield Case("Mod-int", "Mod", (whole, divisor), np.mod)
    yield Case("Mod-int-fmod", "Mod", (whole, divisor), np.fmod, {"fmod": 1})


def _powers() -> Iterator[Case]:
    base, exponent = uniform(300, seed=5, low=0.01, high=9.0), normal(300, seed=6, scale=4.0)
    yield Case("Pow-float", "Pow", (base, exponent), np.power, bound=_TWO_ULP)
    for value in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 2.5):
        power = np.array(value, np.float32)
        yield Case(f"Pow-{value}", "Pow", (base, power), np.power, bound=_TWO_ULP)
    signed = normal(300, seed=7)
    yield Case("Pow-int-exponent", "Pow", (signed, np.array(3)), np.power, bound=_TWO_ULP)
    yield Case("Pow-int", "Pow", (integers(40, seed=8), np.array(3)), np.power)
    y, x = normal(200, seed=9), normal(200, seed=10)
    yield Case("Atan2", "Atan2", (y, x), np.arctan2, bound=_TWO_ULP, onnx=False)


def _truths() -> Iterator[Case]:
    for name, function in _COMPARISONS.items():
        yield Case(f"{name}-edges", name, _pairs(np.float32), function)
        yield Case(f"{name}-int", name, (integers(7, 30, seed=1), integers(30, seed=2)), function)
        yield Case(f"{name}-empty", name, (empty(0, 4), empty(4)), function)
    one, other = booleans(6, 11, seed=3), booleans(11, seed=4)
    yield Case("Equal-bool", "Equal", (one, other), np.equal)
    yield Case("And", "And", (one, other), np.logical_and)
    yield Case("Or", "Or", (one, other), np.logical_or)
    yield Case("Xor", "Xor", (one, other), np.logical_xor)
    a, b = integers(6, 11, seed=5), integers(11, seed=6)
    yield Case("BitwiseAnd", "BitwiseAnd", (a, b), np.bitwise_and)
    yield Case("BitwiseOr", "BitwiseOr", (a, b), np.bitwise_or)
    yield Case("BitwiseXor", "BitwiseXor", (a, b), np.bitwise_xor)
    bits = edges(np.uint8)
    by = np.arange(len(bits), dtype=np.uint8)
    left = {"direction": "LEFT"}
    right = {"direction": "RIGHT"}
    yield Case("BitShift-left", "BitShift", (bits, by), np.left_shift, left)
    yield Case("BitShift-right", "BitShift", (bits, by), np.right_shift, right)
    condition = booleans(3, 1, 8, seed=7)
    chosen = (condition, normal(5, 1, seed=8), normal(8, seed=9))
    yield Case("Where-broadcast", "Where", chosen, np.where)
    yield Case("Where-int", "Where", (booleans(9), integers(9), np.array(4)), np.where)


def _many() -> Iterator[Case]:
    inputs = tuple(normal(*shape, seed=i) for i, shape in enumerate([(4, 9), (9,), (4, 1)] * 3))
    functions: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "Max": np.maximum,
        "Min": np.minimum,
        "Sum": np.add,
    }
    sums = bound(ulp=8.0, absolute=1e-6, why="one rounding for each step")
    for name, function in functions.items():
        for count in (1, 2, 3, 9):
            yield Case(
                f"{name}-{count}",
                name,
                inputs[:count],
                lambda *all_, f=function: reduce(f, all_),
                bound=sums if name == "Sum" else bound(),
            )
    yield Case("Max-nan", "Max", _pairs(np.float32), np.maximum, bound=_ANY_ZERO)
    yield Case("Mean-4", "Mean", inputs[:4], lambda *a: reduce(np.add, a) / 4, bound=sums)


_ANY_ZERO = bound(absolute=1e-45, why="either of two equal zeros")
CASES = (*_divisions(), *_powers(), *_truths(), *_many())
