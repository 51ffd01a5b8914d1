"""``x[key]`` and ``x[key] = value``.

Ints, slices, ``None`` and ``...`` give views. Integer tensors pick positions; several of them broadcast together, and
their axes come where the first of them stood when they stand side by side, else in front. Bool tensors stand for the
positions where they are true.
"""

from __future__ import annotations

import operator
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import BoundsError, DtypeError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arrays import zeros
from onemodel_tensors.ops.casts import cast_like, to_dtype
from onemodel_tensors.ops.expanding import broadcast_tensors
from onemodel_tensors.ops.gathering import gather_axis, integer_index
from onemodel_tensors.ops.in_place import before_write, write
from onemodel_tensors.ops.joining import stack
from onemodel_tensors.ops.masks import nonzero
from onemodel_tensors.ops.permuting import permute
from onemodel_tensors.ops.reshaping import unsqueeze
from onemodel_tensors.ops.selection import where
from onemodel_tensors.ops.sizes import size_of
from onemodel_tensors.ops.slicing import OPEN_END, OPEN_START, select, slice_axes
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = ["index_put"]

Positions = list[tuple[int, Tensor]]
"""Axes of a view and the integer tensors that index them, in ascending order."""


def getitem(input: Tensor, key: Any) -> Tensor:
    """The part of a tensor that a key names.

    Raises:
        BoundsError: a position is outside its axis, or there are more indices than axes.
        DtypeError: an index has another dtype than an integer one or bool.
        ShapeError: a mask does not have the extents of the axes that it stands for.
    """
    if type(key) is int:
        return select(input, 0, key)
    viewed, positions = _split(input, key)
    return _gathered(viewed, positions) if positions else viewed


def setitem(input: Tensor, key: Any, value: Any) -> None:
    """Write a value, broadcast and cast, into the part of a tensor that a key names.

    Raises:
        OneModelError: the tensor is a leaf that requires a gradient, or a view of one; nothing was written.
        ShapeError: the value does not broadcast to the part.
    """
    before_write(input, "__setitem__")
    if not isinstance(value, Tensor):
        from onemodel_tensors.interop import tensor

        value = tensor(value)
    value = to_dtype(value, input._array.dtype)
    if isinstance(key, Tensor) and key._array.dtype == "bool" and value._array.ndim == 0:
        key._before_read("boolean-mask assignment")
        mask = key.reshape(key._array.shape + (1,) * (input._array.ndim - key._array.ndim))
        write(input, where(mask, value, input), "__setitem__")
        return
    target, positions = _split(input, key)
    if positions:
        write(target, _placed(target, positions, value, False), "__setitem__")
        return
    wanted = target._array.shape
    while value._array.ndim > len(wanted) and value._array.shape[0] == 1:
        value = value.select(0, 0)
    write(target, value.expand(*wanted), "__setitem__")


def _split(input: Tensor, key: Any) -> tuple[Tensor, Positions]:
    """The view that the basic part of a key gives, and the rest."""
    items = _without_ellipsis(input, key if isinstance(key, tuple) else (key,))
    slices: list[tuple[int, Any, Any, int]] = []
    selected: list[tuple[int, Any]] = []
    inserted: list[int] = []
    positions: Positions = []
    axis = 0  # of the input
    place = 0  # of the result of slicing, selecting and inserting
    for item in items:
        if item is None:
            inserted.append(place)
            place += 1
        elif isinstance(item, slice):
            if not (item.start is None and item.stop is None and item.step in (None, 1)):
                slices.append((axis, *_slice_of(item)))
            axis, place = axis + 1, place + 1
        elif isinstance(item, Tensor):
            for index in _positions_of(input, item, axis):
                positions.append((place, index))
                axis, place = axis + 1, place + 1
            if item._array.dtype == "bool" and item._array.ndim == 0:
                inserted.append(place)
                positions.append((place, nonzero(item.reshape(1), as_tuple=True)[0]))
                place += 1
        else:
            selected.append((axis, item))
            axis += 1
    view = input
    if slices:
        view = slice_axes(view, slices)
    for at, index in reversed(selected):
        view = select(view, at, index)
    for at in inserted:
        view = unsqueeze(view, at)
    if view is input and not positions:
        view = slice_axes(input, [])
    return view, positions


def _without_ellipsis(input: Tensor, key: tuple[Any, ...]) -> list[Any]:
    items = [_item(entry) for entry in key]
    used = sum(_axes_used(item) for item in items)
    rank = input._array.ndim
    if used > rank:
        raise BoundsError(
            f"index: expected at most {rank} indices for shape {input._array.shape}, got {used}"
        )
    dots = [n for n, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise BoundsError("index: expected at most one ellipsis")
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * (rank - used), *items[at + 1 :]]


def _item(entry: Any) -> Any:
    if entry is None or entry is Ellipsis or isinstance(entry, (slice, Tensor, SymbolicSize)):
        return entry
    if (
        entry is True
        or entry is False
        or isinstance(entry, (list, range))
        or hasattr(entry, "dtype")
    ):
        from onemodel_tensors.interop import tensor

        if getattr(entry, "ndim", 1) == 0 and str(getattr(entry, "dtype", "")) != "bool":
            return operator.index(entry)
        made = tensor(list(entry) if isinstance(entry, range) else entry)
        return made.long() if made._array.size == 0 and made._array.dtype in FLOATING else made
    return operator.index(entry)


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Tensor) and item._array.dtype == "bool":
        return item._array.ndim
    return 1


def _slice_of(item: slice) -> tuple[Any, Any, int]:
    step = 1 if item.step is None else operator.index(item.step)
    if step >= 0:
        start = 0 if item.start is None else size_of(item.start)
        return start, OPEN_END if item.stop is None else size_of(item.stop), step
    start = OPEN_END if item.start is None else size_of(item.start)
    return start, OPEN_START if item.stop is None else size_of(item.stop), step


def _positions_of(input: Tensor, item: Tensor, axis: int) -> list[Tensor]:
    if item._array.dtype != "bool":
        return [integer_index(item, "index")]
    if item._array.ndim == 0:
        return []
    item._before_read("boolean-mask index")
    wanted = input._array.shape[axis : axis + item._array.ndim]
    if item._array.shape != wanted:
        raise ShapeError(
            f"index: expected a mask of shape {wanted} at axis {axis}, got {item._array.shape}"
        )
    return list(nonzero(item, as_tuple=True))


def _gathered(view: Tensor, positions: Positions) -> Tensor:
    if len(positions) == 1:
        axis, index = positions[0]
        return gather_axis(view, axis, index)
    axes = [axis for axis, _ in positions]
    front = permute(view, (*axes, *[a for a in range(view._array.ndim) if a not in axes]))
    index, rank = _joined(positions)
    picked = gather_nd(front, index)
    return _moved(picked, axes, rank)


def _joined(positions: Positions) -> tuple[Tensor, int]:
    """All indices as one, broadcast together and stacked along a last axis; and their number of axes."""
    indices = broadcast_tensors(*[to_dtype(index, "int64") for _, index in positions])
    return stack(list(indices), -1), indices[0]._array.ndim


def _moved(picked: Tensor, axes: list[int], rank: int) -> Tensor:
    """The indices' axes from the front to where the first of adjacent indexed axes was."""
    first = axes[0]
    if first == 0 or axes != list(range(first, first + len(axes))):
        return picked
    rest = list(range(rank, picked._array.ndim))
    return permute(picked, (*rest[:first], *range(rank), *rest[first:]))


def gather_nd(input: Tensor, index: Tensor) -> Tensor:
    """``input[index[…, 0], index[…, 1], …]`` for the leading axes, as ONNX GatherND."""
    x, i = input._array, index._array
    out = kernel("GatherND", batch_dims=0)(x, i)
    gradient = _gather_nd_gradient if x.dtype in FLOATING else None
    return recorded("GatherND", (input, index), {"batch_dims": 0}, out, gradient, (i, x.shape))


def _gather_nd_gradient(record: BackwardRecord, g: Array) -> Gradients:
    i, shape = record.saved
    return kernel("ScatterND", reduction="add")(zeros(shape, g.dtype), i, g), None


def scatter_nd(input: Tensor, index: Tensor, updates: Tensor, accumulate: bool) -> Tensor:
    """The input with ``updates`` at the leading positions in ``index``, as ONNX ScatterND."""
    reduction = "add" if accumulate else "none"
    x, i, u = input._array, index._array, updates._array
    out = kernel("ScatterND", reduction=reduction)(x, i, u)
    gradient = _scatter_nd_gradient if x.dtype in FLOATING else None
    inputs = (input, index, updates)
    return recorded("ScatterND", inputs, {"reduction": reduction}, out, gradient, (i, u.shape))


def _scatter_nd_gradient(record: BackwardRecord, g: Array) -> Gradients:
    i, shape = record.saved
    kept = g
    if record.attributes["reduction"] == "none":
        kept = kernel("ScatterND", reduction="none")(g, i, zeros(shape, g.dtype))
    return kept, None, kernel("GatherND", batch_dims=0)(g, i) if record.needs(2) else None


def _placed(view: Tensor, positions: Positions, value: Tensor, accumulate: bool) -> Tensor:
    """The view with a value at the indexed positions, out of place."""
    axes = [axis for axis, _ in positions]
    rest = [a for a in range(view._array.ndim) if a not in axes]
    order = (*axes, *rest)
    index, rank = _joined(positions)
    front = permute(view, order)
    kept = [view.shape[a] for a in rest]
    shape = index.shape[:-1]
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    lead = axes[0] if adjacent else 0
    wanted = (*kept[:lead], *shape, *kept[lead:])
    while value._array.ndim > len(wanted) and value._array.shape[0] == 1:
        value = value.select(0, 0)
    value = value.expand(*wanted)
    if lead:
        value = permute(
            value, (*range(lead, lead + rank), *range(lead), *range(lead + rank, len(wanted)))
        )
    placed = scatter_nd(front, index, value, accumulate)
    inverse = [0] * len(order)
    for position, axis in enumerate(order):
        inverse[axis] = position
    return permute(placed, tuple(inverse))


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """The input with ``values`` at positions given by one integer or bool tensor for each leading axis.

    Args:
        input: any tensor.
        indices: a tuple of tensors; ``None`` for an axis that is taken whole.
        values: broadcast to the indexed part, same dtype.
        accumulate: add to what is there, in index order, instead of replacing it.

    Raises:
        DtypeError: the values have another dtype.
    """
    key = tuple([slice(None) if index is None else index for index in indices])
    view, positions = _split(input, key)
    if not positions:
        raise DtypeError(
            "index_put: expected at least one integer or bool tensor among the indices"
        )
    return _placed(view, positions, cast_like(values, input, "index_put"), accumulate)
