"""Channels to positions and back, and patches of images."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.joining import stack
from onemodel_tensors.ops.padding import pad
from onemodel_tensors.ops.permuting import permute
from onemodel_tensors.ops.sizes import pair
from onemodel_tensors.ops.slicing import OPEN_END, slice_axes
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["channel_shuffle", "fold", "pixel_shuffle", "pixel_unshuffle", "unfold"]


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C*r*r, H, W) to (…, C, H*r, W*r).

    Raises:
        ShapeError: the channels do not divide by ``r*r``.
    """
    r = int(upscale_factor)
    shape = input._array.shape
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle: expected channels that {r * r} divides, got shape {shape}"
        )
    if len(shape) != 4:
        own = input.shape
        flat = pixel_shuffle(input.reshape(-1, *own[-3:]), r)
        return flat.reshape(*own[:-3], *flat.shape[1:])
    attributes = {"blocksize": r, "mode": "CRD"}
    x = input._array
    out = kernel("DepthToSpace", **attributes)(x)
    gradient = _shuffle_gradient if x.dtype in FLOATING else None
    return recorded("DepthToSpace", (input,), attributes, out, gradient)


def _shuffle_gradient(record: BackwardRecord, g: Array) -> Gradients:
    r = record.attributes["blocksize"]
    n, c, h, w = g.shape
    blocks = g.view_or_copy((n, c, h // r, r, w // r, r)).permute((0, 1, 3, 5, 2, 4))
    return (blocks.view_or_copy((n, c * r * r, h // r, w // r)),)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H*r, W*r) to (…, C*r*r, H, W): the inverse of :func:`pixel_shuffle`.

    Raises:
        ShapeError: the positions do not divide by ``r``.
    """
    r = int(downscale_factor)
    example = input._array.shape
    if len(example) < 3 or r < 1 or example[-1] % r or example[-2] % r:
        raise ShapeError(
            f"pixel_unshuffle: expected positions that {r} divides, got shape {example}"
        )
    *lead, c, h, w = input.shape
    count = len(lead)
    blocks = input.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(count), *[count + a for a in (0, 2, 4, 1, 3)])
    return permute(blocks, order).reshape(*lead, c * (r * r), h // r, w // r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, g*C, …): channels of the groups taken in turn.

    Raises:
        ShapeError: the channels do not divide by ``groups``.
    """
    shape = input.shape
    if len(shape) < 3 or groups < 1 or input._array.shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: expected channels that {groups} divides, got {input._array.shape}"
        )
    apart = input.reshape(shape[0], groups, shape[1] // groups, *shape[2:])
    return apart.transpose(1, 2).reshape(shape)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The patches of images as columns: (N, C, H, W) to (N, C*P*Q, positions).

    Args:
        input: (N, C, H, W), or (C, H, W).
        kernel_size: (P, Q), or one int for both.
        dilation: the distance between a patch's positions.
        padding: zeros on both sides.
        stride: the distance of the patches.

    Raises:
        ShapeError: a patch does not fit.
    """
    if input._array.ndim == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    if input._array.ndim != 4:
        raise ShapeError(f"unfold: expected (N, C, H, W), got shape {input._array.shape}")
    window, dilations, pads, strides = [
        pair(value, 2, "unfold") for value in (kernel_size, dilation, padding, stride)
    ]
    x = pad(input, (pads[1], pads[1], pads[0], pads[0])) if any(pads) else input
    for extent, k, d in zip(x._array.shape[2:], window, dilations):
        if extent < d * (k - 1) + 1:
            raise ShapeError(
                f"unfold: expected a patch that fits, got kernel size {k} on extent {extent}"
            )
    patches = []
    for p in range(window[0]):
        for q in range(window[1]):
            parts = []
            for axis, k, at, d, s in zip((2, 3), window, (p, q), dilations, strides):
                end = (at - (k - 1)) * d
                parts.append((axis, at * d, end or OPEN_END, s))
            patches.append(slice_axes(x, parts))
    columns = stack(patches, 2)
    n, c = x.shape[:2]
    return columns.reshape(n, c * (window[0] * window[1]), -1)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The sum of patches at their places: the transpose of :func:`unfold`.

    Args:
        input: (N, C*P*Q, positions), or without N.
        output_size: (H, W).
        kernel_size: (P, Q), or one int for both.
        dilation: as in :func:`unfold`.
        padding: as in :func:`unfold`.
        stride: as in :func:`unfold`.

    Raises:
        ShapeError: the columns are not as many as such patches.
    """
    from onemodel_tensors.interop import tensor
    from onemodel_tensors.ops.factories import zeros
    from onemodel_tensors.ops.scattering import index_add

    if input._array.ndim == 2:
        return fold(
            input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride
        ).squeeze(0)
    size, window, dilations, pads, strides = [
        pair(value, 2, "fold") for value in (output_size, kernel_size, dilation, padding, stride)
    ]
    wide = [extent + 2 * p for extent, p in zip(size, pads)]
    counts = [
        (e - d * (k - 1) - 1) // s + 1 for e, d, k, s in zip(wide, dilations, window, strides)
    ]
    n: Any = input.shape[0]
    rows, positions = input._array.shape[1:]
    if positions != counts[0] * counts[1] or rows % (window[0] * window[1]):
        raise ShapeError(
            f"fold: expected columns (N, C*{window[0] * window[1]}, {counts[0] * counts[1]}), got {input._array.shape}"
        )
    channels = rows // (window[0] * window[1])
    places = [
        (p * dilations[0] + i * strides[0]) * wide[1] + q * dilations[1] + j * strides[1]
        for p in range(window[0])
        for q in range(window[1])
        for i in range(counts[0])
        for j in range(counts[1])
    ]
    flat = input.reshape(n, channels, len(places))
    whole = zeros(n, channels, wide[0] * wide[1], dtype=input._array.dtype)
    summed = index_add(whole, 2, tensor(places, dtype="int64"), flat).reshape(n, channels, *wide)
    cut = [(2, pads[0], pads[0] + size[0], 1), (3, pads[1], pads[1] + size[1], 1)]
    return slice_axes(summed, cut).contiguous()
