"""Parts of tensors as views: slices, single positions, narrow, diagonals, sliding windows."""

from __future__ import annotations

import operator
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, BoundsError, ShapeError
from onemodel_tensors.apply import recorded_view
from onemodel_tensors.ops.arrays import zeros
from onemodel_tensors.ops.sizes import axis_of, example, size_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["diagonal", "narrow", "select", "slice_axes", "unfold"]

OPEN_END = 2**63 - 1
"""What ONNX Slice takes for "to the last element"."""

OPEN_START = -(2**63) + 1
"""What ONNX Slice takes for "to the first element", with a negative step."""


def part_gradient(record: BackwardRecord, g: Array) -> Gradients:
    """The gradient of a view that shows no element twice: zeros, and the gradient where the view is."""
    shape, replay = record.saved
    whole = zeros(shape, g.dtype)
    replay(whole).copy_from(g)
    return (whole,)


def _bounds(extent: int, start: int, end: int, step: int) -> tuple[int, int]:
    """Start and stop as a view takes them, for a start and end that may be negative or too large."""
    begin, stop, _ = slice(start, None if step < 0 and end <= OPEN_START else end, step).indices(
        extent
    )
    if (stop - begin) * step <= 0:
        return 0, 0
    return begin, stop


def slice_axes(input: Tensor, parts: list[tuple[int, Any, Any, int]]) -> Tensor:
    """A view of some positions along some axes.

    Args:
        input: any tensor.
        parts: for each axis its number, start, end and step, as ONNX Slice takes them: negative starts and ends count
            from the end, and those outside the axis are moved to its edge. Starts and ends may be symbolic.

    Raises:
        AttributeValueError: a step is 0.
    """
    source = input._array
    plan: list[tuple[int, int, int, int]] = []
    for axis, start, end, step in parts:
        if step == 0:
            raise AttributeValueError("slice: expected a step other than 0")
        begin, stop = _bounds(source.shape[axis], example(start), example(end), step)
        plan.append((axis, begin, stop, step))

    def replay(array: Array) -> Array:
        for axis, begin, stop, step in plan:
            array = array.slice(axis, begin, stop, step)
        return array

    attributes = {
        "starts": tuple([p[1] for p in parts]),
        "ends": tuple([p[2] for p in parts]),
        "axes": tuple([p[0] for p in parts]),
        "steps": tuple([p[3] for p in parts]),
    }
    saved = (source.shape, replay)
    return recorded_view("Slice", input, attributes, replay(source), part_gradient, replay, saved)


def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """A view of one position along an axis, without the axis.

    Raises:
        BoundsError: the axis has no such position.
    """
    source = input._array
    axis = axis_of(dim, source.ndim, "select")
    position = size_of(index)
    at = example(position)
    extent = source.shape[axis] if source.ndim else 0
    if not -extent <= at < extent:
        raise BoundsError(
            f"select: expected an index in [{-extent}, {extent}) of axis {axis}, got {at}"
        )
    at %= extent

    def replay(array: Array) -> Array:
        return array.select(axis, at)

    attributes = {"axis": axis, "index": position}
    saved = (source.shape, replay)
    return recorded_view("Select", input, attributes, replay(source), part_gradient, replay, saved)


def narrow(input: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """A view of ``length`` positions along an axis, from ``start`` on.

    Raises:
        BoundsError: the axis has no such positions.
    """
    axis = axis_of(dim, input._array.ndim, "narrow")
    first, count = size_of(start), size_of(length)
    extent = input._array.shape[axis]
    if type(first) is int and first < 0:
        first += extent
    if not 0 <= example(first) <= example(first) + example(count) <= extent:
        raise BoundsError(
            f"narrow: expected positions inside axis {axis} of extent {extent}, got start {start} and length {length}"
        )
    return slice_axes(input, [(axis, first, first + count, 1)])


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of a diagonal of two axes, as a new last axis.

    Args:
        input: at least two axes.
        offset: 0 for the main diagonal, positive above, negative below.
        dim1: the axis of rows.
        dim2: the axis of columns.

    Raises:
        ShapeError: the two axes are the same.
    """
    source = input._array
    rows, columns = axis_of(dim1, source.ndim, "diagonal"), axis_of(dim2, source.ndim, "diagonal")
    if rows == columns or source.ndim < 2:
        raise ShapeError(
            f"diagonal: expected two distinct axes of shape {source.shape}, got {dim1} and {dim2}"
        )

    def replay(array: Array) -> Array:
        return array.diagonal(offset, rows, columns)

    attributes = {"offset": offset, "dim1": rows, "dim2": columns}
    saved = (source.shape, replay)
    return recorded_view(
        "Diagonal", input, attributes, replay(source), part_gradient, replay, saved
    )


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of ``size`` elements along an axis, ``step`` apart, the window as a new last axis.

    Raises:
        ShapeError: the window does not fit.
    """
    from onemodel_tensors.interop import tensor
    from onemodel_tensors.ops.gathering import gather_axis
    from onemodel_tensors.ops.permuting import movedim

    axis = axis_of(dimension, input._array.ndim, "unfold")
    extent = operator.index(input.shape[axis])
    if size > extent or size < 0 or step < 1:
        raise ShapeError(
            f"unfold: expected a size in [0, {extent}] and a step of at least 1, got {size} and {step}"
        )
    starts = range(0, extent - size + 1, step)
    index = tensor([[start + k for k in range(size)] for start in starts], dtype="int64").reshape(
        len(starts), size
    )
    return movedim(gather_axis(input, axis, index), axis + 1, -1)
