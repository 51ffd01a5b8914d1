"""Maxima and means over windows."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.layouts import through_plain
from onemodel_tensors.ops.arithmetic import mul
from onemodel_tensors.ops.sizes import pair
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


@through_plain
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window over one axis; see :func:`max_pool2d`."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


@through_plain
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window; NaN if it holds one. The gradient goes to the first maximum.

    Args:
        input: (N, C, H, W), or (C, H, W).
        kernel_size: one int or one for each axis.
        stride: the distance of the windows; the kernel size if ``None``.
        padding: positions of -inf on both sides, at most half the kernel size.
        dilation: the distance between a window's positions.
        ceil_mode: keep a last window that reaches over the end.
        return_indices: also the positions of the maxima in each plane, int64.

    Raises:
        AttributeValueError: a number is out of range.
        ShapeError: a window does not fit.
    """
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


@through_plain
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window over three axes; see :func:`max_pool2d`."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


def _window(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, axes: int, name: str
) -> dict[str, Any]:
    rank = input._array.ndim
    if rank not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{name}: expected {axes + 1} or {axes + 2} axes, got shape {input._array.shape}"
        )
    window = pair(kernel_size, axes, f"{name} kernel_size")
    unset = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    strides = window if unset else pair(stride, axes, f"{name} stride")
    dilations = pair(dilation, axes, f"{name} dilation")
    pads = pair(padding, axes, f"{name} padding")
    if min((*window, *strides, *dilations)) < 1:
        raise AttributeValueError(
            f"{name}: expected kernel size, stride and dilation of at least 1, got {window}, {strides}, {dilations}"
        )
    if any(not 0 <= p <= k // 2 for p, k in zip(pads, window)):
        raise AttributeValueError(
            f"{name}: expected padding in [0, kernel_size // 2], got {pads} with {window}"
        )
    for extent, k, p, d in zip(input._array.shape[-axes:], window, pads, dilations):
        if extent + 2 * p < d * (k - 1) + 1:
            raise ShapeError(
                f"{name}: expected a window that fits, got kernel size {k} on a padded {extent + 2 * p}"
            )
    return {"kernel_shape": window, "strides": strides, "pads": pads * 2, "dilations": dilations}


def _max_pool(
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
    axes: int,
) -> Any:
    name = f"max_pool{axes}d"
    attributes = _window(input, kernel_size, stride, padding, dilation, axes, name)
    attributes["ceil_mode"] = int(ceil_mode)
    if return_indices:
        recorder = input._asked()
        if recorder is not None:
            recorder.refuse_operator(
                f"{name}(return_indices=True)", input, "ONNX counts positions over all planes"
            )
    single = input._array.ndim == axes + 1
    if single:
        input = input.unsqueeze(0)
    x = input._array
    gradient = _max_pool_gradient if x.dtype in FLOATING else None
    if not return_indices and (gradient is None or input._node is None):
        out = kernel("MaxPool", with_indices=0, **attributes)(x)
        result = recorded("MaxPool", (input,), attributes, out, gradient)
        return result.squeeze(0) if single else result
    # Places inside a plane are a quarter as long.
    places_in = "input" if return_indices else "plane"
    out, indices = kernel("MaxPool", indices_in=places_in, **attributes)(x)
    result = recorded("MaxPool", (input,), attributes, out, gradient, (indices, x.shape))
    result = result.squeeze(0) if single else result
    if not return_indices:
        return result
    plane = 1
    for extent in x.shape[2:]:
        plane *= extent
    places = Tensor(indices) % plane
    return result, places.squeeze(0) if single else places


def _max_pool_gradient(record: BackwardRecord, g: Array) -> Gradients:
    indices, shape = record.saved
    return (kernel("MaxPoolGrad", input_shape=shape)(g, indices),)


@through_plain
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window over one axis; see :func:`avg_pool2d`."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


@through_plain
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    Args:
        input: (N, C, H, W), or (C, H, W), floating point.
        kernel_size: one int or one for each axis.
        stride: the distance of the windows; the kernel size if ``None``.
        padding: zeros on both sides, at most half the kernel size.
        ceil_mode: keep a last window that reaches over the end.
        count_include_pad: divide by the window's size also where it holds padding.
        divisor_override: divide by this number instead.

    Raises:
        AttributeValueError: a number is out of range.
        ShapeError: a window does not fit.
    """
    return _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2
    )


@through_plain
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over three axes; see :func:`avg_pool2d`."""
    return _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3
    )


def _avg_pool(
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    axes: int,
) -> Tensor:
    name = f"avg_pool{axes}d"
    attributes = _window(input, kernel_size, stride, padding, 1, axes, name)
    attributes["ceil_mode"] = int(ceil_mode)
    attributes["count_include_pad"] = int(count_include_pad)
    if divisor_override is not None:
        if divisor_override == 0 or ceil_mode or any(attributes["pads"]):
            raise AttributeValueError(
                f"{name}: expected a divisor_override other than 0, without padding or ceil_mode, "
                f"got {divisor_override}"
            )
        size = 1
        for extent in attributes["kernel_shape"]:
            size *= extent
        whole = _avg_pool(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, axes
        )
        return mul(whole, size / divisor_override)
    single = input._array.ndim == axes + 1
    if single:
        input = input.unsqueeze(0)
    x = input._array
    out = kernel("AveragePool", **attributes)(x)
    result = recorded("AveragePool", (input,), attributes, out, _avg_pool_gradient, (x.shape,))
    return result.squeeze(0) if single else result


def _avg_pool_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (kernel("AveragePoolGrad", input_shape=record.saved[0], **record.attributes)(g),)


@through_plain
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window over one axis: ``(sum of x**p)**(1/p)``."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


@through_plain
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window: ``(sum of x**p)**(1/p)``."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


def _lp_pool(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool, axes: int
) -> Tensor:
    from onemodel_tensors.ops.powers import pow

    size = 1
    for extent in pair(kernel_size, axes, f"lp_pool{axes}d kernel_size"):
        size *= extent
    means = _avg_pool(pow(input, norm_type), kernel_size, stride, 0, ceil_mode, True, None, axes)
    return pow(mul(means, size), 1.0 / norm_type)
