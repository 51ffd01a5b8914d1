"""Other names that PyTorch gives to the same operators."""

from __future__ import annotations

from typing import Any

from onemodel_tensors.ops.arithmetic import div, mul, neg, sub
from onemodel_tensors.ops.bivariate import atan2
from onemodel_tensors.ops.mathematics import abs as _abs
from onemodel_tensors.ops.mathematics import acos, asin, atan, sign, trunc
from onemodel_tensors.ops.permuting import movedim, transpose
from onemodel_tensors.tensor import Tensor

__all__ = [
    "absolute",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "divide",
    "fix",
    "is_floating_point",
    "is_tensor",
    "moveaxis",
    "multiply",
    "negative",
    "numel",
    "sgn",
    "subtract",
    "swapaxes",
    "swapdims",
    "true_divide",
]

absolute = _abs
arccos = acos
arcsin = asin
arctan = atan
arctan2 = atan2
divide = div
fix = trunc
moveaxis = movedim
multiply = mul
negative = neg
sgn = sign
subtract = sub
swapaxes = transpose
swapdims = transpose
true_divide = div


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor of this library."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is one of the floating-point ones."""
    return input.is_floating_point()


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()
