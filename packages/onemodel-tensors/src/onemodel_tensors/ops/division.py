"""Division that rounds, and its remainders."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arithmetic import add, div
from onemodel_tensors.ops.arrays import DIV, MUL, NEG, sum_to
from onemodel_tensors.ops.comparison import lt, ne
from onemodel_tensors.ops.logical import logical_and, logical_xor
from onemodel_tensors.ops.mathematics import floor, trunc
from onemodel_tensors.ops.promotion import operands
from onemodel_tensors.ops.selection import where
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["floor_divide", "fmod", "remainder"]


def floor_divide(input: Any, other: Any) -> Tensor:
    """``floor(input / other)``: the greatest integer not above the quotient, also for integers.

    The gradient is zero. An integer divided by 0 is an error of the kernel.
    """
    a, b = operands("floor_divide", input, other)
    if a._array.dtype in FLOATING:
        return floor(div(a, b))
    return recorded("FloorDiv", (a, b), NO_ATTRIBUTES, kernel("FloorDiv")(a._array, b._array), None)


def rfloor_divide(input: Tensor, other: Any) -> Tensor:
    """``floor(other / input)``."""
    return floor_divide(other, input)


def trunc_divide(input: Any, other: Any) -> Tensor:
    """The quotient rounded towards zero, in the operands' dtype; the gradient is zero."""
    a, b = operands("div", input, other)
    if a._array.dtype in FLOATING:
        return trunc(div(a, b))
    return recorded("Div", (a, b), NO_ATTRIBUTES, DIV(a._array, b._array), None)


def fmod(input: Any, other: Any) -> Tensor:
    """``input - other * trunc(input / other)``: the remainder with the sign of the dividend."""
    a, b = operands("fmod", input, other)
    x, y = a._array, b._array
    out = kernel("Mod", fmod=1)(x, y)
    return recorded("Mod", (a, b), {"fmod": 1}, out, _fmod_gradient, (x, y))


def _fmod_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y = record.saved
    quotient = kernel("Trunc")(DIV(x, y)) if record.needs(1) else None
    return (
        sum_to(g, x.shape) if record.needs(0) else None,
        None if quotient is None else NEG(sum_to(MUL(g, quotient), y.shape)),
    )


def remainder(input: Any, other: Any) -> Tensor:
    """``input - other * floor(input / other)``: the remainder with the sign of the divisor."""
    a, b = operands("remainder", input, other)
    if a._array.dtype not in FLOATING:
        out = kernel("Mod", fmod=0)(a._array, b._array)
        return recorded("Mod", (a, b), {"fmod": 0}, out, None)
    rest = fmod(a, b)
    apart = logical_and(ne(rest, 0), logical_xor(lt(rest, 0), lt(b, 0)))
    result: Tensor = where(apart, add(rest, b), rest)
    return result


def rremainder(input: Tensor, other: Any) -> Tensor:
    """``other - input * floor(other / input)``."""
    return remainder(other, input)
