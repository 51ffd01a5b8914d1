"""Functions of two arguments that are no arithmetic: angles, lengths, sums in the logarithmic domain."""

from __future__ import annotations

import math
from typing import Any

from onemodel_kernels import Array
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.ops.arithmetic import add, mul, neg, sub
from onemodel_tensors.ops.arrays import (
    ADD,
    AND,
    DIV,
    EQUAL,
    LESS,
    MUL,
    NEG,
    RECIPROCAL,
    SQUARE,
    WHERE,
    number,
    sum_to,
)
from onemodel_tensors.ops.comparison import eq
from onemodel_tensors.ops.mathematics import abs, exp, log1p, sqrt
from onemodel_tensors.ops.promotion import floating, operands
from onemodel_tensors.ops.selection import maximum, where
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["atan2", "hypot", "logaddexp"]


def atan2(input: Any, other: Any) -> Tensor:
    """The angle in (-pi, pi] of the point whose ordinate is ``input`` and whose abscissa is ``other``."""
    a, b = (floating(t, "atan2") for t in operands("atan2", input, other))
    y, x = a._array, b._array
    return recorded("Atan2", (a, b), NO_ATTRIBUTES, _angle(y, x), _atan2_gradient, (y, x))


def _angle(y: Array, x: Array) -> Array:
    # The steps are those that a graph takes, which has no such operator; so the bits are the same there.
    zero = number(0.0, x.dtype)
    is_infinite, sign, or_ = kernel("IsInf"), kernel("Sign"), kernel("Or")
    both = AND(is_infinite(x), is_infinite(y))
    origin = AND(EQUAL(x, zero), EQUAL(y, zero))
    ratio = WHERE(both, MUL(sign(y), sign(x)), DIV(y, x))
    angle = kernel("Atan")(WHERE(origin, y, ratio))
    # A negative zero lies below, too: its reciprocal says so.
    left = or_(LESS(x, zero), LESS(RECIPROCAL(x), zero))
    below = or_(LESS(y, zero), LESS(RECIPROCAL(y), zero))
    turn = WHERE(below, number(-math.pi, x.dtype), number(math.pi, x.dtype))
    result: Array = WHERE(left, ADD(angle, turn), angle)
    return result


def _atan2_gradient(record: BackwardRecord, g: Array) -> Gradients:
    y, x = record.saved
    share = DIV(g, ADD(SQUARE(x), SQUARE(y)))
    return (
        sum_to(MUL(share, x), y.shape) if record.needs(0) else None,
        NEG(sum_to(MUL(share, y), x.shape)) if record.needs(1) else None,
    )


def hypot(input: Any, other: Any) -> Tensor:
    """``sqrt(input**2 + other**2)``."""
    a, b = operands("hypot", input, other)
    return sqrt(add(mul(a, a), mul(b, b)))


def logaddexp(input: Any, other: Any) -> Tensor:
    """``log(e**input + e**other)`` without overflow."""
    a, b = (floating(t, "logaddexp") for t in operands("logaddexp", input, other))
    # Equal infinities have no difference.
    apart = where(eq(a, b), 0.0, sub(a, b))
    return add(maximum(a, b), log1p(exp(neg(abs(apart)))))
