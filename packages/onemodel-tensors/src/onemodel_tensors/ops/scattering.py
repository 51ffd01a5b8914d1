"""Writing at positions given by integer tensors, out of place. Duplicate positions are taken in index order."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError, UnsupportedError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arrays import DIV, EQUAL, MUL, masked, number, zeros
from onemodel_tensors.ops.casts import cast_like
from onemodel_tensors.ops.gathering import integer_index
from onemodel_tensors.ops.promotion import operands
from onemodel_tensors.ops.sizes import axis_of
from onemodel_tensors.ops.slicing import slice_axes
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["index_add", "index_copy", "index_fill", "scatter", "scatter_add", "scatter_reduce"]

_REDUCTIONS = {
    None: "none",
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}


def _scatter(input: Tensor, dim: int, index: Tensor, src: Any, reduction: str, what: str) -> Tensor:
    index = integer_index(index, what)
    rank = input._array.ndim
    axis = axis_of(dim, rank, what)
    if not isinstance(src, Tensor):
        (value,) = operands(what, src, dtype=input._array.dtype)
        src = value.expand(*index.shape)
    src = cast_like(src, input, what)
    shape, wanted, have = input._array.shape, index._array.shape, src._array.shape
    if (
        len(wanted) != rank
        or len(have) != rank
        or any(
            w > h or (a != axis and w > s) for a, (w, h, s) in enumerate(zip(wanted, have, shape))
        )
    ):
        raise ShapeError(
            f"{what}: expected an index not larger than the source {have} and, but for axis {axis}, than the input "
            f"{shape}, got index shape {wanted}"
        )
    if have != wanted:
        src = slice_axes(src, [(a, 0, w, 1) for a, (w, h) in enumerate(zip(wanted, have)) if w < h])
    x, i, s = input._array, index._array, src._array
    out = kernel("ScatterElements", axis=axis, reduction=reduction)(x, i, s)
    saved: tuple[Any, ...] = (i, x.shape)
    if reduction not in ("none", "add"):
        saved = (i, x.shape, x, s, out)
    gradient = _scatter_gradient if x.dtype in FLOATING else None
    attributes = {"axis": axis, "reduction": reduction}
    return recorded("ScatterElements", (input, index, src), attributes, out, gradient, saved)


def _scatter_gradient(record: BackwardRecord, g: Array) -> Gradients:
    axis, reduction = record.attributes["axis"], record.attributes["reduction"]
    i = record.saved[0]
    gather = kernel("GatherElements", axis=axis)
    if reduction == "add":
        return g, None, gather(g, i) if record.needs(2) else None
    if reduction == "none":
        scatter = kernel("ScatterElements", axis=axis, reduction="none")
        kept = scatter(g, i, zeros(i.shape, g.dtype)) if record.needs(0) else None
        return kept, None, gather(g, i) if record.needs(2) else None
    _, _, x, s, out = record.saved
    if reduction == "mul":
        return DIV(MUL(g, out), x), None, DIV(gather(MUL(g, out), i), s)
    return _extremum_gradient(g, i, x, s, out, axis)


def _extremum_gradient(g: Array, i: Array, x: Array, s: Array, out: Array, axis: int) -> Gradients:
    """Each result's gradient in equal parts to all the elements that equal it."""
    gather = kernel("GatherElements", axis=axis)
    one = number(1.0, g.dtype)
    own = masked(EQUAL(x, out), one)
    theirs = masked(EQUAL(s, gather(out, i)), one)
    count = kernel("ScatterElements", axis=axis, reduction="add")(own.contiguous(), i, theirs)
    share = DIV(g, count)
    return MUL(share, own), None, MUL(gather(share, i), theirs)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Tensor:
    """The input with ``out[i, …, index[i, j, …], …] = src[i, j, …]``.

    Args:
        input: any tensor.
        dim: the axis of the positions.
        index: int64 or int32, as many axes as the input.
        src: tensor at least as large as the index, or a number.
        value: a number instead of ``src``.
        reduce: ``None`` replaces; ``"add"`` and ``"multiply"`` combine with what is there.

    Raises:
        ShapeError: index or source do not fit.
        BoundsError: a position is outside the axis.
        AttributeValueError: another reduction.
    """
    if reduce not in (None, "add", "multiply"):
        raise AttributeValueError(
            f"scatter: expected reduce None, 'add' or 'multiply', got {reduce!r}"
        )
    return _scatter(
        input, dim, index, value if src is None else src, _REDUCTIONS[reduce], "scatter"
    )


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """The input with the source's elements added at the index's positions."""
    return _scatter(input, dim, index, src, "add", "scatter_add")


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The input combined with the source at the index's positions.

    Args:
        input: any tensor.
        dim: the axis of the positions.
        index: int64 or int32.
        src: at least as large as the index.
        reduce: ``"sum"``, ``"prod"``, ``"amax"`` or ``"amin"``.
        include_self: must be true.

    Raises:
        AttributeValueError: another reduction.
        UnsupportedError: ``include_self`` is false.
    """
    if not include_self:
        raise UnsupportedError(
            "scatter_reduce: expected include_self=True: without it there is no ONNX operator"
        )
    if reduce not in ("sum", "prod", "amax", "amin"):
        raise AttributeValueError(
            f"scatter_reduce: expected 'sum', 'prod', 'amax' or 'amin', got {reduce!r}"
        )
    return _scatter(input, dim, index, src, _REDUCTIONS[reduce], "scatter_reduce")


def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1
) -> Tensor:
    """The input with slices of the source added at positions of an axis.

    Args:
        input: any tensor.
        dim: the axis.
        index: (K,), int64 or int32.
        source: the input's shape with K in place of the axis.
        alpha: a factor of the source.
    """
    index = integer_index(index, "index_add")
    axis = axis_of(dim, input._array.ndim, "index_add")
    src = cast_like(source if alpha == 1 else source * alpha, input, "index_add")
    shape = input._array.shape
    wanted = (*shape[:axis], index._array.size, *shape[axis + 1 :])
    if index._array.ndim != 1 or src._array.shape != wanted:
        raise ShapeError(
            f"index_add: expected a 1-D index and a source of shape {wanted}, got {index._array.shape} and "
            f"{src._array.shape}"
        )
    x, i, s = input._array, index._array, src._array
    out = kernel("IndexAdd", axis=axis)(x, i, s)
    gradient = _index_add_gradient if x.dtype in FLOATING else None
    return recorded("IndexAdd", (input, index, src), {"axis": axis}, out, gradient, (i,))


def _index_add_gradient(record: BackwardRecord, g: Array) -> Gradients:
    gather = kernel("Gather", axis=record.attributes["axis"])
    return g, None, gather(g, record.saved[0]) if record.needs(2) else None


def _along(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """A 1-D index as one for :func:`scatter`."""
    shape = input.shape
    rank = input._array.ndim
    lifted = index.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))
    return lifted.expand(*shape[:axis], index.shape[0], *shape[axis + 1 :])


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The input with slices of an axis replaced by those of the source."""
    axis = axis_of(dim, input._array.ndim, "index_copy")
    return scatter(input, axis, _along(input, axis, integer_index(index, "index_copy")), source)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """The input with slices of an axis filled with one value."""
    axis = axis_of(dim, input._array.ndim, "index_fill")
    return scatter(input, axis, _along(input, axis, integer_index(index, "index_fill")), value)
