"""Other shapes for the same elements in the same order. Results share the storage wherever strides allow it."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import ShapeError
from onemodel_tensors.apply import recorded, recorded_view
from onemodel_tensors.ops.sizes import axes_of, axis_of, examples, listed, sizes_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "flatten",
    "ravel",
    "reshape",
    "squeeze",
    "unflatten",
    "unsqueeze",
    "view",
]


def _resolved(shape: tuple[int, ...], wanted: tuple[int, ...], what: str) -> tuple[int, ...]:
    """The target shape with its -1 computed."""
    count = 1
    for extent in shape:
        count *= extent
    known, open_axis = 1, -1
    for axis, extent in enumerate(wanted):
        if extent == -1 and open_axis < 0:
            open_axis = axis
        elif extent < 0:
            raise ShapeError(
                f"{what}: expected extents of at least 0 and at most one -1, got {wanted}"
            )
        else:
            known *= extent
    if open_axis >= 0:
        if known == 0 or count % known:
            raise ShapeError(
                f"{what}: expected a shape of {count} elements for a tensor of shape {shape}, got {wanted}"
            )
        return (*wanted[:open_axis], count // known, *wanted[open_axis + 1 :])
    if known != count:
        raise ShapeError(
            f"{what}: expected a shape of {count} elements for a tensor of shape {shape}, got {wanted}"
        )
    return wanted


def _reshape(input: Tensor, sizes: tuple[Any, ...], may_copy: bool, what: str) -> Tensor:
    source = input._array
    shape = _resolved(source.shape, examples(sizes), what)
    array = source.view_or_copy(shape) if may_copy else _viewed(source, shape)
    attributes = {"shape": sizes}
    if array.storage_id == source.storage_id:
        return recorded_view(
            "Reshape",
            input,
            attributes,
            array,
            _reshape_gradient,
            lambda a: a.reshape(shape),
            (source.shape,),
        )
    return recorded("Reshape", (input,), attributes, array, _reshape_gradient, (source.shape,))


def _viewed(source: Array, shape: tuple[int, ...]) -> Array:
    try:
        return source.reshape(shape)
    except ShapeError as error:
        raise ShapeError(
            f"view: expected a shape that the strides {source.strides} of a tensor of shape {source.shape} can express "
            f"without a copy, got {shape}; use reshape() or contiguous()"
        ) from error


def _reshape_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (g.view_or_copy(record.saved[0]),)


def reshape(input: Tensor, shape: Any) -> Tensor:
    """The elements in row-major order under another shape.

    Args:
        input: any tensor.
        shape: the extents; one may be -1 and is then computed. Symbolic sizes are allowed.

    Returns:
        A view where the strides allow it, else a copy.

    Raises:
        ShapeError: the number of elements differs.
    """
    return _reshape(input, sizes_of((shape,)), True, "reshape")


def _reshape_method(input: Tensor, *shape: Any, **given: Any) -> Tensor:
    if given:
        shape = listed(shape, given, "shape", "reshape")
    return _reshape(input, sizes_of(shape), True, "reshape")


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of another tensor."""
    return _reshape(input, other.shape, True, "reshape_as")


def view(input: Tensor, *shape: Any, **given: Any) -> Tensor:
    """As :func:`reshape`, never copying.

    Raises:
        ShapeError: the number of elements differs, or the strides cannot express the shape.
    """
    if given:
        shape = listed(shape, given, "size", "view")
    if len(shape) == 1 and isinstance(shape[0], str):
        from onemodel_tensors.ops.casts import to

        return to(input, shape[0])
    return _reshape(input, sizes_of(shape), False, "view")


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view under the shape of another tensor."""
    return _reshape(input, other.shape, False, "view_as")


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from ``start_dim`` to ``end_dim`` as one; a 0-d tensor gets one axis.

    Raises:
        ShapeError: the last axis comes before the first.
    """
    rank = input._array.ndim
    if rank == 0:
        return _reshape(input, (1,), True, "flatten")
    first, last = axis_of(start_dim, rank, "flatten"), axis_of(end_dim, rank, "flatten")
    if first > last:
        raise ShapeError(
            f"flatten: expected start_dim not after end_dim, got {start_dim} and {end_dim}"
        )
    if first == last:
        return input
    shape = input.shape
    joined = shape[first]
    for extent in shape[first + 1 : last + 1]:
        joined = joined * extent
    return _reshape(input, sizes_of((*shape[:first], joined, *shape[last + 1 :])), True, "flatten")


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One axis as several, of the given extents, one of which may be -1."""
    axis = axis_of(dim, input._array.ndim, "unflatten")
    shape = input.shape
    inner = sizes_of((tuple(sizes),))
    if any(type(s) is int and s == -1 for s in inner):
        inner = _open_filled(shape[axis], inner)
    return _reshape(input, sizes_of((*shape[:axis], *inner, *shape[axis + 1 :])), True, "unflatten")


def _open_filled(extent: Any, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    known: Any = 1
    for size in sizes:
        if not (type(size) is int and size == -1):
            known = known * size
    return tuple([extent // known if type(size) is int and size == -1 else size for size in sizes])


def ravel(input: Tensor) -> Tensor:
    """All elements along one axis."""
    return _reshape(input, (-1,), True, "ravel") if input._array.ndim != 1 else input


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with an axis of extent 1 inserted before axis ``dim``."""
    rank = input._array.ndim
    axis = axis_of(dim, rank + 1, "unsqueeze")
    array = input._array.unsqueeze((axis,))
    return recorded_view(
        "Unsqueeze",
        input,
        {"axes": (axis,)},
        array,
        _reshape_gradient,
        lambda a: a.unsqueeze((axis,)),
        (input._array.shape,),
    )


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """A view without the axes of extent 1, or without those named that have extent 1.

    An axis whose size is symbolic stays, and must then not be 1 in any run; naming it is refused.

    Args:
        input: any tensor.
        dim: an axis or several; ``None`` for all.
    """
    source = input._array
    shape = input.shape
    if dim is None:
        for extent in shape:
            if isinstance(extent, SymbolicSize):
                extent.rely_on("!=", 1, "squeeze without an axis")
    # A named symbolic axis is asked whether it is 1, and refuses to answer: it may be 1 in another run.
    axes = tuple(
        [
            a
            for a in axes_of(dim, source.ndim, "squeeze")
            if (type(shape[a]) is int or dim is not None) and shape[a] == 1
        ]
    )
    if not axes:
        return input
    array = source.squeeze(axes)
    return recorded_view(
        "Squeeze",
        input,
        {"axes": axes},
        array,
        _reshape_gradient,
        lambda a: a.squeeze(axes),
        (source.shape,),
    )


def atleast_1d(input: Tensor) -> Tensor:
    """The tensor, with an axis if it has none."""
    return input if input._array.ndim else _reshape(input, (1,), True, "atleast_1d")


def atleast_2d(input: Tensor) -> Tensor:
    """The tensor with axes of extent 1 in front until it has two."""
    while input._array.ndim < 2:
        input = unsqueeze(input, 0)
    return input


def atleast_3d(input: Tensor) -> Tensor:
    """The tensor with axes of extent 1 until it has three: a matrix gets one behind."""
    input = atleast_2d(input)
    return input if input._array.ndim > 2 else unsqueeze(input, 2)
