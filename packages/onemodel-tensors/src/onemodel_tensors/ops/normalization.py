"""Normalisation over the batch, over trailing axes, over groups of channels.

Determinism: means and variances are two passes in a fixed order, so a result depends on no thread count.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.autograd.mode import no_grad
from onemodel_tensors.layouts import through_plain
from onemodel_tensors.ops.arithmetic import add, mul
from onemodel_tensors.ops.arrays import ADD, MUL, SUB, cast, number, reduce_sum, scaled
from onemodel_tensors.ops.promotion import require_floating
from onemodel_tensors.record import BackwardRecord, Gradients, overwrites
from onemodel_tensors.tensor import Tensor

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]

_SQRT, _RECIPROCAL = Kernel("Sqrt"), Kernel("Reciprocal")
_MACHINE_EPSILON = {"float32": 1.1920928955078125e-07, "float64": 2.220446049250313e-16}


def _held(eps: float) -> float:
    """Epsilon as ONNX holds it, in single precision: a saved model computes with the same number."""
    return ctypes.c_float(eps).value


def _filled(shape: tuple[int, ...], value: float, dtype: str) -> Tensor:
    return Tensor(Array.full(shape, value, dtype))


def _check_vector(tensor: Tensor | None, shape: tuple[int, ...], name: str, operator: str) -> None:
    if tensor is not None and tensor._array.shape != shape:
        raise ShapeError(
            f"{operator}: expected a {name} of shape {shape}, got {tensor._array.shape}"
        )


@through_plain
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel.

    Args:
        input: (N, C, …), floating point.
        running_mean: (C,); used when not training, else updated to ``(1 - momentum) * it + momentum * mean``.
        running_var: (C,); likewise, with the unbiased variance.
        weight: (C,), or ``None`` for ones.
        bias: (C,), or ``None`` for zeros.
        training: take mean and (biased) variance over all axes but the channels'.
        momentum: the weight of the new statistics.
        eps: added to the variance.

    Raises:
        ShapeError: a vector has another length; training on a single value per channel.
        AttributeValueError: not training, and no running statistics.
    """
    require_floating(input, "batch_norm")
    x = input._array
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: expected an input (N, C, …), got shape {x.shape}")
    channels = (x.shape[1],)
    for tensor, name in (
        (running_mean, "running_mean"),
        (running_var, "running_var"),
        (weight, "weight"),
        (bias, "bias"),
    ):
        _check_vector(tensor, channels, name, "batch_norm")
    scale = _filled(channels, 1, x.dtype) if weight is None else weight
    shift = _filled(channels, 0, x.dtype) if bias is None else bias
    if training:
        return _train(input, running_mean, running_var, scale, shift, momentum, eps)
    if running_mean is None or running_var is None:
        raise AttributeValueError(
            "batch_norm: expected running_mean and running_var when not training"
        )
    mean, var = running_mean._array, running_var._array
    out = kernel("BatchNormalization", epsilon=_held(eps))(x, scale._array, shift._array, mean, var)
    inputs = (input, scale, shift, running_mean, running_var)
    saved = (x, scale._array, mean, var)
    return recorded(
        "BatchNormalization", inputs, {"epsilon": _held(eps)}, out, _inference_gradient, saved
    )


def _inference_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, scale, mean, var = record.saved
    lift = (1, x.shape[1]) + (1,) * (x.ndim - 2)
    axes = (0, *range(2, x.ndim))
    inverse = _RECIPROCAL(_SQRT(ADD(var, number(record.attributes["epsilon"], var.dtype))))
    dx = MUL(g, MUL(scale, inverse).view_or_copy(lift)) if record.needs(0) else None
    dscale = None
    if record.needs(1):
        normal = MUL(SUB(x, mean.view_or_copy(lift)), inverse.view_or_copy(lift))
        dscale = reduce_sum(MUL(g, normal), axes, False)
    return dx, dscale, reduce_sum(g, axes, False) if record.needs(2) else None, None, None


def _train(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    momentum: float,
    eps: float,
) -> Tensor:
    x = input._array
    count = x.size // x.shape[1] if x.shape[1] else 0
    if count <= 1:
        raise ShapeError(
            f"batch_norm: expected more than one value per channel when training, got shape {x.shape}"
        )
    out, mean, var, inverse = kernel("BatchNormTrain", epsilon=_held(eps))(
        x, scale._array, shift._array
    )
    saved = (x, scale._array, mean, inverse)
    result = recorded(
        "BatchNormTrain",
        (input, scale, shift),
        {"epsilon": _held(eps)},
        out,
        _train_gradient,
        saved,
    )
    for running, new in ((running_mean, mean), (running_var, scaled(var, count / (count - 1)))):
        if running is not None:
            with no_grad():
                kept = scaled(running._array, 1.0 - momentum)
                running.copy_(Tensor(ADD(kept, scaled(cast(new, running.dtype), momentum))))
    return result


@overwrites
def _train_gradient(record: BackwardRecord, g: Array) -> Gradients:
    gradient = kernel("BatchNormGrad")
    if record.owns_gradient:
        scale = record.saved[1]
        found = (
            g,
            Array.full(scale.shape, 0, scale.dtype),
            Array.full(scale.shape, 0, scale.dtype),
        )
        gradient.run_into(found, (*record.saved, g))
        return found
    return gradient(*record.saved, g)  # type: ignore[no-any-return]


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes.

    Args:
        input: floating point, whose shape ends in ``normalized_shape``.
        normalized_shape: the extents of the axes that mean and (biased) variance are taken over.
        weight: of that shape, or ``None`` for ones.
        bias: of that shape, or ``None`` for zeros.
        eps: added to the variance.

    Raises:
        ShapeError: a shape does not fit.
    """
    require_floating(input, "layer_norm")
    x = input._array
    wanted = _trailing(input, normalized_shape, "layer_norm")
    _check_vector(weight, wanted, "weight", "layer_norm")
    _check_vector(bias, wanted, "bias", "layer_norm")
    scale = _filled(wanted, 1, x.dtype) if weight is None else weight
    attributes = {"axis": -len(wanted), "epsilon": _held(eps)}
    b = None if bias is None else bias._array
    out, mean, inverse = kernel("LayerNormalization", **attributes)(x, scale._array, b)
    saved = (x, scale._array, mean, inverse)
    return recorded(
        "LayerNormalization", (input, scale, bias), attributes, out, _layer_norm_gradient, saved
    )


def _trailing(input: Tensor, normalized_shape: Any, operator: str) -> tuple[int, ...]:
    wanted = (
        tuple(normalized_shape)
        if isinstance(normalized_shape, (tuple, list))
        else (normalized_shape,)
    )
    shape = input._array.shape
    if not wanted or shape[-len(wanted) :] != wanted:
        raise ShapeError(f"{operator}: expected a shape that ends in {wanted}, got {shape}")
    return wanted


def _layer_norm_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return kernel("LayerNormGrad", axis=record.attributes["axis"])(*record.saved, g)  # type: ignore[no-any-return]


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last axes.

    Args:
        input: floating point, whose shape ends in ``normalized_shape``.
        normalized_shape: the extents of the axes that the mean is taken over.
        weight: of that shape, or ``None`` for ones.
        eps: added to the mean; ``None`` for the dtype's machine epsilon.

    Raises:
        ShapeError: a shape does not fit.
    """
    require_floating(input, "rms_norm")
    x = input._array
    wanted = _trailing(input, normalized_shape, "rms_norm")
    _check_vector(weight, wanted, "weight", "rms_norm")
    scale = _filled(wanted, 1, x.dtype) if weight is None else weight
    epsilon = _held(_MACHINE_EPSILON.get(x.dtype, 1e-7) if eps is None else eps)
    attributes = {"axis": -len(wanted), "epsilon": epsilon}
    out, inverse = kernel("RMSNormalization", **attributes)(x, scale._array)
    saved = (x, scale._array, inverse)
    return recorded("RMSNormalization", (input, scale), attributes, out, _rms_norm_gradient, saved)


def _rms_norm_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return kernel("RMSNormGrad", axis=record.attributes["axis"])(*record.saved, g)  # type: ignore[no-any-return]


@through_plain
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over each group of channels and all positions.

    Args:
        input: (N, C, …), floating point.
        num_groups: how many groups of consecutive channels.
        weight: (C,), or ``None`` for ones.
        bias: (C,), or ``None`` for zeros.
        eps: added to the (biased) variance.

    Raises:
        ShapeError: the channels do not divide into the groups, or a vector has another length.
    """
    require_floating(input, "group_norm")
    x = input._array
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: expected channels that {num_groups} groups divide, got shape {x.shape}"
        )
    channels = (x.shape[1],)
    _check_vector(weight, channels, "weight", "group_norm")
    _check_vector(bias, channels, "bias", "group_norm")
    scale = _filled(channels, 1, x.dtype) if weight is None else weight
    shift = _filled(channels, 0, x.dtype) if bias is None else bias
    attributes = {"num_groups": int(num_groups), "epsilon": _held(eps)}
    out, mean, inverse = kernel("GroupNormalization", **attributes)(x, scale._array, shift._array)
    saved = (x, scale._array, mean, inverse)
    return recorded(
        "GroupNormalization", (input, scale, shift), attributes, out, _group_norm_gradient, saved
    )


def _group_norm_gradient(record: BackwardRecord, g: Array) -> Gradients:
    run = kernel("GroupNormGrad", num_groups=record.attributes["num_groups"])
    return run(*record.saved, g)  # type: ignore[no-any-return]


@through_plain
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over each channel of each sample.

    Args:
        input: (N, C, …) with at least one position axis, floating point.
        running_mean: (C,); used when ``use_input_stats`` is false.
        running_var: (C,); likewise.
        weight: (C,), or ``None`` for ones.
        bias: (C,), or ``None`` for zeros.
        use_input_stats: take mean and variance from the input.
        momentum: unused: running statistics of single samples are not updated here.
        eps: added to the (biased) variance.

    Raises:
        ShapeError: there is no position axis, or a vector has another length.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    x = input._array
    if x.ndim < 3:
        raise ShapeError(f"instance_norm: expected an input (N, C, L, …), got shape {x.shape}")
    return group_norm(input, x.shape[1], weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``x / (k + alpha / size * sum of x**2 over size neighbouring channels)**beta`` for input (N, C, …)."""
    from onemodel_tensors.ops.padding import pad
    from onemodel_tensors.ops.pooling import avg_pool2d
    from onemodel_tensors.ops.powers import pow

    shape = input.shape
    squares = mul(input, input).reshape(shape[0], 1, shape[1], -1)
    padded = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    means = avg_pool2d(padded, (size, 1), 1).reshape(shape)
    return input / pow(add(mul(means, alpha), k), beta)
