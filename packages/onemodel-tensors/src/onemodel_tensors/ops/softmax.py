"""Softmax and its logarithm. Each row is computed from its maximum, one exponential and one sum."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import dtype_of
from onemodel_tensors.ops.arithmetic import neg
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.promotion import require_floating
from onemodel_tensors.ops.sizes import axis_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["log_softmax", "softmax", "softmin"]


def _rows(operator: str, input: Tensor, dim: int | None, dtype: Any) -> Tensor:
    x = input if dtype is None else to_dtype(input, dtype_of(dtype))
    require_floating(x, operator.lower())
    rank = x._array.ndim
    if dim is None:
        dim = 0 if rank in (0, 1, 3) else 1
    if rank == 0:
        return _rows(operator, x.reshape(1), 0, None).reshape(())
    axis = axis_of(dim, rank, operator.lower())
    out = kernel(operator, axis=axis)(x._array)
    return recorded(operator, (x,), {"axis": axis}, out, _rows_gradient, (out,))


def _rows_gradient(record: BackwardRecord, g: Array) -> Gradients:
    name = f"{record.operator}Grad"
    return (kernel(name, axis=record.attributes["axis"])(record.saved[0], g),)


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``e**x / sum(e**x)`` along an axis; a row of -inf gives NaN.

    Args:
        input: floating point.
        dim: the axis.
        dtype: cast first.

    Raises:
        DtypeError: the tensor holds integers.
    """
    return _rows("Softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``x - log(sum(e**x))`` along an axis; see :func:`softmax`."""
    return _rows("LogSoftmax", input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The softmax of ``-x``."""
    return softmax(neg(input), dim, dtype)
