"""Pooling to a given output size, and over all positions."""

from __future__ import annotations

import operator
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.layouts import through_plain
from onemodel_tensors.ops.arrays import DIV, number
from onemodel_tensors.ops.joining import cat
from onemodel_tensors.ops.permuting import movedim
from onemodel_tensors.ops.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from onemodel_tensors.ops.products import matmul
from onemodel_tensors.ops.reductions import amax, mean
from onemodel_tensors.ops.slicing import slice_axes
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]

_AVERAGE = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
_MAXIMUM = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


@through_plain
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over as many windows of one axis; see :func:`adaptive_avg_pool2d`."""
    return _average(input, output_size, 1)


@through_plain
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over windows that divide each axis as evenly as possible.

    Window i of n along an axis of extent L reaches from ``floor(i*L/n)`` to ``ceil((i + 1)*L/n)``.

    Args:
        input: (N, C, H, W), or (C, H, W), floating point.
        output_size: one int or one for each axis; ``None`` keeps an axis.

    Raises:
        AttributeValueError: a size is below 1.
    """
    return _average(input, output_size, 2)


@through_plain
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over windows of three axes; see :func:`adaptive_avg_pool2d`."""
    return _average(input, output_size, 3)


@through_plain
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The maximum over as many windows of one axis; see :func:`adaptive_max_pool2d`."""
    return _maximum(input, output_size, return_indices, 1)


@through_plain
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The maximum over windows that divide each axis as evenly as possible; see :func:`adaptive_avg_pool2d`."""
    return _maximum(input, output_size, return_indices, 2)


@through_plain
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The maximum over windows of three axes; see :func:`adaptive_max_pool2d`."""
    return _maximum(input, output_size, return_indices, 3)


def _wanted(input: Tensor, output_size: Any, axes: int, name: str) -> list[int | None]:
    if input._array.ndim not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{name}: expected {axes + 1} or {axes + 2} axes, got shape {input._array.shape}"
        )
    listed = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * axes
    if len(listed) == 1:
        listed *= axes
    if len(listed) != axes or any(n is not None and n < 1 for n in listed):
        raise AttributeValueError(
            f"{name}: expected {axes} sizes of at least 1, or None, got {output_size}"
        )
    return listed


def _average(input: Tensor, output_size: Any, axes: int) -> Tensor:
    name = f"adaptive_avg_pool{axes}d"
    wanted = _wanted(input, output_size, axes, name)
    rank = input._array.ndim
    spatial = range(rank - axes, rank)
    if all(n == 1 for n in wanted):
        return _global_average(input, axes)
    if all(n in (1, None) for n in wanted):
        reduced = tuple([axis for axis, n in zip(spatial, wanted) if n == 1])
        return mean(input, reduced, True) if reduced else input
    extents = [operator.index(input.shape[axis]) for axis in spatial]
    sizes = [extent if n is None else n for n, extent in zip(wanted, extents)]
    if all(extent % n == 0 for n, extent in zip(sizes, extents)):
        return _AVERAGE[axes](input, tuple([extent // n for n, extent in zip(sizes, extents)]))
    for axis, n, extent in zip(spatial, sizes, extents):
        if n != extent:
            weights = _averaging(extent, n, input._array.dtype)
            input = movedim(matmul(movedim(input, axis, -1), weights), -1, axis)
    return input


def _global_average(input: Tensor, axes: int) -> Tensor:
    single = input._array.ndim == axes + 1
    if single:
        input = input.unsqueeze(0)
    x = input._array
    out = kernel("GlobalAveragePool")(x)
    result = recorded(
        "GlobalAveragePool", (input,), NO_ATTRIBUTES, out, _global_average_gradient, (x.shape,)
    )
    return result.squeeze(0) if single else result


def _global_average_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (shape,) = record.saved
    count = 1
    for extent in shape[2:]:
        count *= extent
    return (DIV(g, number(float(count), g.dtype)).expand(shape),)


def _windows(extent: int, count: int) -> list[tuple[int, int]]:
    return [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]


def _averaging(extent: int, count: int, dtype: str) -> Tensor:
    """The matrix (extent, count) whose columns average the windows."""
    from onemodel_tensors.interop import tensor

    rows = [[0.0] * count for _ in range(extent)]
    for column, (start, stop) in enumerate(_windows(extent, count)):
        for row in range(start, stop):
            rows[row][column] = 1.0 / (stop - start)
    return tensor(rows, dtype="float64").to(dtype)


def _maximum(input: Tensor, output_size: Any, return_indices: bool, axes: int) -> Tensor:
    name = f"adaptive_max_pool{axes}d"
    if return_indices:
        raise AttributeValueError(f"{name}: expected return_indices=False; max_pool gives indices")
    wanted = _wanted(input, output_size, axes, name)
    rank = input._array.ndim
    spatial = range(rank - axes, rank)
    if all(n in (1, None) for n in wanted):
        reduced = tuple([axis for axis, n in zip(spatial, wanted) if n == 1])
        return amax(input, reduced, True) if reduced else input
    extents = [operator.index(input.shape[axis]) for axis in spatial]
    sizes = [extent if n is None else n for n, extent in zip(wanted, extents)]
    if all(extent % n == 0 for n, extent in zip(sizes, extents)):
        result: Tensor = _MAXIMUM[axes](
            input, tuple([extent // n for n, extent in zip(sizes, extents)])
        )
        return result
    for axis, n, extent in zip(spatial, sizes, extents):
        if n != extent:
            parts = [
                amax(slice_axes(input, [(axis, start, stop, 1)]), axis, True)
                for start, stop in _windows(extent, n)
            ]
            input = cat(parts, axis)
    return input
