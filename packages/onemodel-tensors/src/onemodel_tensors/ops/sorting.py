"""Order along an axis. Equal elements keep their order: the lowest index first. NaN counts as largest."""

from __future__ import annotations

from typing import Any, NamedTuple

from onemodel_kernels import Array
from onemodel_kernels.errors import BoundsError
from onemodel_tensors.apply import kernel, recorded_outputs
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arrays import zeros
from onemodel_tensors.ops.comparison import ne
from onemodel_tensors.ops.selection import where
from onemodel_tensors.ops.sizes import axis_of, example, size_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["ValuesAndIndices", "argsort", "median", "msort", "sort", "topk"]


class ValuesAndIndices(NamedTuple):
    """Values, and the int64 positions along the axis that they came from."""

    values: Tensor
    indices: Tensor


def topk(
    input: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesAndIndices:
    """The ``k`` largest or smallest elements along an axis, in order.

    Args:
        input: any tensor of numbers.
        k: how many; at most the axis's extent.
        dim: the axis.
        largest: the largest, else the smallest.
        sorted: accepted for compatibility: the result is always in order.

    Raises:
        BoundsError: ``k`` is negative or above the extent.
    """
    if input._array.ndim == 0:
        values, indices = topk(input.reshape(1), k, 0, largest, sorted)
        return ValuesAndIndices(values.reshape(()), indices.reshape(()))
    axis = axis_of(dim, input._array.ndim, "topk")
    x = input._array
    size = size_of(k)
    count = example(size)
    if not 0 <= count <= x.shape[axis]:
        raise BoundsError(
            f"topk: expected k in [0, {x.shape[axis]}] for axis {axis} of shape {x.shape}, got {count}"
        )
    order = {"axis": axis, "largest": int(largest), "sorted": 1}
    values, indices = kernel("TopK", k=count, **order)(x)
    attributes = {"k": size, **order}
    gradient = _topk_gradient if x.dtype in FLOATING else None
    outs = recorded_outputs(
        "TopK", (input,), attributes, (values, indices), gradient, (indices, x.shape), 1
    )
    return ValuesAndIndices(*outs)


def _topk_gradient(record: BackwardRecord, g: Array | None, _: Array | None) -> Gradients:
    indices, shape = record.saved
    if g is None:
        return (None,)
    scatter = kernel("ScatterElements", axis=record.attributes["axis"], reduction="none")
    return (scatter(zeros(shape, g.dtype), indices, g),)


def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True
) -> ValuesAndIndices:
    """All elements along an axis in ascending or descending order; always stable.

    Args:
        input: any tensor of numbers.
        dim: the axis.
        descending: the largest first.
        stable: accepted for compatibility.
    """
    extent: Any = input.shape[dim] if input._array.ndim else 1
    return topk(input, extent, dim, descending)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that :func:`sort` takes elements from."""
    return sort(input, dim, descending, stable).indices


def msort(input: Tensor) -> Tensor:
    """The elements in ascending order along axis 0."""
    return sort(input, 0).values


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lower of two; with ``dim``, values and positions along the axis.

    NaN comes out where there is one.

    Raises:
        BoundsError: there is no element.
    """
    if dim is None:
        return median(input.reshape(-1), 0).values
    x = input if input._array.ndim else input.reshape(1)
    axis = axis_of(dim, x._array.ndim, "median")
    if not x._array.shape[axis]:
        raise BoundsError(
            f"median: expected an element along axis {axis} of shape {x._array.shape}"
        )
    ordered = sort(x, axis)
    middle = (x._array.shape[axis] - 1) // 2
    last = ordered.values.narrow(axis, x._array.shape[axis] - 1, 1)
    values = where(ne(last, last), last, ordered.values.narrow(axis, middle, 1))
    indices = where(
        ne(last, last),
        ordered.indices.narrow(axis, x._array.shape[axis] - 1, 1),
        ordered.indices.narrow(axis, middle, 1),
    )
    if not keepdim or not input._array.ndim:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return ValuesAndIndices(values, indices)
