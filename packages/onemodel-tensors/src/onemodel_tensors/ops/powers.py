"""Powers."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arithmetic import mul
from onemodel_tensors.ops.arrays import (
    AND,
    EQUAL,
    GREATER_OR_EQUAL,
    LOG,
    MUL,
    NOT,
    SUB,
    masked,
    number,
    sum_to,
)
from onemodel_tensors.ops.casts import clone
from onemodel_tensors.ops.mathematics import reciprocal, rsqrt, sqrt
from onemodel_tensors.ops.promotion import operands
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["float_power", "pow"]

_SPECIAL = {0.5: sqrt, -0.5: rsqrt, -1.0: reciprocal}


def pow(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` with broadcasting and promotion.

    The exponents 2, 0.5, -0.5 and -1, given as numbers, are a product, a root, or a reciprocal.

    Gradient: ``exponent * input**(exponent - 1)``, 0 where the exponent is 0; for the exponent
    ``output * ln(input)``, 0 where ``input`` is 0 and the exponent is not negative.

    Raises:
        AttributeValueError: integers to a negative number.
    """
    if type(exponent) in (int, float) and isinstance(input, Tensor):
        if exponent == 1:
            return clone(input) if isinstance(exponent, int) else mul(input, exponent)
        if exponent == 2 and isinstance(exponent, int):
            return mul(input, input)
        if input._array.dtype in FLOATING:
            if exponent == 2:
                return mul(input, input)
            special = _SPECIAL.get(exponent)
            if special is not None:
                return special(input)
        elif isinstance(exponent, int) and exponent < 0:
            raise AttributeValueError(
                f"pow: expected a non-negative exponent for {input._array.dtype}, got {exponent}; "
                "use .float() first"
            )
    a, b = operands("pow", input, exponent)
    x, y = a._array, b._array
    out = kernel("Pow")(x, y)
    gradient = _pow_gradient if x.dtype in FLOATING else None
    return recorded("Pow", (a, b), NO_ATTRIBUTES, out, gradient, (x, y, out))


def _pow_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y, out = record.saved
    zero = number(0.0, x.dtype)
    dx = dy = None
    if record.needs(0):
        slope = MUL(y, kernel("Pow")(x, SUB(y, number(1.0, x.dtype))))
        dx = sum_to(MUL(g, masked(NOT(EQUAL(y, zero)), slope)), x.shape)
    if record.needs(1):
        flat = AND(EQUAL(x, zero), GREATER_OR_EQUAL(y, zero))
        dy = sum_to(MUL(g, masked(NOT(flat), MUL(out, LOG(x)))), y.shape)
    return dx, dy


def rpow(input: Tensor, other: Any) -> Tensor:
    """``other ** input``."""
    return pow(other, input)


def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in float64."""
    a, b = operands("float_power", input, exponent, dtype="float64")
    return pow(a, b)
