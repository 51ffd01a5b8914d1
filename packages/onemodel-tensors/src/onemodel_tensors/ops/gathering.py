"""Elements at positions given by integer tensors."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_tensors.apply import array_of, kernel, recorded
from onemodel_tensors.dtypes import FLOATING, INTEGERS
from onemodel_tensors.ops.arrays import zeros
from onemodel_tensors.ops.sizes import axis_of
from onemodel_tensors.ops.slicing import slice_axes
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["gather", "gather_axis", "index_select", "take", "take_along_dim"]


def integer_index(index: Any, operator: str) -> Tensor:
    """The index as int32 or int64.

    Raises:
        DtypeError: it holds no integers.
    """
    if not isinstance(index, Tensor) or index._array.dtype not in INTEGERS:
        came = index.dtype if isinstance(index, Tensor) else index.__class__.__name__
        raise DtypeError(f"{operator}: expected an integer tensor as index, got {came}")
    if index._array.dtype in ("int64", "int32"):
        return index
    from onemodel_tensors.ops.casts import to_dtype

    return to_dtype(index, "int64")


def gather_axis(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """Slices along an axis, the index's axes in place of it; negative positions count from the end.

    Raises:
        BoundsError: a position is outside the axis.
    """
    index = integer_index(index, "index")
    x, i = input._array, index._array
    out = kernel("Gather", axis=axis)(x, i)
    gradient = _gather_axis_gradient if x.dtype in FLOATING else None
    return recorded("Gather", (input, index), {"axis": axis}, out, gradient, (i, x.shape))


def _gather_axis_gradient(record: BackwardRecord, g: Array) -> Gradients:
    i, shape = record.saved
    axis = record.attributes["axis"]
    return (index_add_zeros(g, i, shape, axis), None)


def index_add_zeros(g: Array, index: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Zeros of a shape plus the slices of ``g`` at positions of an axis, in the index's order."""
    rows = g.view_or_copy((*shape[:axis], index.size, *shape[axis + 1 :]))
    flat = index.view_or_copy((index.size,))
    return array_of("IndexAdd", zeros(shape, g.dtype), flat, rows, axis=axis)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of an axis at the positions in a 1-D integer tensor.

    Args:
        input: any tensor.
        dim: the axis.
        index: (K,), int32 or int64, in ``[0, extent)``.

    Returns:
        The input's shape with K in place of the axis.

    Raises:
        ShapeError: the index has more than one axis.
        BoundsError: a position is outside the axis.
    """
    if index._array.ndim > 1:
        raise ShapeError(
            f"index_select: expected a 1-D index, got shape {index._array.shape}; use input[index]"
        )
    if index._array.ndim == 0:
        index = index.reshape(1)
    axis = axis_of(dim, input._array.ndim, "index_select")
    return gather_axis(input if input._array.ndim else input.reshape(1), axis, index)


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """``out[i, j, …] = input[i, …, index[i, j, …], …]`` with the index at axis ``dim``.

    Args:
        input: any tensor.
        dim: the axis.
        index: int64 or int32, as many axes as the input, in the others not larger.

    Returns:
        The index's shape.

    Raises:
        ShapeError: the index does not fit.
        BoundsError: a position is outside the axis.
    """
    index = integer_index(index, "gather")
    axis = axis_of(dim, input._array.ndim, "gather")
    fitted = _cut(input, index, axis, "gather")
    x, i = fitted._array, index._array
    out = kernel("GatherElements", axis=axis)(x, i)
    gradient = _gather_gradient if x.dtype in FLOATING else None
    return recorded("GatherElements", (fitted, index), {"axis": axis}, out, gradient, (i, x.shape))


def _cut(input: Tensor, index: Tensor, axis: int, operator: str) -> Tensor:
    """The input without the positions of other axes that a smaller index does not reach."""
    have, want = input.shape, index.shape
    if len(have) != len(want) or any(
        w > h for a, (h, w) in enumerate(zip(have, want)) if a != axis
    ):
        raise ShapeError(
            f"{operator}: expected an index with the axes of the input, none but axis {axis} larger than in shape "
            f"{have}, got shape {want}"
        )
    parts = [(a, 0, w, 1) for a, (h, w) in enumerate(zip(have, want)) if a != axis and w < h]
    return slice_axes(input, parts) if parts else input


def _gather_gradient(record: BackwardRecord, g: Array) -> Gradients:
    i, shape = record.saved
    scatter = kernel("ScatterElements", axis=record.attributes["axis"], reduction="add")
    return (scatter(zeros(shape, g.dtype), i, g), None)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As :func:`gather`, with the other axes of input and index broadcast; ``dim=None`` flattens both."""
    if dim is None:
        return gather(input.ravel(), 0, indices.ravel())
    from onemodel_tensors.ops.expanding import broadcast_shapes, expand

    axis = axis_of(dim, input._array.ndim, "take_along_dim")
    x, i = list(input.shape), list(indices.shape)
    if len(x) != len(i):
        raise ShapeError(
            f"take_along_dim: expected as many axes in the index as in {tuple(x)}, got {tuple(i)}"
        )
    at, count = x[axis], i[axis]
    x[axis] = i[axis] = 1
    common = list(broadcast_shapes(tuple(x), tuple(i)))
    common[axis] = at
    wide = expand(input, *common)
    common[axis] = count
    return gather(wide, axis, expand(indices, *common))


def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at positions in the flattened input; the index's shape."""
    return gather_axis(input.ravel(), 0, index)
