"""Elements in another order along axes: flip and roll, and their relatives."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors.ops.casts import clone
from onemodel_tensors.ops.joining import cat
from onemodel_tensors.ops.permuting import transpose
from onemodel_tensors.ops.sizes import axes_of, axis_of, listed, sizes_of
from onemodel_tensors.ops.slicing import OPEN_END, OPEN_START, slice_axes
from onemodel_tensors.tensor import Tensor

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


def flip(input: Tensor, *dims: Any, **given: Any) -> Tensor:
    """The elements along some axes in reverse order; a copy."""
    if given:
        dims = listed(dims, given, "dims", "flip")
    axes = axes_of(sizes_of(dims), input._array.ndim, "flip") if dims and dims != ((),) else ()
    if not axes:
        return clone(input)
    return slice_axes(input, [(axis, OPEN_END, OPEN_START, -1) for axis in axes]).contiguous()


def fliplr(input: Tensor) -> Tensor:
    """The elements along axis 1 in reverse order."""
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """The elements along axis 0 in reverse order."""
    return flip(input, 0)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The elements moved along axes; those that leave at one end enter at the other.

    Args:
        input: any tensor.
        shifts: how far, towards higher positions, for each axis in ``dims``.
        dims: the axes; ``None`` rolls the flattened tensor.

    Raises:
        AttributeValueError: there are not as many shifts as axes.
    """
    if dims is None:
        return roll(input.ravel(), shifts, 0).reshape(input.shape)
    amounts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    axes = dims if isinstance(dims, (tuple, list)) else (dims,)
    if len(amounts) != len(axes):
        raise AttributeValueError(f"roll: expected as many shifts as axes, got {shifts} and {dims}")
    for amount, dim in zip(amounts, axes):
        axis = axis_of(dim, input._array.ndim, "roll")
        input = _rolled(input, axis, amount)
    return input


def _rolled(input: Tensor, axis: int, amount: int) -> Tensor:
    extent: Any = input.shape[axis]
    if type(extent) is int:
        cut = -(amount % extent) if extent else 0
    else:
        extent.rely_on(">=", max(amount, -amount), "roll")
        cut = -amount
    if not cut:
        return input
    last, first = (
        slice_axes(input, [(axis, cut, OPEN_END, 1)]),
        slice_axes(input, [(axis, 0, cut, 1)]),
    )
    return cat([last, first], axis)


def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """The plane of two axes turned by ``k`` quarter turns, from the first axis towards the second."""
    first, second = dims
    quarter = k % 4
    if quarter == 0:
        return clone(input)
    if quarter == 2:
        return flip(input, first, second)
    turned = transpose(input, first, second)
    return flip(turned, first) if quarter == 1 else flip(turned, second)
