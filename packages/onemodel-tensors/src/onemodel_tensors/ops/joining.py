"""Several tensors as one."""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_kernels import Array
from onemodel_kernels.errors import ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.promotion import result_type
from onemodel_tensors.ops.reshaping import unsqueeze
from onemodel_tensors.ops.sizes import axis_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["cat", "column_stack", "concat", "dstack", "hstack", "stack", "vstack"]


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after the other along an axis.

    Args:
        tensors: at least one; equal shapes but for the axis. Dtypes are promoted.
        dim: the axis.

    Raises:
        ShapeError: there are none, or other extents differ.
    """
    if not tensors:
        raise ShapeError("cat: expected at least one tensor, got none")
    dtype = result_type(*tensors)
    parts = [to_dtype(tensor, dtype) for tensor in tensors]
    shapes = [part._array.shape for part in parts]
    axis = axis_of(dim, len(shapes[0]), "cat")
    for position, shape in enumerate(shapes):
        same = len(shape) == len(shapes[0]) and all(
            a == axis or e == f for a, (e, f) in enumerate(zip(shape, shapes[0]))
        )
        if not same or not shape:
            raise ShapeError(
                f"cat: expected tensors with the axes of {shapes[0]}, equal but for axis {axis}, got {shape} "
                f"at position {position}"
            )
    out = kernel("Concat", axis=axis)(*[part._array for part in parts])
    gradient = _cat_gradient if dtype in FLOATING else None
    extents = tuple([shape[axis] for shape in shapes])
    return recorded("Concat", tuple(parts), {"axis": axis}, out, gradient, (extents,))


def _cat_gradient(record: BackwardRecord, g: Array) -> Gradients:
    axis = record.attributes["axis"]
    found: list[Array | None] = []
    start = 0
    for position, extent in enumerate(record.saved[0]):
        found.append(g.slice(axis, start, start + extent, 1) if record.needs(position) else None)
        start += extent
    return tuple(found)


concat = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis.

    Raises:
        ShapeError: there are none, or the shapes differ.
    """
    if not tensors:
        raise ShapeError("stack: expected at least one tensor, got none")
    axis = axis_of(dim, tensors[0]._array.ndim + 1, "stack")
    first = tensors[0]._array.shape
    for position, tensor in enumerate(tensors):
        if tensor._array.shape != first:
            raise ShapeError(
                f"stack: expected tensors of shape {first}, got {tensor._array.shape} at position {position}"
            )
    return cat([unsqueeze(tensor, axis) for tensor in tensors], axis)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along axis 1, or axis 0 if they have only one."""
    return cat(
        [t if t._array.ndim else t.reshape(1) for t in tensors],
        1 if tensors[0]._array.ndim > 1 else 0,
    )


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors below each other: along axis 0, vectors as rows."""
    return cat([t if t._array.ndim > 1 else t.reshape(1, -1) for t in tensors], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors behind each other: along axis 2."""
    lifted = [t if t._array.ndim > 1 else t.reshape(1, -1) for t in tensors]
    return cat([t if t._array.ndim > 2 else unsqueeze(t, 2) for t in lifted], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side along axis 1, vectors as columns."""
    return cat([t if t._array.ndim > 1 else t.reshape(-1, 1) for t in tensors], 1)
