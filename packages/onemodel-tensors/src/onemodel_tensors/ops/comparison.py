"""Comparisons, elementwise, to bool. They have no gradient; NaN compares false, and unequal."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Kernel
from onemodel_tensors.apply import recorded
from onemodel_tensors.ops.arrays import (
    EQUAL,
    GREATER,
    GREATER_OR_EQUAL,
    LESS,
    LESS_OR_EQUAL,
)
from onemodel_tensors.ops.logical import logical_not
from onemodel_tensors.ops.promotion import operands
from onemodel_tensors.record import NO_ATTRIBUTES
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = ["allclose", "eq", "equal", "ge", "gt", "isclose", "le", "lt", "ne"]


def _compare(operator: str, kernel: Kernel, input: Any, other: Any) -> Tensor:
    if not (
        isinstance(input, Tensor)
        and isinstance(other, Tensor)
        and input._array.dtype == other._array.dtype
    ):
        input, other = operands(operator.lower(), input, other)
    out = kernel(input._array, other._array)
    return recorded(operator, (input, other), NO_ATTRIBUTES, out, None)


def _comparable(other: Any) -> bool:
    return isinstance(other, (Tensor, int, float, SymbolicSize)) or hasattr(other, "item")


def eq(input: Any, other: Any) -> Tensor:
    """``input == other``."""
    return _compare("Equal", EQUAL, input, other)


def ne(input: Any, other: Any) -> Tensor:
    """``input != other``; true for NaN."""
    return logical_not(eq(input, other))


def _eq(input: Tensor, other: Any) -> Any:
    return eq(input, other) if _comparable(other) else NotImplemented


def _ne(input: Tensor, other: Any) -> Any:
    return ne(input, other) if _comparable(other) else NotImplemented


def lt(input: Any, other: Any) -> Tensor:
    """``input < other``."""
    return _compare("Less", LESS, input, other)


def le(input: Any, other: Any) -> Tensor:
    """``input <= other``."""
    return _compare("LessOrEqual", LESS_OR_EQUAL, input, other)


def gt(input: Any, other: Any) -> Tensor:
    """``input > other``."""
    return _compare("Greater", GREATER, input, other)


def ge(input: Any, other: Any) -> Tensor:
    """``input >= other``."""
    return _compare("GreaterOrEqual", GREATER_OR_EQUAL, input, other)


def isclose(
    input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``, or both equal; with ``equal_nan`` also both NaN."""
    from onemodel_tensors.ops.arithmetic import add, mul, sub
    from onemodel_tensors.ops.logical import isfinite, isnan, logical_and, logical_or
    from onemodel_tensors.ops.mathematics import abs

    a, b = operands("isclose", input, other)
    close = eq(a, b)
    if a.is_floating_point():
        near = le(abs(sub(a, b)), add(mul(abs(b), rtol), atol))
        close = logical_or(close, logical_and(near, isfinite(b)))
        if equal_nan:
            close = logical_or(close, logical_and(isnan(a), isnan(b)))
    return close


def allclose(
    input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether :func:`isclose` is true everywhere."""
    for operand in (input, other):
        if isinstance(operand, Tensor):
            operand._before_read("allclose()")
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and values."""
    input._before_read("equal()")
    other._before_read("equal()")
    if input._array.shape != other._array.shape:
        return False
    return bool(eq(input, other).all())
