"""Elementary functions of one argument, elementwise. Integers become the default dtype first.

Gradients are exact derivatives of the formula in each docstring, evaluated in the tensor's dtype. Every function is
deterministic: its result depends on the element alone, bit for bit.
"""

from __future__ import annotations

import math

from onemodel_kernels import Array, Kernel
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.layouts import in_blocks
from onemodel_tensors.ops.arrays import (
    ADD,
    DIV,
    EQUAL,
    EXP,
    LESS,
    LOG,
    MUL,
    NEG,
    SQRT,
    SQUARE,
    SUB,
    WHERE,
    number,
    scaled,
    zeros,
)
from onemodel_tensors.ops.promotion import floating
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradient, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "frac",
    "log",
    "log1p",
    "log2",
    "log10",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]

_ABS, _SIGN = Kernel("Abs"), Kernel("Sign")


def _one(array: Array) -> Array:
    return number(1.0, array.dtype)


def _from_input(operator: str, input: Tensor, gradient: Gradient) -> Tensor:
    """A function whose gradient needs its argument."""
    x = floating(input, operator.lower())
    array = x._array
    return recorded(operator, (x,), NO_ATTRIBUTES, kernel(operator)(array), gradient, (array,))


def _from_output(operator: str, input: Tensor, gradient: Gradient) -> Tensor:
    """A function whose gradient needs its value."""
    x = floating(input, operator.lower())
    out = kernel(operator)(x._array)
    return recorded(operator, (x,), NO_ATTRIBUTES, out, gradient, (out,))


def _rounding(operator: str, input: Tensor) -> Tensor:
    """A step function: its gradient is zero; integers stay as they are."""
    if input._array.dtype not in FLOATING:
        return input
    shape = input._array.shape
    return recorded(
        operator, (input,), NO_ATTRIBUTES, kernel(operator)(input._array), _zero, (shape,)
    )


def _zero(record: BackwardRecord, g: Array) -> Gradients:
    return (zeros(record.saved[0], g.dtype),)


def abs(input: Tensor) -> Tensor:
    """``|x|`` in the tensor's dtype; the gradient at 0 is 0."""
    x = input._array
    return recorded("Abs", (input,), NO_ATTRIBUTES, _ABS(x), _abs_gradient, (x,))


def _abs_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (MUL(g, _SIGN(record.saved[0])),)


def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; the gradient is zero."""
    return recorded(
        "Sign", (input,), NO_ATTRIBUTES, _SIGN(input._array), _zero, (input._array.shape,)
    )


def floor(input: Tensor) -> Tensor:
    """The greatest integer not above ``x``; the gradient is zero."""
    return _rounding("Floor", input)


def ceil(input: Tensor) -> Tensor:
    """The smallest integer not below ``x``; the gradient is zero."""
    return _rounding("Ceil", input)


def trunc(input: Tensor) -> Tensor:
    """``x`` without its fraction; the gradient is zero."""
    return _rounding("Trunc", input)


def frac(input: Tensor) -> Tensor:
    """``x - trunc(x)``."""
    from onemodel_tensors.ops.arithmetic import sub

    return sub(input, trunc(input))


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, or the nearest multiple of ``10**-decimals``; half goes to even. The gradient is zero."""
    if decimals == 0:
        return _rounding("Round", input)
    from onemodel_tensors.ops.arithmetic import div, mul

    factor = 10.0 ** max(decimals, -decimals)
    if decimals > 0:
        return div(_rounding("Round", mul(input, factor)), factor)
    return mul(_rounding("Round", div(input, factor)), factor)


def sqrt(input: Tensor) -> Tensor:
    """``x ** 0.5``; NaN below 0."""
    return _from_output("Sqrt", input, _sqrt_gradient)


def _sqrt_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (y,) = record.saved
    return (DIV(g, ADD(y, y)),)


def rsqrt(input: Tensor) -> Tensor:
    """``x ** -0.5``."""
    return _from_output("Rsqrt", input, _rsqrt_gradient)


def _rsqrt_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (y,) = record.saved
    return (scaled(MUL(g, MUL(SQUARE(y), y)), -0.5),)


def reciprocal(input: Tensor) -> Tensor:
    """``1 / x``."""
    return _from_output("Reciprocal", input, _reciprocal_gradient)


def _reciprocal_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (NEG(MUL(g, SQUARE(record.saved[0]))),)


def square(input: Tensor) -> Tensor:
    """``x * x`` in the tensor's dtype."""
    from onemodel_tensors.ops.arithmetic import mul

    return mul(input, input)


def exp(input: Tensor) -> Tensor:
    """``e ** x``."""
    return _from_output("Exp", input, _exp_gradient)


def _exp_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (MUL(g, record.saved[0]),)


def expm1(input: Tensor) -> Tensor:
    """``e ** x - 1``, accurate near 0."""
    x = floating(input, "expm1")
    out = _expm1(x._array)
    return recorded("Expm1", (x,), NO_ATTRIBUTES, out, _expm1_gradient, (out,))


def _expm1(x: Array) -> Array:
    # The steps are those that a graph takes, which has no such operator; so the bits are the same there.
    one = _one(x)
    t = kernel("Tanh")(scaled(x, 0.5))
    near = DIV(scaled(t, 2.0), SUB(one, t))
    result: Array = WHERE(LESS(_ABS(x), one), near, SUB(EXP(x), one))
    return result


def _expm1_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (y,) = record.saved
    return (MUL(g, ADD(y, _one(y))),)


def log(input: Tensor) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below."""
    return _from_input("Log", input, _log_gradient)


def _log_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (DIV(g, record.saved[0]),)


def log2(input: Tensor) -> Tensor:
    """The logarithm to base 2."""
    return _scaled_log("Log2", 2.0, input, _log2_gradient)


def _scaled_log(operator: str, base: float, input: Tensor, gradient: Gradient) -> Tensor:
    # As a graph computes it, which has no such operator; so the bits are the same there.
    x = floating(input, operator.lower())
    out = scaled(LOG(x._array), 1.0 / math.log(base))
    return recorded(operator, (x,), NO_ATTRIBUTES, out, gradient, (x._array,))


def _log2_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (DIV(g, scaled(record.saved[0], math.log(2.0))),)


def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10."""
    return _scaled_log("Log10", 10.0, input, _log10_gradient)


def _log10_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (DIV(g, scaled(record.saved[0], math.log(10.0))),)


def log1p(input: Tensor) -> Tensor:
    """``log(1 + x)``, accurate near 0."""
    x = floating(input, "log1p")
    array = x._array
    return recorded("Log1p", (x,), NO_ATTRIBUTES, _log1p(array), _log1p_gradient, (array,))


def _log1p(x: Array) -> Array:
    # Kahan's correction, in the steps that a graph takes: with u = 1 + x rounded, log(u) * (x / (u - 1)).
    one = _one(x)
    u = ADD(x, one)
    d = SUB(u, one)
    plain = kernel("Or")(EQUAL(d, number(0.0, x.dtype)), kernel("IsInf")(u))
    result: Array = WHERE(plain, x, MUL(LOG(u), DIV(x, d)))
    return result


def _log1p_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, ADD(x, _one(x))),)


def sin(input: Tensor) -> Tensor:
    """The sine of ``x`` in radians."""
    return _from_input("Sin", input, _sin_gradient)


def _sin_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (MUL(g, kernel("Cos")(record.saved[0])),)


def cos(input: Tensor) -> Tensor:
    """The cosine of ``x`` in radians."""
    return _from_input("Cos", input, _cos_gradient)


def _cos_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (NEG(MUL(g, kernel("Sin")(record.saved[0]))),)


def tan(input: Tensor) -> Tensor:
    """The tangent of ``x`` in radians."""
    return _from_output("Tan", input, _tan_gradient)


def _tan_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (y,) = record.saved
    return (MUL(g, ADD(SQUARE(y), _one(y))),)


def asin(input: Tensor) -> Tensor:
    """The angle in ``[-pi/2, pi/2]`` whose sine is ``x``."""
    return _from_input("Asin", input, _asin_gradient)


def _asin_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, SQRT(SUB(_one(x), SQUARE(x)))),)


def acos(input: Tensor) -> Tensor:
    """The angle in ``[0, pi]`` whose cosine is ``x``."""
    return _from_input("Acos", input, _acos_gradient)


def _acos_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (NEG(DIV(g, SQRT(SUB(_one(x), SQUARE(x))))),)


def atan(input: Tensor) -> Tensor:
    """The angle in ``(-pi/2, pi/2)`` whose tangent is ``x``."""
    return _from_input("Atan", input, _atan_gradient)


def _atan_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, ADD(SQUARE(x), _one(x))),)


def sinh(input: Tensor) -> Tensor:
    """``(e**x - e**-x) / 2``."""
    return _from_input("Sinh", input, _sinh_gradient)


def _sinh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (MUL(g, kernel("Cosh")(record.saved[0])),)


def cosh(input: Tensor) -> Tensor:
    """``(e**x + e**-x) / 2``."""
    return _from_input("Cosh", input, _cosh_gradient)


def _cosh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (MUL(g, kernel("Sinh")(record.saved[0])),)


def asinh(input: Tensor) -> Tensor:
    """The value whose hyperbolic sine is ``x``."""
    return _from_input("Asinh", input, _asinh_gradient)


def _asinh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, SQRT(ADD(SQUARE(x), _one(x)))),)


def acosh(input: Tensor) -> Tensor:
    """The non-negative value whose hyperbolic cosine is ``x``; NaN below 1."""
    return _from_input("Acosh", input, _acosh_gradient)


def _acosh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, SQRT(SUB(SQUARE(x), _one(x)))),)


def atanh(input: Tensor) -> Tensor:
    """The value whose hyperbolic tangent is ``x``."""
    return _from_input("Atanh", input, _atanh_gradient)


def _atanh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (x,) = record.saved
    return (DIV(g, SUB(_one(x), SQUARE(x))),)


@in_blocks
def tanh(input: Tensor) -> Tensor:
    """``(e**x - e**-x) / (e**x + e**-x)``."""
    return _from_output("Tanh", input, _tanh_gradient)


def _tanh_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (kernel("TanhGrad")(record.saved[0], g),)


@in_blocks
def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + e**-x)``."""
    return _from_output("Sigmoid", input, _sigmoid_gradient)


def _sigmoid_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (kernel("SigmoidGrad")(record.saved[0], g),)


def erf(input: Tensor) -> Tensor:
    """The error function ``2 / sqrt(pi) * integral of e**-t**2 from 0 to x``."""
    return _from_input("Erf", input, _erf_gradient)


def _erf_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (kernel("ErfGrad")(record.saved[0], g),)
