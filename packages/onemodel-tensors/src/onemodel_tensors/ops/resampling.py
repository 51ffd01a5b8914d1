"""Resizing of images and signals, and sampling at given places."""

from __future__ import annotations

import math
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError, UnsupportedError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.layouts import through_plain
from onemodel_tensors.ops.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from onemodel_tensors.ops.arrays import MATMUL
from onemodel_tensors.ops.sizes import examples, size_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["interpolate", "upsample"]

_RANKS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
    "area": (3, 4, 5),
}
_AREA = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}


@through_plain
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input resized along its spatial axes.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W), floating point.
        size: the output extents, one int or one for each axis.
        scale_factor: the factors instead; output extents are ``floor(extent * factor)``.
        mode: ``nearest``, ``nearest-exact``, ``linear``, ``bilinear``, ``bicubic``, ``trilinear`` or ``area``.
        align_corners: map the first and last elements' centres onto each other; for linear and cubic modes.
        recompute_scale_factor: use ``output / input`` as factors instead of those given.
        antialias: must be false.

    Raises:
        AttributeValueError: size and factor are both given or both missing, or the mode does not fit.
        UnsupportedError: ``antialias`` is true.
        ShapeError: an output extent would be below 1.
    """
    x = input._array
    if antialias:
        raise UnsupportedError("interpolate: expected antialias=False")
    if mode not in _RANKS or x.ndim not in _RANKS[mode]:
        raise AttributeValueError(
            f"interpolate: expected a mode in {sorted(_RANKS)} that fits the number of axes, got {mode!r} "
            f"for shape {x.shape}"
        )
    if (size is None) == (scale_factor is None):
        raise AttributeValueError("interpolate: expected either size or scale_factor")
    if align_corners and mode.startswith(("nearest", "area")):
        raise AttributeValueError(f"interpolate: expected no align_corners in mode {mode!r}")
    axes = x.ndim - 2
    sizes, scales = _targets(input, size, scale_factor, axes, bool(recompute_scale_factor))
    if mode == "area":
        return _AREA[x.ndim](input, sizes)
    attributes: dict[str, Any] = {}
    if scales is not None and not recompute_scale_factor:
        attributes["scales"] = (1.0, 1.0, *scales)
    else:
        attributes["sizes"] = (*x.shape[:2], *examples(sizes))
    attributes.update(_coordinates(mode, bool(align_corners)))
    out = kernel("Resize", **attributes)(x)
    if "sizes" in attributes:
        attributes["sizes"] = (*input.shape[:2], *sizes)
    return recorded("Resize", (input,), attributes, out, _resize_gradient, (x.shape,))


def _targets(
    input: Tensor, size: Any, factor: Any, axes: int, fixed: bool
) -> tuple[tuple[Any, ...], tuple[float, ...] | None]:
    """The output extents, and the factors if they were given; ``fixed`` computes the extents once and for all."""
    if size is not None:
        listed = list(size) if isinstance(size, (tuple, list)) else [size] * axes
        sizes = tuple([size_of(s) for s in listed])
        scales = None
    else:
        listed = list(factor) if isinstance(factor, (tuple, list)) else [factor] * axes
        scales = tuple([float(f) for f in listed])
        extents = input.shape[2:] if fixed else input._array.shape[2:]
        sizes = tuple([math.floor(extent * f) for extent, f in zip(extents, scales)])
    if len(listed) != axes:
        raise AttributeValueError(f"interpolate: expected {axes} numbers, got {listed}")
    if any(s < 1 for s in examples(sizes)):
        raise ShapeError(f"interpolate: expected output extents of at least 1, got {sizes}")
    return sizes, scales


def _coordinates(mode: str, align_corners: bool) -> dict[str, Any]:
    if mode == "nearest":
        return {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
    if mode == "nearest-exact":
        return {
            "mode": "nearest",
            "coordinate_transformation_mode": "half_pixel",
            "nearest_mode": "round_prefer_ceil",
        }
    transformation = "align_corners" if align_corners else "half_pixel"
    if mode == "bicubic":
        return {
            "mode": "cubic",
            "coordinate_transformation_mode": transformation,
            "cubic_coeff_a": -0.75,
            "exclude_outside": 0,
        }
    return {"mode": "linear", "coordinate_transformation_mode": transformation}


def _resize_gradient(record: BackwardRecord, g: Array) -> Gradients:
    """The transpose of the weights, axis by axis; the weights are what the kernel makes of the identity."""
    (shape,) = record.saved
    for axis in range(2, len(shape)):
        have, want = shape[axis], g.shape[axis]
        attributes = dict(record.attributes)
        if "scales" in attributes:
            attributes["scales"] = (1.0, 1.0, 1.0, attributes["scales"][axis])
        else:
            attributes["sizes"] = (1, 1, have, want)
        identity = kernel("EyeLike", dtype=g.dtype, k=0, shape=(have, have))().view_or_copy(
            (1, 1, have, have)
        )
        weights = kernel("Resize", **attributes)(identity).view_or_copy((have, want))
        order = (*[a for a in range(g.ndim) if a != axis], axis)
        back = [0] * g.ndim
        for position, a in enumerate(order):
            back[a] = position
        g = MATMUL(g.permute(order), weights.permute((1, 0))).permute(tuple(back))
    return (g,)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """As :func:`interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)
