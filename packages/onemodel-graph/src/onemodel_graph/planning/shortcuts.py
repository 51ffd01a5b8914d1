"""Operators that, on the shapes at hand, only show memory that is there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onemodel_graph.planning.slot import Shape, Slot, contiguous_strides, count
from onemodel_kernels.ops import Call
from onemodel_kernels.ops.extents import slice_bounds
from onemodel_kernels.ops.movement import slice_parts, split_sizes
from onemodel_kernels.ops.shapes import permutation

Shortcut = Callable[[Slot, Call, Sequence[Slot | None]], "tuple[Slot, ...] | None"]


def view(source: Slot, shape: Shape, offset: int = 0) -> Slot:
    """Contiguous elements of a run-time slot from an offset on, in another shape."""
    slot = Slot(source.dtype, shape)
    slot.base = source.root
    slot.offset = source.offset + offset
    return slot


def _cast(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    return (source,) if call["to"] == source.dtype else None


def _expand(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    target = call["shape"]
    target = (target,) if isinstance(target, int) else tuple(target)
    lead = len(target) - len(source.shape)
    padded = (1,) * max(lead, 0) + source.shape
    whole = (1,) * max(-lead, 0) + target
    if any(want not in (1, have) for want, have in zip(whole, padded, strict=True)):
        return None
    return (source,) if padded == source.shape else (view(source, padded),)


def _transpose(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    """Axes of extent 1 may change places without moving an element."""
    perm = permutation(call)
    moved = [axis for axis in perm if source.shape[axis] != 1]
    if moved != sorted(moved):
        return None
    return (view(source, tuple(source.shape[axis] for axis in perm)),)


def _slice(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    """Whole axes, and a run of one axis before which all extents are 1."""
    shape = list(source.shape)
    strides = contiguous_strides(source.shape)
    offset = 0
    for axis, start, end, step in slice_parts(call):
        begin, stop, stride = slice_bounds(source.shape[axis], start, end, step)
        length = len(range(begin, stop, stride))
        if length == source.shape[axis] and (stride == 1 or length == 1):
            continue
        if (stride != 1 and length > 1) or count(source.shape[:axis]) != 1 or length == 0:
            return None
        shape[axis] = length
        offset += begin * strides[axis]
    result = tuple(shape)
    return (source,) if result == source.shape else (view(source, result, offset),)


def _split(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    axis = call.axis()
    if count(source.shape[:axis]) != 1:
        return None
    inner = count(source.shape[axis + 1 :])
    parts = []
    start = 0
    for size in split_sizes(call):
        shape = (*source.shape[:axis], size, *source.shape[axis + 1 :])
        parts.append(view(source, shape, start * inner if size else 0))
        start += size
    return tuple(parts)


def _gather(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    """One known index of an axis before which all extents are 1."""
    index = inputs[1]
    if index is None or index.array is None or index.array.size != 1:
        return None
    axis = call.axis()
    extent = source.shape[axis]
    at = index.array.reshape(()).item()
    if count(source.shape[:axis]) != 1 or not -extent <= at < extent:
        return None
    at += extent if at < 0 else 0
    shape = (*source.shape[:axis], *index.shape, *source.shape[axis + 1 :])
    return (view(source, shape, at * count(source.shape[axis + 1 :])),)


def _concat(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    """One input that is not empty."""
    axis = call.axis()
    full = [slot for slot in inputs if slot is not None and slot.shape[axis] != 0]
    return (full[0],) if len(full) == 1 and full[0].array is None else None


def _tile(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    repeats = call["repeats"]
    repeats = (repeats,) if isinstance(repeats, int) else repeats
    return (source,) if all(n == 1 for n in repeats) else None


def _pad(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    return (source,) if not any(call["pads"]) else None


def _single(source: Slot, call: Call, inputs: Sequence[Slot | None]) -> tuple[Slot, ...] | None:
    return (source,) if len(inputs) == 1 else None


SHORTCUTS: dict[str, Shortcut] = {
    "Cast": _cast,
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "Max": _single,
    "Mean": _single,
    "Min": _single,
    "Pad": _pad,
    "Slice": _slice,
    "Split": _split,
    "Sum": _single,
    "Tile": _tile,
    "Transpose": _transpose,
}
"""By operator; each gets the first input, which is known at run time only."""
BY_EXTENTS = frozenset(SHORTCUTS) - {"Cast", "Max", "Mean", "Min", "Pad", "Sum", "Tile"}
"""Those that look at the extents at hand."""
__all__ = ["BY_EXTENTS", "SHORTCUTS", "view"]
