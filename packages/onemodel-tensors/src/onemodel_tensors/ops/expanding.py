"""Repetition: by stride without copies (expand), or with copies (repeat, tile, repeat_interleave)."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import kernel, recorded, recorded_view
from onemodel_tensors.ops.arrays import reduce_sum, sum_to
from onemodel_tensors.ops.reshaping import reshape, unsqueeze
from onemodel_tensors.ops.sizes import axis_of, example, examples, listed, size_of, sizes_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "expand",
    "repeat",
    "repeat_interleave",
    "sum_to_size",
    "tile",
]


def expand(input: Tensor, *sizes: Any, **given: Any) -> Tensor:
    """A view of a larger shape: axes of extent 1 repeat, new axes may come in front.

    Args:
        input: any tensor.
        sizes: the extents; -1 keeps the axis. Symbolic sizes are allowed.
        given: the extents as ``size=…``.

    Raises:
        ShapeError: an axis has another extent than 1 and than asked.
    """
    if given:
        sizes = listed(sizes, given, "size", "expand")
    wanted = sizes_of(sizes)
    source = input._array
    lead = len(wanted) - source.ndim
    if lead < 0:
        raise ShapeError(
            f"expand: expected at least {source.ndim} extents for a tensor of shape {source.shape}, got {wanted}"
        )
    own = input.shape
    kept = tuple(
        [
            own[i - lead] if type(s) is int and s == -1 and i >= lead else s
            for i, s in enumerate(wanted)
        ]
    )
    shape = examples(kept)
    for axis, extent in enumerate(shape):
        have = source.shape[axis - lead] if axis >= lead else 1
        if extent < 0 or (have != 1 and have != extent):
            raise ShapeError(
                f"expand: expected extents that {source.shape} broadcasts to, got {wanted}"
            )
    return recorded_view(
        "Expand",
        input,
        {"shape": kept},
        source.expand(shape),
        _expand_gradient,
        lambda a: a.expand(shape),
        (source.shape,),
    )


def _expand_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (sum_to(g, record.saved[0]),)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """A view with the shape of another tensor."""
    return expand(input, *other.shape)


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """A view of the shape that the tensor broadcasts to."""
    return expand(input, *size)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to.

    Raises:
        ShapeError: they do not broadcast.
    """
    from onemodel_kernels.ops.extents import broadcast_shapes as broadcast

    return broadcast(*shapes)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of one common shape."""
    shape = broadcast_shapes(*[t.shape for t in tensors])
    return tuple([expand(t, *shape) for t in tensors])


def sum_to_size(input: Tensor, *size: Any, **given: Any) -> Tensor:
    """The sum over the axes along which a tensor of that size would have been broadcast to this one.

    Raises:
        ShapeError: no tensor of that size broadcasts to this one.
    """
    if given:
        size = listed(size, given, "size", "sum_to_size")
    shape = sizes_of(size)
    lead = input._array.ndim - len(shape)
    if lead < 0 or any(n != m and example(n) != 1 for n, m in zip(shape, input.shape[lead:])):
        raise ShapeError(
            f"sum_to_size: expected a size that broadcasts to {input._array.shape}, got {shape}"
        )
    axes = [lead + at for at, n in enumerate(shape) if input._array.shape[lead + at] != example(n)]
    result = input.sum(tuple(axes), keepdim=True) if axes else input
    return result.sum(tuple(range(lead))) if lead else result


def repeat(input: Tensor, *repeats: Any, **given: Any) -> Tensor:
    """Copies side by side: axis ``i`` ``repeats[i]`` times, new axes in front.

    Raises:
        ShapeError: there are fewer numbers than axes, or a negative one.
    """
    if given:
        repeats = listed(repeats, given, "repeats", "repeat")
    counts = sizes_of(repeats)
    source = input._array
    if len(counts) < source.ndim or any(c < 0 for c in examples(counts)):
        raise ShapeError(
            f"repeat: expected at least {source.ndim} numbers, none negative, for shape {source.shape}, got {counts}"
        )
    x = input
    while x._array.ndim < len(counts):
        x = unsqueeze(x, 0)
    times = examples(counts)
    out = kernel("Tile", repeats=times)(x._array)
    return recorded("Tile", (x,), {"repeats": counts}, out, _tile_gradient, (x._array.shape, times))


def _tile_gradient(record: BackwardRecord, g: Array) -> Gradients:
    shape, times = record.saved
    split: list[int] = []
    for count, extent in zip(times, shape):
        split += [count, extent]
    parts = g.view_or_copy(tuple(split))
    return (reduce_sum(parts, tuple(range(0, 2 * len(shape), 2)), False).view_or_copy(shape),)


def tile(input: Tensor, *dims: Any, **given: Any) -> Tensor:
    """As :func:`repeat`; with fewer numbers than axes, the first axes are not repeated."""
    if given:
        dims = listed(dims, given, "dims", "tile")
    counts = sizes_of(dims)
    return repeat(input, *((1,) * (input._array.ndim - len(counts)) + counts))


def repeat_interleave(
    input: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element, or each slice along ``dim``, so many times in a row.

    Args:
        input: any tensor.
        repeats: an int for all, or a 1-D integer tensor with one for each slice.
        dim: the axis; ``None`` flattens first.
        output_size: ignored; accepted for compatibility.

    Raises:
        ShapeError: the numbers are not as many as the slices.
    """
    x = input if dim is not None else input.ravel()
    axis = axis_of(0 if dim is None else dim, x._array.ndim, "repeat_interleave")
    if isinstance(repeats, Tensor):
        return _by_counts(x, repeats, axis)
    count = size_of(repeats)
    if example(count) < 0:
        raise AttributeValueError(f"repeat_interleave: expected repeats of at least 0, got {count}")
    shape = x.shape
    spread = expand(unsqueeze(x, axis + 1), *shape[: axis + 1], count, *shape[axis + 1 :])
    return reshape(spread, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _by_counts(input: Tensor, repeats: Tensor, axis: int) -> Tensor:
    from onemodel_tensors.interop import tensor
    from onemodel_tensors.ops.gathering import index_select

    repeats._before_read("repeat_interleave(repeats)")
    counts = repeats._array.tolist()
    extent = input._array.shape[axis]
    counts = (
        [counts] * extent
        if isinstance(counts, int)
        else counts * (extent if len(counts) == 1 else 1)
    )
    if len(counts) != extent or any(c < 0 for c in counts):
        raise ShapeError(
            f"repeat_interleave: expected {extent} numbers of at least 0, got {len(counts)}"
        )
    positions = [position for position, count in enumerate(counts) for _ in range(count)]
    return index_select(input, axis, tensor(positions, dtype="int64"))
