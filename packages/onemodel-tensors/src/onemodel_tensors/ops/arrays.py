"""Steps on arrays that gradients are made of: named kernels, numbers as arrays, the gradient of broadcasting."""

from __future__ import annotations

import math

from onemodel_kernels import Array, Kernel
from onemodel_tensors.apply import array_of

ADD = Kernel("Add")
SUB = Kernel("Sub")
MUL = Kernel("Mul")
DIV = Kernel("Div")
NEG = Kernel("Neg")
SQRT = Kernel("Sqrt")
EXP = Kernel("Exp")
LOG = Kernel("Log")
SQUARE = Kernel("Square")
RECIPROCAL = Kernel("Reciprocal")
WHERE = Kernel("Where")
EQUAL = Kernel("Equal")
LESS = Kernel("Less")
LESS_OR_EQUAL = Kernel("LessOrEqual")
GREATER = Kernel("Greater")
GREATER_OR_EQUAL = Kernel("GreaterOrEqual")
NOT = Kernel("Not")
AND = Kernel("And")
MATMUL = Kernel("MatMul")

_numbers: dict[tuple[float, str], Array] = {}
_NUMBER_LIMIT = 1024


def number(value: float, dtype: str) -> Array:
    """A 0-d array, shared by all callers: never written to."""
    if value == 0 and math.copysign(1.0, value) < 0:
        return Array.full((), value, dtype)
    key = (value, dtype)
    found = _numbers.get(key)
    if found is None:
        if len(_numbers) >= _NUMBER_LIMIT:
            _numbers.clear()
        found = _numbers[key] = Array.full((), value, dtype)
    return found


def zeros(shape: tuple[int, ...], dtype: str) -> Array:
    """A new array of zeros."""
    return Array.full(shape, 0, dtype)


def scaled(array: Array, factor: float) -> Array:
    """``array * factor``, the factor rounded to the array's dtype."""
    return array_of("Mul", array, number(factor, array.dtype))


def cast(array: Array, dtype: str) -> Array:
    """The array in another dtype; itself when it has it."""
    return array if array.dtype == dtype else array_of("Cast", array, to=dtype)


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of broadcasting from ``shape``: the sum over the axes that were broadcast."""
    return gradient if gradient.shape == shape else array_of("SumTo", gradient, shape=shape)


def masked(mask: Array, gradient: Array) -> Array:
    """The gradient where a bool mask is true, +0 elsewhere (also where the gradient is not finite)."""
    return array_of("Where", mask, gradient, number(0.0, gradient.dtype))


def reduce_sum(array: Array, axes: tuple[int, ...], keepdims: bool = True) -> Array:
    """The sum over some axes."""
    if not axes:
        return array
    return array_of("ReduceSum", array, axes=axes, keepdims=int(keepdims))


def swapped(array: Array) -> Array:
    """The last two axes exchanged, as a view."""
    rank = array.ndim
    return array.permute((*range(rank - 2), rank - 1, rank - 2))
