"""Running sums and products."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING, dtype_of
from onemodel_tensors.ops.arithmetic import mul
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.joining import stack
from onemodel_tensors.ops.sizes import axis_of
from onemodel_tensors.ops.splitting import unbind
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["cumprod", "cumsum"]


def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The sum of each element and all before it along an axis; bools and integers as int64.

    Determinism: added one after the other, in order.
    """
    if dtype is not None:
        x = to_dtype(input, dtype_of(dtype))
    else:
        x = input if input._array.dtype in FLOATING else to_dtype(input, "int64")
    if x._array.ndim == 0:
        return x.clone()
    attributes = {"axis": axis_of(dim, x._array.ndim, "cumsum"), "exclusive": 0, "reverse": 0}
    out = kernel("CumSum", **attributes)(x._array)
    gradient = _cumsum_gradient if out.dtype in FLOATING else None
    return recorded("CumSum", (x,), attributes, out, gradient)


def _cumsum_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (kernel("CumSum", axis=record.attributes["axis"], exclusive=0, reverse=1)(g),)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The product of each element and all before it along an axis; bools and integers as int64.

    Composed of one product for each position, so it suits short axes, as schedules have.

    Determinism: multiplied one after the other, in order.
    """
    if dtype is not None:
        x = to_dtype(input, dtype_of(dtype))
    else:
        x = input if input._array.dtype in FLOATING else to_dtype(input, "int64")
    if x._array.ndim == 0 or x._array.size == 0:
        return x.clone()
    axis = axis_of(dim, x._array.ndim, "cumprod")
    parts = list(unbind(x, axis))
    for position in range(1, len(parts)):
        parts[position] = mul(parts[position - 1], parts[position])
    return stack(parts, axis)
