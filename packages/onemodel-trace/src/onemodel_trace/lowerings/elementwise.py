"""Elementwise operators that ONNX lacks or names differently."""

from __future__ import annotations

import math
from typing import Any

from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded
from onemodel_trace.lowerings.wider import SINGLE, SMALL_INTEGERS, as_it_is, computed_in


def _alias(writer: GraphWriter, call: Recorded) -> GraphValue:
    return call.value()


def _cast(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    if x.dtype == call["to"]:
        return x
    return writer.emit("Cast", x, to=call["to"])


def _relu(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    if x.dtype.startswith(("float", "bfloat")):
        return writer.emit("Relu", x)
    # Consumers have Relu for floats only.
    return writer.emit("Max", x, writer.scalar(0, x))


def _neg(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    if x.dtype.startswith("uint"):
        return writer.emit("Sub", writer.scalar(0, x), x)
    return writer.emit("Neg", x)


def _celu(writer: GraphWriter, call: Recorded) -> GraphValue:
    x, alpha = call.value(), call["alpha"]
    if x.dtype == "float32":
        return writer.emit("Celu", x, alpha=alpha)
    # ONNX has Celu for float32 only.
    scale, zero = writer.scalar(alpha, x), writer.scalar(0.0, x)
    below = writer.emit("Mul", scale, writer.emit("Elu", writer.emit("Div", x, scale), alpha=1.0))
    return writer.emit("Where", writer.emit("LessOrEqual", x, zero), below, x)


def _shift(writer: GraphWriter, call: Recorded) -> GraphValue:
    x, amount = call.value(0), call.value(1)
    if not x.dtype.startswith("uint"):
        raise TraceException(
            TraceErrorKind.UNSUPPORTED_OPERATION,
            f"BitShift: ONNX shifts unsigned integers only, these are {x.dtype}; multiply by a power of "
            "two, or divide with //",
        )
    return writer.emit("BitShift", x, amount, direction=call["direction"])


def _silu(writer: GraphWriter, call: Recorded) -> Any:
    x = call.value()
    return writer.emit("Mul", x, writer.emit("Sigmoid", x))


def _square(writer: GraphWriter, call: Recorded) -> Any:
    return writer.emit("Mul", call.value(), call.value())


def _rsqrt(writer: GraphWriter, call: Recorded) -> Any:
    return writer.emit("Reciprocal", writer.emit("Sqrt", call.value()))


def _trunc(writer: GraphWriter, call: Recorded) -> Any:
    x = call.value()
    negative = writer.emit("Less", x, writer.scalar(0.0, x))
    return writer.emit("Where", negative, writer.emit("Ceil", x), writer.emit("Floor", x))


def _scaled_log(base: float) -> Lowering:
    def lower(writer: GraphWriter, call: Recorded) -> Any:
        x = call.value()
        return writer.emit("Mul", writer.emit("Log", x), writer.scalar(1.0 / math.log(base), x))

    return lower


def _expm1(writer: GraphWriter, call: Recorded) -> Any:
    # e^x - 1 loses all digits near 0; 2t/(1 - t) with t = tanh(x/2) does not, but overflows far out.
    x = call.value()
    one, two, half = (writer.scalar(number, x) for number in (1.0, 2.0, 0.5))
    t = writer.emit("Tanh", writer.emit("Mul", x, half))
    near = writer.emit("Div", writer.emit("Mul", t, two), writer.emit("Sub", one, t))
    far = writer.emit("Sub", writer.emit("Exp", x), one)
    inside = writer.emit("Less", writer.emit("Abs", x), one)
    return writer.emit("Where", inside, near, far)


def _log1p(writer: GraphWriter, call: Recorded) -> Any:
    # Kahan: with u = 1 + x rounded, log(u) * x / (u - 1) corrects the rounding of u.
    x = call.value()
    one, zero = writer.scalar(1.0, x), writer.scalar(0.0, x)
    u = writer.emit("Add", x, one)
    d = writer.emit("Sub", u, one)
    plain = writer.emit("Or", writer.emit("Equal", d, zero), writer.emit("IsInf", u))
    corrected = writer.emit("Mul", writer.emit("Log", u), writer.emit("Div", x, d))
    return writer.emit("Where", plain, x, corrected)


def _atan2(writer: GraphWriter, call: Recorded) -> Any:
    y, x = call.value(0), call.value(1)
    zero = writer.scalar(0.0, x)
    both = writer.emit("And", writer.emit("IsInf", x), writer.emit("IsInf", y))
    origin = writer.emit("And", writer.emit("Equal", x, zero), writer.emit("Equal", y, zero))
    signs = writer.emit("Mul", writer.emit("Sign", y), writer.emit("Sign", x))
    ratio = writer.emit("Where", both, signs, writer.emit("Div", y, x))
    angle = writer.emit("Atan", writer.emit("Where", origin, y, ratio))

    def negative(value: GraphValue) -> GraphValue:
        # A negative zero is not below zero, but its reciprocal is.
        inverse = writer.emit("Reciprocal", value)
        return writer.emit(
            "Or", writer.emit("Less", value, zero), writer.emit("Less", inverse, zero)
        )

    left, below = negative(x), negative(y)
    turn = writer.emit("Where", below, writer.scalar(-math.pi, x), writer.scalar(math.pi, x))
    return writer.emit("Where", left, writer.emit("Add", angle, turn), angle)


def _clip(writer: GraphWriter, call: Recorded) -> Any:
    x = call.value()
    low, high = call.get("min"), call.get("max")
    if len(call.inputs) > 1:
        low_value, high_value = call.optional(1), call.optional(2)
        result: Any = x if low_value is None else writer.emit("Max", x, low_value)
        return result if high_value is None else writer.emit("Min", result, high_value)
    if low is not None and high is not None and low <= high:
        return writer.emit("Clip", x, min=low, max=high)
    # A Clip with an absent bound turns infinities into the greatest finite number in some consumers.
    result = x if low is None else writer.emit("Max", x, writer.scalar(low, x))
    return result if high is None else writer.emit("Min", result, writer.scalar(high, x))


LOWERINGS: dict[str, Lowering] = {
    "Identity": _alias,
    "Cast": _cast,
    "Relu": _relu,
    "Neg": _neg,
    "Celu": computed_in(SINGLE, _celu),
    "BitShift": _shift,
    "Silu": computed_in(SINGLE, _silu),
    "Square": _square,
    "Rsqrt": computed_in(SINGLE, _rsqrt),
    "Trunc": _trunc,
    "Log2": _scaled_log(2.0),
    "Log10": _scaled_log(10.0),
    "Expm1": _expm1,
    "Log1p": _log1p,
    "Atan2": _atan2,
    "Pow": computed_in(SMALL_INTEGERS | {"uint32": "int64", "uint64": "int64"}, as_it_is),
    "Clip": _clip,
}
