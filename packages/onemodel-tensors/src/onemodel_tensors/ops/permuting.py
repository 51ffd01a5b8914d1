"""Axes in another order, as views."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import ShapeError
from onemodel_tensors.apply import recorded_view
from onemodel_tensors.ops.sizes import axis_of, listed, sizes_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["adjoint", "movedim", "permute", "swapaxes", "t", "transpose"]


def permute(input: Tensor, dims: Any) -> Tensor:
    """A view whose axis ``i`` is axis ``dims[i]`` of the input.

    Raises:
        ShapeError: ``dims`` does not name each axis once.
    """
    rank = input._array.ndim
    order = tuple([axis_of(axis, rank, "permute") for axis in dims])
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"permute: expected each of {rank} axes once, got {tuple(dims)}")
    return recorded_view(
        "Transpose",
        input,
        {"perm": order},
        input._array.permute(order),
        _permute_gradient,
        lambda a: a.permute(order),
    )


def _permute_gradient(record: BackwardRecord, g: Array) -> Gradients:
    order = record.attributes["perm"]
    inverse = [0] * len(order)
    for position, axis in enumerate(order):
        inverse[axis] = position
    return (g.permute(tuple(inverse)),)


def _permute_method(input: Tensor, *dims: Any, **given: Any) -> Tensor:
    if given:
        dims = listed(dims, given, "dims", "permute")
    return permute(input, sizes_of(dims))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two axes exchanged."""
    rank = input._array.ndim
    order = list(range(rank or 1))
    a, b = axis_of(dim0, rank, "transpose"), axis_of(dim1, rank, "transpose")
    order[a], order[b] = order[b], order[a]
    return permute(input, tuple(order)) if rank else input


swapaxes = transpose


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a tensor with fewer axes itself.

    Raises:
        ShapeError: there are more than two axes.
    """
    rank = input._array.ndim
    if rank > 2:
        raise ShapeError(
            f"t: expected at most 2 axes, got shape {input._array.shape}; use transpose() or mT"
        )
    return transpose(input, 0, 1) if rank == 2 else input


def adjoint(input: Tensor) -> Tensor:
    """The last two axes exchanged.

    Raises:
        ShapeError: there are fewer than two axes.
    """
    if input._array.ndim < 2:
        raise ShapeError(f"mT: expected at least 2 axes, got shape {input._array.shape}")
    return transpose(input, -2, -1)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with some axes moved to other places, the rest in their order."""
    rank = input._array.ndim
    sources = [
        axis_of(a, rank, "movedim")
        for a in (source if isinstance(source, (tuple, list)) else (source,))
    ]
    places = [
        axis_of(a, rank, "movedim")
        for a in (destination if isinstance(destination, (tuple, list)) else (destination,))
    ]
    if (
        len(sources) != len(places)
        or len(set(sources)) != len(sources)
        or len(set(places)) != len(places)
    ):
        raise ShapeError(
            f"movedim: expected as many distinct destinations as sources, got {source} and {destination}"
        )
    rest = iter([axis for axis in range(rank) if axis not in sources])
    moved = dict(zip(places, sources))
    return permute(
        input, tuple([moved[place] if place in moved else next(rest) for place in range(rank)])
    )


def reversed_axes(input: Tensor) -> Tensor:
    """All axes in reverse order, as a view."""
    return permute(input, tuple(range(input._array.ndim - 1, -1, -1)))
