"""One tensor as several, each a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import array_of, link_outputs, recorded_outputs
from onemodel_tensors.autograd.mode import is_grad_enabled
from onemodel_tensors.ops.arrays import zeros
from onemodel_tensors.ops.sizes import axis_of, example, size_of, sizes_of
from onemodel_tensors.ops.slicing import select
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor, ViewOf

__all__ = ["chunk", "split", "tensor_split", "unbind"]


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of an axis.

    Args:
        tensor: any tensor.
        split_size_or_sections: the extent of each part but perhaps the last, or a list of all extents.
        dim: the axis.

    Raises:
        ShapeError: the extents do not sum up to the axis's.
    """
    axis = axis_of(dim, tensor._array.ndim, "split")
    extent = tensor._array.shape[axis]
    if isinstance(split_size_or_sections, (list, tuple)):
        return _split(tensor, axis, sizes_of((tuple(split_size_or_sections),)))
    size = size_of(split_size_or_sections)
    step = example(size)
    if step < 0 or (step == 0 and extent):
        raise AttributeValueError(f"split: expected a positive size, got {size}")
    if type(size) is not int and step and extent % step == 0:
        return _split(tensor, axis, (size,) * (extent // step))
    return _split(
        tensor, axis, tuple([min(step, extent - at) for at in range(0, extent, step or 1)]) or (0,)
    )


def _split(tensor: Tensor, axis: int, sizes: tuple[Any, ...]) -> tuple[Tensor, ...]:
    source = tensor._array
    counts = [example(size) for size in sizes]
    if sum(counts) != source.shape[axis] or any(c < 0 for c in counts):
        raise ShapeError(
            f"split: expected extents that sum up to {source.shape[axis]}, axis {axis} of shape {source.shape}, "
            f"got {sizes}"
        )
    replays = []
    at = 0
    for count in counts:
        replays.append(_Part(axis, at, at + count))
        at += count
    arrays = [replay(source) for replay in replays]
    attributes = {"axis": axis, "split": sizes}
    outs = recorded_outputs(
        "Split", (tensor,), attributes, arrays, _split_gradient, (source.shape, replays)
    )
    _make_views(tensor, outs, replays)
    return outs


def _make_views(
    source: Tensor, outs: tuple[Tensor, ...], replays: Sequence[Callable[[Array], Array]]
) -> None:
    if is_grad_enabled():
        for out, replay in zip(outs, replays):
            if out._trace is None:
                out._view = ViewOf.of(source, out, replay)


class _Part:
    """One part of an axis, as a function of arrays."""

    __slots__ = ("axis", "start", "stop")

    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis = axis
        self.start = start
        self.stop = stop

    def __call__(self, array: Array) -> Array:
        return array.slice(self.axis, self.start, self.stop, 1)


def _split_gradient(record: BackwardRecord, *gradients: Array | None) -> Gradients:
    present = [g for g in gradients if g is not None]
    if len(present) == record.outputs:
        return (array_of("Concat", *present, axis=record.attributes["axis"]),)
    shape, replays = record.saved
    whole = zeros(shape, present[0].dtype)
    for g, replay in zip(gradients, replays):
        if g is not None:
            replay(whole).copy_from(g)
    return (whole,)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts of an axis, all of one extent but perhaps the last.

    Raises:
        AttributeValueError: ``chunks`` is below 1.
    """
    if chunks < 1:
        raise AttributeValueError(f"chunk: expected at least 1 chunk, got {chunks}")
    axis = axis_of(dim, input._array.ndim, "chunk")
    return split(input, max(1, -(-input._array.shape[axis] // chunks)), axis)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts of nearly one extent, or parts that end at given positions."""
    axis = axis_of(dim, input._array.ndim, "tensor_split")
    extent = input._array.shape[axis]
    if isinstance(indices_or_sections, (list, tuple)):
        ends = [slice(None, end).indices(extent)[1] for end in indices_or_sections]
        edges = [0, *ends, extent]
        return tuple([input.narrow(axis, a, max(0, b - a)) for a, b in pairwise(edges)])
    sections = int(indices_or_sections)
    if sections < 1:
        raise AttributeValueError(f"tensor_split: expected at least 1 section, got {sections}")
    small, larger = divmod(extent, sections)
    return _split(input, axis, tuple([small + (n < larger) for n in range(sections)]))


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A view of each position along an axis, without the axis."""
    source = input._array
    axis = axis_of(dim, source.ndim, "unbind")
    if input._asked() is not None:
        return tuple([select(input, axis, position) for position in range(input.shape[axis])])
    replays = [_Position(axis, position) for position in range(source.shape[axis])]
    outs = tuple([Tensor(replay(source)) for replay in replays])
    saved = (source.shape, replays)
    link_outputs("Unbind", (input,), {"axis": axis}, outs, _unbind_gradient, saved)
    _make_views(input, outs, replays)
    return outs


class _Position:
    """One position along an axis, as a function of arrays."""

    __slots__ = ("axis", "position")

    def __init__(self, axis: int, position: int) -> None:
        self.axis = axis
        self.position = position

    def __call__(self, array: Array) -> Array:
        return array.select(self.axis, self.position)


def _unbind_gradient(record: BackwardRecord, *gradients: Array | None) -> Gradients:
    axis = record.attributes["axis"]
    apart = [None if g is None else g.unsqueeze((axis,)) for g in gradients]
    if all(g is not None for g in apart):
        return (array_of("Concat", *apart, axis=axis),)
    shape, replays = record.saved
    whole = zeros(shape, next(g.dtype for g in gradients if g is not None))
    for g, replay in zip(gradients, replays):
        if g is not None:
            replay(whole).copy_from(g)
    return (whole,)
