"""Activation functions, elementwise. ``inplace=True`` writes the result into the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import recording
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.layouts import in_blocks, through_plain
from onemodel_tensors.ops.arithmetic import div, mul, neg, sub
from onemodel_tensors.ops.arrays import (
    ADD,
    AND,
    DIV,
    EXP,
    GREATER,
    LESS,
    LESS_OR_EQUAL,
    MUL,
    NOT,
    SQUARE,
    WHERE,
    masked,
    number,
    scaled,
    sum_to,
)
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.comparison import gt
from onemodel_tensors.ops.in_place import in_place
from onemodel_tensors.ops.mathematics import sigmoid, tanh
from onemodel_tensors.ops.promotion import require_floating
from onemodel_tensors.ops.selection import where
from onemodel_tensors.record import (
    NO_ATTRIBUTES,
    Attributes,
    BackwardRecord,
    Gradient,
    Gradients,
    overwrites,
)
from onemodel_tensors.tensor import Tensor

if TYPE_CHECKING:
    from onemodel_tensors.random import Generator

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
]

_RELU = Kernel("Relu")
_RELU_GRAD = Kernel("ReluGrad")
_RELU_MASK, _RELU_MASK_GRAD = Kernel("ReluMask"), Kernel("ReluMaskGrad")
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _elementwise(
    operator: str, input: Tensor, attributes: Attributes, gradient: Gradient, inplace: bool
) -> Tensor:
    require_floating(input, operator.lower())
    if inplace:
        return in_place(
            input,
            f"{operator.lower()}(inplace=True)",
            lambda x: _elementwise(operator, x, attributes, gradient, False),
        )
    x = input._array
    out = kernel(operator, **attributes)(x)
    return recorded(operator, (input,), attributes, out, gradient, (x,))


def _by_kernel(record: BackwardRecord, g: Array) -> Gradients:
    """The gradient of an operator whose gradient kernel is named after it and takes input and gradient."""
    return (kernel(f"{record.operator}Grad", **record.attributes)(record.saved[0], g),)


@in_blocks
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; NaN stays NaN. Its gradient at 0 is 0. Integers are allowed."""
    if inplace:
        return in_place(input, "relu(inplace=True)", relu)
    x = input._array
    if input._node is not None and x.dtype == "float32":
        out, mask = _RELU_MASK(x)
        return recorded("Relu", (input,), NO_ATTRIBUTES, out, _relu_mask_gradient, (mask,))
    out = _RELU(x)
    if input._node is None and not recording.active:
        return Tensor(out)
    return recorded("Relu", (input,), NO_ATTRIBUTES, out, _relu_gradient, (out,))


@overwrites
def _relu_mask_gradient(record: BackwardRecord, g: Array) -> Gradients:
    if record.owns_gradient:
        _RELU_MASK_GRAD.run_into([g], [record.saved[0], g])
        return (g,)
    return (_RELU_MASK_GRAD(record.saved[0], g),)


def _relu_gradient(record: BackwardRecord, g: Array) -> Gradients:
    # The result is positive exactly where the input is, so the input need not be kept.
    return (_RELU_GRAD(record.saved[0], g),)


def _relu_method(input: Tensor) -> Tensor:
    return relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``; the gradient is 0 at the bounds."""
    return hardtanh(input, 0.0, 6.0, inplace)


@in_blocks
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``min(max(x, min_val), max_val)``; the gradient is 0 at the bounds.

    Raises:
        AttributeValueError: ``min_val`` is above ``max_val``.
    """
    if min_val > max_val:
        raise AttributeValueError(
            f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}"
        )
    attributes = {"min": float(min_val), "max": float(max_val)}
    return _elementwise("Clip", input, attributes, _hardtanh_gradient, inplace)


def _hardtanh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    low = number(record.attributes["min"], x.dtype)
    high = number(record.attributes["max"], x.dtype)
    return (masked(AND(GREATER(x, low), LESS(x, high)), g),)


@in_blocks
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``; the gradient at 0 is the slope."""
    return _elementwise("LeakyRelu", input, {"alpha": float(negative_slope)}, _by_kernel, inplace)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """``x`` where positive, else ``slope * x``: a slope drawn for each element while training, else their mean.

    Determinism: given by the generator's state.
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    from onemodel_tensors.random import rand

    slopes = rand(input._array.shape, generator=generator) * (upper - lower) + lower
    if inplace:
        return in_place(
            input, "rrelu(inplace=True)", lambda x: prelu_broadcast(x, to_dtype(slopes, x.dtype))
        )
    return prelu_broadcast(input, to_dtype(slopes, input._array.dtype))


@in_blocks
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (e**x - 1)``."""
    return _elementwise("Elu", input, {"alpha": float(alpha)}, _by_kernel, inplace)


@in_blocks
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(x, 0) + min(alpha * (e**(x / alpha) - 1), 0)``.

    Raises:
        AttributeValueError: ``alpha`` is 0.
    """
    if alpha == 0:
        raise AttributeValueError("celu: expected alpha other than 0")
    return _elementwise("Celu", input, {"alpha": float(alpha)}, _celu_gradient, inplace)


def _celu_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    slope = EXP(DIV(x, number(record.attributes["alpha"], x.dtype)))
    return (WHERE(GREATER(x, number(0.0, x.dtype)), g, MUL(g, slope)),)


@in_blocks
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``scale * (max(x, 0) + min(alpha * (e**x - 1), 0))`` with the constants of Klambauer et al., 2017."""
    attributes = {"alpha": _SELU_ALPHA, "gamma": _SELU_SCALE}
    return _elementwise("Selu", input, attributes, _selu_gradient, inplace)


def _selu_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    below = scaled(EXP(x), _SELU_ALPHA)
    slope = WHERE(GREATER(x, number(0.0, x.dtype)), number(1.0, x.dtype), below)
    return (MUL(g, scaled(slope, _SELU_SCALE)),)


@in_blocks
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x * Phi(x)`` with the normal distribution function; +inf gives +inf.

    Args:
        input: floating point.
        approximate: ``"none"``, or ``"tanh"`` for ``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))``.

    Raises:
        AttributeValueError: another approximation.
    """
    if approximate not in ("none", "tanh"):
        raise AttributeValueError(
            f"gelu: expected approximate 'none' or 'tanh', got {approximate!r}"
        )
    return _elementwise("Gelu", input, {"approximate": approximate}, _by_kernel, False)


@in_blocks
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return _elementwise("Silu", input, NO_ATTRIBUTES, _by_kernel, inplace)


@in_blocks
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(log(1 + e**x))``."""
    return _elementwise("Mish", input, NO_ATTRIBUTES, _by_kernel, inplace)


@in_blocks
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + e**(beta * x)) / beta``; ``x`` itself where ``beta * x`` is above ``threshold``."""
    if beta == 1.0 and threshold == 20.0:
        return _elementwise("Softplus", input, NO_ATTRIBUTES, _by_kernel, False)
    steep = mul(input, float(beta))
    smooth = div(_elementwise("Softplus", steep, NO_ATTRIBUTES, _by_kernel, False), float(beta))
    result: Tensor = where(gt(steep, float(threshold)), input, smooth)
    return result


@in_blocks
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x / 6 + 1/2, 0), 1)``."""
    return _elementwise(
        "HardSigmoid", input, {"alpha": 1.0 / 6.0, "beta": 0.5}, _by_kernel, inplace
    )


@in_blocks
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)``."""
    return _elementwise("HardSwish", input, NO_ATTRIBUTES, _by_kernel, inplace)


@in_blocks
def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return _elementwise("Softsign", input, NO_ATTRIBUTES, _softsign_gradient, False)


def _softsign_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, SQUARE(ADD(kernel("Abs")(x), number(1.0, x.dtype)))),)


@in_blocks
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` where ``|x| > lambd``, else 0; NaN stays NaN."""
    return _elementwise(
        "Shrink", input, {"lambd": float(lambd), "bias": 0.0}, _shrink_gradient, False
    )


@in_blocks
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x - lambd`` above ``lambd``, ``x + lambd`` below ``-lambd``, else 0; NaN stays NaN.

    Raises:
        AttributeValueError: ``lambd`` is negative.
    """
    if lambd < 0:
        raise AttributeValueError(f"softshrink: expected lambd >= 0, got {lambd}")
    attributes = {"lambd": float(lambd), "bias": float(lambd)}
    return _elementwise("Shrink", input, attributes, _shrink_gradient, False)


def _shrink_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    inside = LESS_OR_EQUAL(kernel("Abs")(x), number(record.attributes["lambd"], x.dtype))
    return (masked(NOT(inside), g),)


@in_blocks
def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return sub(input, tanh(input))


@in_blocks
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))``, computed as ``-softplus(-x)``."""
    return neg(_elementwise("Softplus", neg(input), NO_ATTRIBUTES, _by_kernel, False))


@in_blocks
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is above ``threshold``, else ``value``."""
    if inplace:
        return in_place(
            input, "threshold(inplace=True)", lambda x: where(gt(x, threshold), x, value)
        )
    result: Tensor = where(gt(input, threshold), input, value)
    return result


@through_plain
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``x`` where positive, else ``weight * x``, one weight for all or for each channel.

    Args:
        input: (N, C, …), or (N,), floating point.
        weight: of shape (1,) or (C,), same dtype.

    Raises:
        ShapeError: the number of weights is neither 1 nor the number of channels.
    """
    require_floating(input, "prelu")
    x, w = input._array, weight._array
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or w.size not in (1, channels):
        raise ShapeError(
            f"prelu: expected a weight of shape (1,) or ({channels},) for an input of shape {x.shape}, got {w.shape}"
        )
    if w.size > 1 and x.ndim > 2:
        return prelu_broadcast(input, weight.reshape((w.size,) + (1,) * (x.ndim - 2)))
    return prelu_broadcast(input, weight)


def prelu_broadcast(input: Tensor, slope: Tensor) -> Tensor:
    """``x`` where positive, else ``slope * x``, the slope broadcast to the input."""
    x, w = input._array, slope._array
    return recorded(
        "PRelu", (input, slope), NO_ATTRIBUTES, kernel("PRelu")(x, w), _prelu_gradient, (x, w)
    )


def _prelu_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, w = record.saved
    positive = GREATER(x, number(0.0, x.dtype))
    dx = WHERE(positive, g, MUL(g, w)) if record.needs(0) else None
    dw = sum_to(masked(NOT(positive), MUL(g, x)), w.shape) if record.needs(1) else None
    return dx, dw


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """``a * sigmoid(b)`` with ``a`` and ``b`` the halves of the input along an axis.

    Raises:
        ShapeError: the axis has an odd extent.
    """
    from onemodel_tensors.ops.splitting import split

    extent = input._array.shape[dim]
    if extent % 2:
        raise ShapeError(
            f"glu: expected an even extent of axis {dim}, got shape {input._array.shape}"
        )
    first, second = split(input, extent // 2, dim)
    return mul(first, sigmoid(second))
