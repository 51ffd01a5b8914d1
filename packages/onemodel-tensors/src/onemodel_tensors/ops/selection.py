"""Choosing between values: where, masked_fill, maximum, minimum, clamp."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, DtypeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arrays import (
    AND,
    EQUAL,
    GREATER,
    GREATER_OR_EQUAL,
    LESS_OR_EQUAL,
    NOT,
    WHERE,
    masked,
    number,
    scaled,
    sum_to,
)
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.promotion import operands
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = [
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "fmax",
    "fmin",
    "masked_fill",
    "maximum",
    "minimum",
    "nan_to_num",
    "where",
]

_MAX, _MIN = Kernel("Max"), Kernel("Min")


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """``input`` where ``condition`` is true, else ``other``; all three broadcast.

    With the condition alone it gives the positions of its true elements, as ``nonzero(as_tuple=True)``.

    Args:
        condition: bool.
        input: tensor or number.
        other: tensor or number.

    Raises:
        DtypeError: the condition is not bool.
    """
    if input is None and other is None:
        from onemodel_tensors.ops.masks import nonzero

        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor) or condition._array.dtype != "bool":
        came = condition.dtype if isinstance(condition, Tensor) else builtin_name(condition)
        raise DtypeError(f"where: expected a bool tensor as condition, got {came}")
    a, b = operands("where", input, other)
    c, x, y = condition._array, a._array, b._array
    out = WHERE(c, x, y)
    return recorded(
        "Where", (condition, a, b), NO_ATTRIBUTES, out, _where_gradient, (c, x.shape, y.shape)
    )


def builtin_name(value: object) -> str:
    """The name of a value's class."""
    return value.__class__.__name__


def _where_gradient(record: BackwardRecord, g: Array) -> Gradients:
    c, x, y = record.saved
    zero = number(0.0, g.dtype)
    return (
        None,
        sum_to(WHERE(c, g, zero), x) if record.needs(1) else None,
        sum_to(WHERE(c, zero, g), y) if record.needs(2) else None,
    )


def _where_method(input: Tensor, condition: Tensor, other: Any) -> Any:
    return where(condition, input, other)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``value`` where ``mask`` is true, else ``input``, in ``input``'s dtype.

    Raises:
        DtypeError: the mask is not bool.
    """
    if mask._array.dtype != "bool":
        raise DtypeError(f"masked_fill: expected a bool mask, got {mask._array.dtype}")
    (filled,) = operands("masked_fill", value, dtype=input._array.dtype)
    result: Tensor = where(mask, filled, input)
    return result


def _extremum(operator: str, kernel_of_two: Kernel, input: Any, other: Any) -> Tensor:
    a, b = operands(operator.lower(), input, other)
    x, y = a._array, b._array
    out = kernel_of_two(x, y)
    gradient = _extremum_gradient if x.dtype in FLOATING else None
    return recorded(operator, (a, b), NO_ATTRIBUTES, out, gradient, (x, y, operator))


def _extremum_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y, operator = record.saved
    half = scaled(g, 0.5)
    tie = EQUAL(x, y)
    first = GREATER(x, y) if operator == "Max" else GREATER(y, x)
    zero = number(0.0, g.dtype)
    to_x = WHERE(tie, half, WHERE(first, g, zero))
    to_y = WHERE(tie, half, WHERE(first, zero, g))
    return (
        sum_to(to_x, x.shape) if record.needs(0) else None,
        sum_to(to_y, y.shape) if record.needs(1) else None,
    )


def maximum(input: Any, other: Any) -> Tensor:
    """The larger of two elements; NaN if either is. The gradient goes to the larger, half each at a tie."""
    return _extremum("Max", _MAX, input, other)


def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of two elements; NaN if either is. The gradient goes to the smaller, half each at a tie."""
    return _extremum("Min", _MIN, input, other)


def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two elements; of a NaN and a number, the number."""
    from onemodel_tensors.ops.logical import isnan

    a, b = operands("fmax", input, other)
    return where(isnan(a), b, where(isnan(b), a, maximum(a, b)))  # type: ignore[no-any-return]


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two elements; of a NaN and a number, the number."""
    from onemodel_tensors.ops.logical import isnan

    a, b = operands("fmin", input, other)
    return where(isnan(a), b, where(isnan(b), a, minimum(a, b)))  # type: ignore[no-any-return]


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``minimum(maximum(input, min), max)``; NaN stays NaN.

    Args:
        input: tensor of numbers.
        min: number, tensor that broadcasts, or ``None`` for no lower bound.
        max: number, tensor that broadcasts, or ``None`` for no upper bound.

    Gradient: the whole where ``min <= input <= max``, else 0; a tensor bound gets it where it decided.

    Raises:
        AttributeValueError: both bounds are ``None``.
    """
    if min is None and max is None:
        raise AttributeValueError("clamp: expected a min, a max or both, got neither")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        result = input
        if min is not None:
            result = _bounded(result, min, True)
        return result if max is None else _bounded(result, max, False)
    from onemodel_tensors.ops.promotion import result_type

    x = to_dtype(input, result_type(input, *(b for b in (min, max) if b is not None)))
    dtype = x._array.dtype
    sizes = isinstance(min, SymbolicSize) or isinstance(max, SymbolicSize)
    if min is None or max is None or sizes or not min <= max:
        if min is not None:
            x = _bounded(x, min, True)
        return x if max is None else _bounded(x, max, False)
    if dtype in FLOATING:
        min, max = float(min), float(max)
    attributes = {"min": min, "max": max}
    out = kernel("Clip", **attributes)(x._array)
    return recorded("Clip", (x,), attributes, out, _clip_gradient, (x._array,))


def _clip_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    low = number(record.attributes["min"], x.dtype)
    high = number(record.attributes["max"], x.dtype)
    inside = AND(GREATER_OR_EQUAL(x, low), LESS_OR_EQUAL(x, high))
    return (masked(inside, g),)


def _bounded(input: Tensor, bound: Any, lower: bool) -> Tensor:
    """One side of clamp: at a tie the whole gradient goes to the input."""
    a, b = operands("clamp", input, bound)
    x, y = a._array, b._array
    operator = "Max" if lower else "Min"
    out = (_MAX if lower else _MIN)(x, y)
    gradient = _bounded_gradient if x.dtype in FLOATING else None
    return recorded(operator, (a, b), NO_ATTRIBUTES, out, gradient, (x, y, lower))


def _bounded_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y, lower = record.saved
    kept = GREATER_OR_EQUAL(x, y) if lower else LESS_OR_EQUAL(x, y)
    return (
        sum_to(masked(kept, g), x.shape) if record.needs(0) else None,
        sum_to(masked(NOT(kept), g), y.shape) if record.needs(1) else None,
    )


clip = clamp


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """``maximum(input, min)``, the whole gradient to the input at a tie."""
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """``minimum(input, max)``, the whole gradient to the input at a tie."""
    return clamp(input, max=max)


def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and the infinities replaced by numbers: by default 0 and the dtype's largest and smallest.

    Args:
        input: tensor of numbers.
        nan: what NaN becomes.
        posinf: what +inf becomes.
        neginf: what -inf becomes.
    """
    from onemodel_tensors.ops.comparison import eq
    from onemodel_tensors.ops.logical import isnan

    dtype = input._array.dtype
    if dtype not in FLOATING:
        return input
    largest = LARGEST[dtype]
    result: Tensor = where(isnan(input), nan, input)
    result = where(eq(result, float("inf")), largest if posinf is None else posinf, result)
    return where(eq(result, float("-inf")), -largest if neginf is None else neginf, result)  # type: ignore[no-any-return]


LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}
"""The largest finite number of each floating-point dtype."""
