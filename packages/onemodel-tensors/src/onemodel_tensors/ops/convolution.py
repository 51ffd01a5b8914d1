"""Convolutions and transposed convolutions over one, two or three axes.

Determinism: each output element is one chain of fused multiply-adds, started from the bias, over the channels of its
group and the kernel's positions in row-major order.
"""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.layouts import through_plain
from onemodel_tensors.ops.arrays import reduce_sum
from onemodel_tensors.ops.sizes import pair
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


@through_plain
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over one axis; see :func:`conv2d`, with (N, C, L) and (M, C/groups, K)."""
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 1)


@through_plain
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """``out[n, m, i, j] = bias[m] + sum over c, p, q of input[n, c, i*s + p*d, j*s + q*d] * weight[m, c, p, q]``.

    Args:
        input: (N, C, H, W), or (C, H, W) for a single sample, floating point.
        weight: (M, C/groups, P, Q), same dtype.
        bias: (M,), same dtype, or ``None``.
        stride: one int or one for each axis.
        padding: zeros on both sides of each axis; ``"valid"`` for none; ``"same"`` for as many as keep the extent,
            an odd one at the end.
        dilation: the distance between the kernel's positions.
        groups: how many groups of channels are convolved apart.

    Returns:
        (N, M, H', W') with ``H' = (H + 2*padding - dilation*(P - 1) - 1) // stride + 1``.

    Raises:
        ShapeError: shapes do not fit each other or the groups, or the kernel does not fit the input.
        AttributeValueError: a number is out of range, or ``"same"`` with a stride.
        DtypeError: the dtypes differ.
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 2)


@through_plain
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution over three axes; see :func:`conv2d`, with (N, C, D, H, W) and (M, C/groups, O, P, Q)."""
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 3)


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    axes: int,
) -> Tensor:
    name = f"conv{axes}d"
    single = _single(input, weight, axes, name)
    if single:
        input = input.unsqueeze(0)
    x, w = input._array, weight._array
    _check(x, w, bias, groups, x.shape[1], w.shape[1] * groups, w.shape[0], name)
    strides = _positive(pair(stride, axes, f"{name} stride"), f"{name} stride")
    dilations = _positive(pair(dilation, axes, f"{name} dilation"), f"{name} dilation")
    pads = _pads(padding, w.shape[2:], strides, dilations, name)
    _check_window(x.shape[2:], w.shape[2:], dilations, pads, name)
    attributes = {"strides": strides, "pads": pads, "dilations": dilations, "group": int(groups)}
    run = kernel("Conv", **attributes)
    out = run(x, w) if bias is None else run(x, w, bias._array)
    record = {"kernel_shape": w.shape[2:], **attributes}
    result = recorded("Conv", (input, weight, bias), record, out, _conv_gradient, (x, w))
    return result.squeeze(0) if single else result


def _single(input: Tensor, weight: Tensor, axes: int, name: str) -> bool:
    """Whether the input is one sample without a batch axis."""
    rank = input._array.ndim
    if rank not in (axes + 1, axes + 2) or weight._array.ndim != axes + 2:
        raise ShapeError(
            f"{name}: expected an input of {axes + 1} or {axes + 2} axes and a weight of {axes + 2}, got shapes "
            f"{input._array.shape} and {weight._array.shape}"
        )
    return rank == axes + 1


def _check(
    x: Array,
    w: Array,
    bias: Tensor | None,
    groups: int,
    channels: int,
    wanted: int,
    outputs: int,
    name: str,
) -> None:
    if groups < 1 or channels != wanted or w.shape[0] % groups:
        raise ShapeError(
            f"{name}: expected channels of input {x.shape} and weight {w.shape} that fit {groups} groups, "
            f"but the input has {channels} and the weight serves {wanted}"
        )
    if bias is not None and bias._array.shape != (outputs,):
        raise ShapeError(f"{name}: expected a bias of shape ({outputs},), got {bias._array.shape}")
    dtypes = {x.dtype, w.dtype} | (set() if bias is None else {bias._array.dtype})
    if len(dtypes) > 1:
        raise DtypeError(
            f"{name}: expected operands of one dtype, got {' and '.join(sorted(dtypes))}"
        )


def _positive(numbers: tuple[int, ...], name: str) -> tuple[int, ...]:
    if any(n < 1 for n in numbers):
        raise AttributeValueError(f"{name}: expected numbers of at least 1, got {numbers}")
    return numbers


def _pads(
    padding: Any,
    extents: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    name: str,
) -> tuple[int, ...]:
    axes = len(extents)
    if padding == "valid":
        return (0,) * (2 * axes)
    if padding == "same":
        if any(s != 1 for s in strides):
            raise AttributeValueError(
                f"{name}: expected stride 1 with padding='same', got {strides}"
            )
        total = [d * (k - 1) for d, k in zip(dilations, extents)]
        return (*[t // 2 for t in total], *[t - t // 2 for t in total])
    if isinstance(padding, str):
        raise AttributeValueError(
            f"{name}: expected padding ints, 'valid' or 'same', got {padding!r}"
        )
    amounts = pair(padding, axes, f"{name} padding")
    if any(p < 0 for p in amounts):
        raise AttributeValueError(f"{name}: expected padding of at least 0, got {amounts}")
    return amounts * 2


def _check_window(
    extents: tuple[int, ...],
    window: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
    name: str,
) -> None:
    axes = len(window)
    for axis in range(axes):
        padded = extents[axis] + pads[axis] + pads[axes + axis]
        reach = dilations[axis] * (window[axis] - 1) + 1
        if padded < reach:
            raise ShapeError(
                f"{name}: expected positions of at least the kernel's reach {reach} along spatial axis {axis}, got "
                f"{padded} (extent {extents[axis]} and padding)"
            )


def _conv_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, w = record.saved
    attributes = {
        name: record.attributes[name] for name in ("strides", "pads", "dilations", "group")
    }
    dx = (
        kernel("ConvGradInput", input_shape=x.shape, **attributes)(g, w)
        if record.needs(0)
        else None
    )
    dw = (
        kernel("ConvGradWeight", weight_shape=w.shape, **attributes)(g, x)
        if record.needs(1)
        else None
    )
    return dx, dw, _bias_gradient(g) if record.needs(2) else None


def _bias_gradient(g: Array) -> Array:
    return reduce_sum(g, (0, *range(2, g.ndim)), False)


@through_plain
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transposed convolution over one axis; see :func:`conv_transpose2d`."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


@through_plain
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of :func:`conv2d` with respect to its input, as an operator, plus a bias.

    Args:
        input: (N, C, H, W), or (C, H, W), floating point.
        weight: (C, M/groups, P, Q), same dtype.
        bias: (M,), same dtype, or ``None``.
        stride: the distance of the input's elements in the output.
        padding: how many positions are cut off on both sides of each axis.
        output_padding: how many positions are added at the end of each axis.
        groups: how many groups of channels are treated apart.
        dilation: the distance between the kernel's positions.

    Returns:
        (N, M, H', W') with ``H' = stride*(H - 1) - 2*padding + dilation*(P - 1) + output_padding + 1``.

    Raises:
        ShapeError: shapes do not fit each other or the groups, or the output would be empty.
        AttributeValueError: a number is out of range.
        DtypeError: the dtypes differ.
    """
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


@through_plain
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transposed convolution over three axes; see :func:`conv_transpose2d`."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


def _transposed(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
    axes: int,
) -> Tensor:
    name = f"conv_transpose{axes}d"
    single = _single(input, weight, axes, name)
    if single:
        input = input.unsqueeze(0)
    x, w = input._array, weight._array
    _check(x, w, bias, groups, x.shape[1], w.shape[0], w.shape[1] * groups, name)
    strides = _positive(pair(stride, axes, f"{name} stride"), f"{name} stride")
    dilations = _positive(pair(dilation, axes, f"{name} dilation"), f"{name} dilation")
    pads = pair(padding, axes, f"{name} padding") * 2
    extra = pair(output_padding, axes, f"{name} output_padding")
    for axis in range(axes):
        if not 0 <= extra[axis] < max(strides[axis], dilations[axis]):
            raise AttributeValueError(
                f"{name}: expected output_padding below the stride or the dilation, got {extra} with stride {strides}"
            )
        extent = strides[axis] * (x.shape[2 + axis] - 1) - 2 * pads[axis]
        extent += dilations[axis] * (w.shape[2 + axis] - 1) + extra[axis] + 1
        if extent < 1:
            raise ShapeError(
                f"{name}: expected an output with positions, got extent {extent} of spatial axis {axis}"
            )
    attributes = {"strides": strides, "pads": pads, "dilations": dilations, "group": int(groups)}
    run = kernel("ConvTranspose", output_padding=extra, **attributes)
    out = run(x, w) if bias is None else run(x, w, bias._array)
    record = {"kernel_shape": w.shape[2:], **attributes, "output_padding": extra}
    result = recorded(
        "ConvTranspose", (input, weight, bias), record, out, _transposed_gradient, (x, w)
    )
    return result.squeeze(0) if single else result


def _transposed_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, w = record.saved
    attributes = {
        name: record.attributes[name] for name in ("strides", "pads", "dilations", "group")
    }
    dx = kernel("Conv", **attributes)(g, w) if record.needs(0) else None
    if dx is not None and dx.shape != x.shape:
        for axis in range(2, x.ndim):
            dx = dx.slice(axis, 0, x.shape[axis], 1)
    dw = (
        kernel("ConvGradWeight", weight_shape=w.shape, **attributes)(x, g)
        if record.needs(1)
        else None
    )
    return dx, dw, _bias_gradient(g) if record.needs(2) else None
