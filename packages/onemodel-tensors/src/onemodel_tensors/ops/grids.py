"""Sampling images at given places, and the places of an affine map.

Composed of other operators, so gradients and traces are theirs.
"""

from __future__ import annotations

import itertools
from typing import Any

from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.joining import stack
from onemodel_tensors.ops.selection import where
from onemodel_tensors.ops.sizes import sizes_of
from onemodel_tensors.tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_CUBIC = -0.75

_Tap = tuple[Tensor, Tensor | None]
"""A pixel's number along one axis, and its weight unless that is 1."""


def affine_grid(theta: Tensor, size: Any, align_corners: bool = False) -> Tensor:
    """The places that an affine map of the output's grid names, for :func:`grid_sample`.

    Args:
        theta: (N, 2, 3) for images or (N, 3, 4) for volumes, floating point.
        size: the output's (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centres of the outer pixels, not their outer edges.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3), the last axis in the order x, y, z.

    Raises:
        ShapeError: theta and the size do not fit each other.
    """
    from onemodel_tensors.ops.factories import arange, ones

    extents = sizes_of((tuple(size),))
    axes = len(extents) - 2
    if axes not in (2, 3) or theta._array.shape[1:] != (axes, axes + 1):
        raise ShapeError(
            f"affine_grid: expected theta (N, 2, 3) with 4 sizes or (N, 3, 4) with 5, got "
            f"{theta._array.shape} and {tuple(size)}"
        )
    spatial = extents[2:]
    lines = []
    for extent in spatial:
        steps = to_dtype(arange(extent), theta.dtype)
        if align_corners:
            lines.append(steps * 2 / (extent - 1) - 1 if extent != 1 else steps * 0)
        else:
            lines.append((steps * 2 + 1) / extent - 1)
    columns: list[Tensor] = []
    for axis, line in enumerate(lines):
        shape = [1] * axes
        shape[axis] = spatial[axis]
        columns.insert(0, line.reshape(shape).expand(spatial))
    columns.append(ones(spatial, dtype=theta.dtype))
    base = stack(columns, -1).reshape(1, -1, axes + 1)
    return (base @ theta.transpose(1, 2)).reshape(theta.shape[0], *spatial, axes)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """The image's values at places between its pixels.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W), floating point.
        grid: (N, H', W', 2) or (N, D', H', W', 3), same dtype: places in the order x, y, z, where -1 and 1 are the
            image's edges.
        mode: ``"bilinear"`` (linear along each axis), ``"nearest"``, or ``"bicubic"`` for images.
        padding_mode: what lies outside: ``"zeros"``, ``"border"`` (the nearest pixel), ``"reflection"``.
        align_corners: whether -1 and 1 are the centres of the outer pixels, not their outer edges.

    Returns:
        (N, C, H', W') or (N, C, D', H', W').

    Raises:
        AttributeValueError: another mode or padding.
        DtypeError: the dtypes differ.
        ShapeError: the shapes do not fit each other.

    Determinism: corners are added in row-major order.
    """
    if mode not in _MODES or padding_mode not in _PADDINGS:
        raise AttributeValueError(
            f"grid_sample: expected a mode of {', '.join(_MODES)} and a padding_mode of "
            f"{', '.join(_PADDINGS)}, got {mode!r} and {padding_mode!r}"
        )
    x, places = input._array, grid._array
    axes = x.ndim - 2
    fits = axes in (2, 3) and places.ndim == x.ndim and places.shape[-1] == axes
    if not fits or places.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        raise ShapeError(
            f"grid_sample: expected (N, C, H, W) with a grid (N, H', W', 2), or (N, C, D, H, W) with "
            f"(N, D', H', W', 3), got {x.shape} and {places.shape}"
        )
    if mode == "bicubic" and axes != 2:
        raise AttributeValueError("grid_sample: expected an image (N, C, H, W) with mode 'bicubic'")
    if x.dtype != places.dtype:
        raise DtypeError(
            f"grid_sample: expected input and grid of one dtype, got {x.dtype} and {places.dtype}"
        )
    extents = input.shape[2:]
    pixels = [
        _pixels(grid.select(-1, axes - 1 - axis), extents[axis], align_corners)
        for axis in range(axes)
    ]
    if mode != "bicubic":
        pixels = [
            _inside(pixel, extent, padding_mode, align_corners)
            for pixel, extent in zip(pixels, extents)
        ]
    taps: list[list[_Tap]]
    if mode == "nearest":
        taps = [[(pixel.round(), None)] for pixel in pixels]
    elif mode == "bilinear":
        taps = [_linear_taps(pixel) for pixel in pixels]
    else:
        taps = [
            [
                (_inside(place, extent, padding_mode, align_corners), weight)
                for place, weight in _cubic_taps(pixel)
            ]
            for pixel, extent in zip(pixels, extents)
        ]
    return _mixed(input, grid, taps)


def _pixels(place: Tensor, extent: Any, align_corners: bool) -> Tensor:
    """A place between -1 and 1 counted in pixels."""
    found: Tensor
    if align_corners:
        found = (place + 1) / 2 * (extent - 1)
    else:
        found = ((place + 1) * extent - 1) / 2
    return found


def _inside(pixel: Tensor, extent: Any, padding_mode: str, align_corners: bool) -> Tensor:
    """The place that stands for one outside the image."""
    if padding_mode == "zeros":
        return pixel
    if padding_mode == "reflection":
        low = 0.0 if align_corners else -0.5
        span = (extent - 1) if align_corners else extent
        if align_corners and extent == 1:
            return pixel * 0
        distance = (pixel - low).abs()
        turns = (distance / span).floor()
        rest = distance - turns * span
        pixel = where(turns.remainder(2) == 0, rest + low, span - rest + low)
    return pixel.clamp(0).minimum(pixel.new_full((), extent - 1))


def _linear_taps(pixel: Tensor) -> list[_Tap]:
    floor = pixel.detach().floor()
    rest = pixel - floor
    return [(floor, 1 - rest), (floor + 1, rest)]


def _cubic_taps(pixel: Tensor) -> list[_Tap]:
    """Keys' cubic convolution with a = -0.75."""
    floor = pixel.detach().floor()
    rest = pixel - floor
    a = _CUBIC

    def near(t: Any) -> Any:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Any) -> Any:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    weights = (far(rest + 1), near(rest), near(1 - rest), far(2 - rest))
    return [(floor + (shift - 1), weight) for shift, weight in enumerate(weights)]


def _mixed(input: Tensor, grid: Tensor, taps: list[list[_Tap]]) -> Tensor:
    """The sum over all combinations of taps of the pixel there times its weights."""
    extents = input.shape[2:]
    flat = input.flatten(2)
    batch, channels = input.shape[:2]
    total: Tensor | None = None
    for combination in itertools.product(*taps):
        position: Tensor | None = None
        weight: Tensor | None = None
        present: Tensor | None = None
        for (place, share), extent in zip(combination, extents):
            there = (place >= 0) & (place < extent)
            # Moved inside before the cast: what does not fit an integer has no defined value.
            index = place.detach().clamp(0).minimum(place.new_full((), extent - 1))
            index = to_dtype(where(there, index, 0.0), "int64")
            position = index if position is None else position * extent + index
            present = there if present is None else present & there
            if share is not None:
                weight = share if weight is None else weight * share
        assert position is not None
        assert present is not None
        index = position.flatten(1).unsqueeze(1)
        values = flat.gather(2, index.expand(batch, channels, index.shape[2]))
        values = values.reshape(batch, channels, *grid.shape[1:-1])
        if weight is not None:
            values = values * weight.unsqueeze(1)
        values = where(present.unsqueeze(1), values, 0.0)
        total = values if total is None else total + values
    assert total is not None
    return total
