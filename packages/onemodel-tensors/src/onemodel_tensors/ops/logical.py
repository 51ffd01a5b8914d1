"""Logical and bitwise operators, and tests for special values. They have no gradient."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arrays import NOT
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.promotion import operands
from onemodel_tensors.record import NO_ATTRIBUTES
from onemodel_tensors.tensor import Tensor

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "isfinite",
    "isinf",
    "isnan",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]


def logical_not(input: Tensor) -> Tensor:
    """``not x``; numbers are first compared with 0."""
    x = to_dtype(input, "bool")
    return recorded("Not", (x,), NO_ATTRIBUTES, NOT(x._array), None)


def _logical(operator: str, input: Tensor, other: Tensor) -> Tensor:
    a, b = to_dtype(input, "bool"), to_dtype(other, "bool")
    out = kernel(operator)(a._array, b._array)
    return recorded(operator, (a, b), NO_ATTRIBUTES, out, None)


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """``input and other``."""
    return _logical("And", input, other)


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """``input or other``."""
    return _logical("Or", input, other)


def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Whether exactly one is true."""
    return _logical("Xor", input, other)


def _bitwise(operator: str, on_bools: str, input: Any, other: Any) -> Tensor:
    a, b = operands(operator, input, other)
    dtype = a._array.dtype
    if dtype in FLOATING:
        raise DtypeError(f"{operator}: expected integers or bools, got {dtype}")
    name = on_bools if dtype == "bool" else operator
    return recorded(name, (a, b), NO_ATTRIBUTES, kernel(name)(a._array, b._array), None)


def bitwise_and(input: Any, other: Any) -> Tensor:
    """``input & other``: bit by bit for integers, logical for bools."""
    return _bitwise("BitwiseAnd", "And", input, other)


def bitwise_or(input: Any, other: Any) -> Tensor:
    """``input | other``: bit by bit for integers, logical for bools."""
    return _bitwise("BitwiseOr", "Or", input, other)


def bitwise_xor(input: Any, other: Any) -> Tensor:
    """``input ^ other``: bit by bit for integers, logical for bools."""
    return _bitwise("BitwiseXor", "Xor", input, other)


def bitwise_not(input: Tensor) -> Tensor:
    """``~input``: bit by bit for integers, logical for bools."""
    dtype = input._array.dtype
    if dtype == "bool":
        return logical_not(input)
    if dtype in FLOATING:
        raise DtypeError(f"bitwise_not: expected integers or bools, got {dtype}")
    out = kernel("BitwiseNot")(input._array)
    return recorded("BitwiseNot", (input,), NO_ATTRIBUTES, out, None)


def _shift(direction: str, input: Any, other: Any) -> Tensor:
    a, b = operands("shift", input, other)
    out = kernel("BitShift", direction=direction)(a._array, b._array)
    return recorded("BitShift", (a, b), {"direction": direction}, out, None)


def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """``input << other``."""
    return _shift("LEFT", input, other)


def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """``input >> other``."""
    return _shift("RIGHT", input, other)


def _test(input: Tensor, operator: str) -> Tensor:
    if input._array.dtype not in FLOATING:
        out = Array.full(input._array.shape, False, "bool")
        input = to_dtype(input, "float32")
    else:
        out = kernel(operator)(input._array)
    return recorded(operator, (input,), NO_ATTRIBUTES, out, None)


def isnan(input: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return _test(input, "IsNaN")


def isinf(input: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return _test(input, "IsInf")


def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return logical_not(logical_or(isinf(input), isnan(input)))
