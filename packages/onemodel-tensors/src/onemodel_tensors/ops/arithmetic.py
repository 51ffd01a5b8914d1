"""Addition, subtraction, multiplication and division."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, DtypeError
from onemodel_tensors import recording
from onemodel_tensors.apply import kernel, linked, recorded
from onemodel_tensors.dtypes import category
from onemodel_tensors.layouts import is_blocked
from onemodel_tensors.ops.arrays import ADD, DIV, MUL, NEG, SUB, sum_to
from onemodel_tensors.ops.promotion import operands, result_type
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["add", "addcdiv", "addcmul", "div", "lerp", "mul", "neg", "rsub", "sub"]


def add(input: Tensor | float, other: Any, *, alpha: float = 1) -> Tensor:
    """``input + alpha * other`` with broadcasting and promotion; bools give their disjunction.

    Determinism: one correctly rounded operation an element; integers wrap.
    """
    if not (isinstance(other, Tensor) and isinstance(input, Tensor)):
        if is_blocked(input):
            blocked: Tensor = input.add(other * alpha)
            return blocked
        input, other = operands("add", input, other)
    x, y = input._array, other._array
    if alpha != 1:
        other = mul(other, alpha)
        return add(input, other)
    if x.dtype != y.dtype:
        input, other = operands("add", input, other)
        x, y = input._array, other._array
    if x.dtype == "bool":
        return recorded("Or", (input, other), NO_ATTRIBUTES, kernel("Or")(x, y), None)
    out = ADD(x, y)
    if input._node is None and other._node is None and not recording.active:
        return Tensor(out)
    shapes = (x.shape, y.shape)
    saved = () if shapes[0] == shapes[1] else shapes
    if recording.active:
        return recorded("Add", (input, other), NO_ATTRIBUTES, out, _add_gradient, saved)
    return linked("Add", out, _add_gradient, (input._node, other._node), saved, ())


def _add_gradient(record: BackwardRecord, g: Array) -> Gradients:
    if not record.saved:
        return g, g
    x, y = record.saved
    return sum_to(g, x) if record.needs(0) else None, sum_to(g, y) if record.needs(1) else None


def sub(input: Tensor | float, other: Any, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other`` with broadcasting and promotion.

    Raises:
        DtypeError: both are bool.
    """
    if not (isinstance(other, Tensor) and isinstance(input, Tensor)):
        if is_blocked(input):
            blocked: Tensor = input.sub(other * alpha)
            return blocked
        input, other = operands("sub", input, other)
    x, y = input._array, other._array
    if alpha != 1:
        return sub(input, mul(other, alpha))
    if x.dtype != y.dtype:
        input, other = operands("sub", input, other)
        x, y = input._array, other._array
    if x.dtype == "bool":
        raise DtypeError("sub: expected numbers, got bool tensors; use ^ or logical_xor")
    out = SUB(x, y)
    if input._node is None and other._node is None and not recording.active:
        return Tensor(out)
    shapes = (x.shape, y.shape)
    if recording.active:
        return recorded("Sub", (input, other), NO_ATTRIBUTES, out, _sub_gradient, shapes)
    return linked("Sub", out, _sub_gradient, (input._node, other._node), shapes, ())


def _sub_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y = record.saved
    return (
        sum_to(g, x) if record.needs(0) else None,
        NEG(sum_to(g, y)) if record.needs(1) else None,
    )


def rsub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``."""
    if alpha != 1:
        input = mul(input, alpha)
    return sub(other, input)


def mul(input: Tensor | float, other: Any) -> Tensor:
    """``input * other`` with broadcasting and promotion; bools give their conjunction."""
    if not (isinstance(other, Tensor) and isinstance(input, Tensor)):
        if is_blocked(input):
            blocked: Tensor = input.mul(other)
            return blocked
        input, other = operands("mul", input, other)
    x, y = input._array, other._array
    if x.dtype != y.dtype:
        input, other = operands("mul", input, other)
        x, y = input._array, other._array
    if x.dtype == "bool":
        return recorded("And", (input, other), NO_ATTRIBUTES, kernel("And")(x, y), None)
    out = MUL(x, y)
    if input._node is None and other._node is None and not recording.active:
        return Tensor(out)
    first, second = input._node, other._node
    if recording.active:
        saved = (x, y, x.shape, y.shape)
        return recorded("Mul", (input, other), NO_ATTRIBUTES, out, _mul_gradient, saved)
    if first is None:
        kept: tuple[Any, ...] = (x, None, x.shape, y.shape)
        return linked("Mul", out, _mul_gradient, (None, second), kept, (x.version,))
    if second is None:
        kept = (None, y, x.shape, y.shape)
        return linked("Mul", out, _mul_gradient, (first, None), kept, (y.version,))
    kept = (x, y, x.shape, y.shape)
    return linked("Mul", out, _mul_gradient, (first, second), kept, (x.version, y.version))


def _mul_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y, x_shape, y_shape = record.saved
    return (
        sum_to(MUL(g, y), x_shape) if record.needs(0) else None,
        sum_to(MUL(g, x), y_shape) if record.needs(1) else None,
    )


def div(input: Tensor | float, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """``input / other`` with broadcasting and promotion.

    Args:
        input: the dividend; integers become float32 unless ``rounding_mode`` is given.
        other: the divisor.
        rounding_mode: ``"floor"`` or ``"trunc"`` rounds the quotient, and keeps integers.

    Raises:
        AttributeValueError: another rounding mode.
    """
    if rounding_mode is not None:
        return _rounded_division(input, other, rounding_mode)
    if not (isinstance(other, Tensor) and isinstance(input, Tensor)):
        input, other = operands("div", input, other, dtype=_quotient_dtype(input, other))
    x, y = input._array, other._array
    if x.dtype != y.dtype or category(x.dtype) != 2:
        input, other = operands("div", input, other, dtype=_quotient_dtype(input, other))
        x, y = input._array, other._array
    out = DIV(x, y)
    if input._node is None and other._node is None and not recording.active:
        return Tensor(out)
    saved = (y, out if other._node is not None else None, x.shape)
    return recorded("Div", (input, other), NO_ATTRIBUTES, out, _div_gradient, saved)


def _quotient_dtype(input: Any, other: Any) -> str:
    dtype = result_type(input, other)
    return dtype if category(dtype) == 2 else result_type(input, other, 1.0)


def _div_gradient(record: BackwardRecord, g: Array) -> Gradients:
    y, out, x_shape = record.saved
    quotient = DIV(g, y)
    return (
        sum_to(quotient, x_shape) if record.needs(0) else None,
        None if out is None else NEG(sum_to(MUL(quotient, out), y.shape)),
    )


def rdiv(input: Tensor, other: Any) -> Tensor:
    """``other / input``."""
    return div(other, input)


def _rounded_division(input: Any, other: Any, mode: str) -> Tensor:
    from onemodel_tensors.ops.division import floor_divide, trunc_divide

    if mode == "floor":
        return floor_divide(input, other)
    if mode == "trunc":
        return trunc_divide(input, other)
    raise AttributeValueError(f"div: expected rounding_mode None, 'floor' or 'trunc', got {mode!r}")


def neg(input: Tensor) -> Tensor:
    """``-input``; the smallest integer wraps to itself.

    Raises:
        DtypeError: the tensor is bool.
    """
    x = input._array
    if x.dtype == "bool":
        raise DtypeError("neg: expected numbers, got a bool tensor; use ~ or logical_not")
    return recorded("Neg", (input,), NO_ATTRIBUTES, NEG(x), _neg_gradient)


def _neg_gradient(_: BackwardRecord, g: Array) -> Gradients:
    return (NEG(g),)


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    product = mul(tensor1, tensor2)
    return add(input, product if value == 1 else mul(product, value))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    quotient = div(tensor1, tensor2)
    return add(input, quotient if value == 1 else mul(quotient, value))


def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """``input + weight * (end - input)``."""
    return add(input, mul(sub(end, input), weight))
