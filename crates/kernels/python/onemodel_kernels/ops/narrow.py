"""Element types of 8 bits and fewer that no kernel holds: their values in a type that holds each.

An array of int4 is an array of int8 whose numbers lie in -8 … 7, an array of float8 one of float32
whose numbers float8 has. What is computed from them is computed from the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onemodel_kernels.errors import DtypeError
from onemodel_kernels.ops.rules import OWN, operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, dtype_name, integer


@dataclass(frozen=True, slots=True)
class Format:
    """A floating-point format: ``(-1)^s 2^(e - bias) 1.m``, without infinities unless it says so.

    Attributes:
        bits: Bits of an element.
        mantissa: Bits of m.
        bias: The bias of e.
        largest: The greatest finite number.
        infinite: Whether it has infinities.
        signed_zero: Whether it has -0; where not, the code of -0 is NaN.
        nan: Whether it has NaN.
    """

    bits: int
    mantissa: int
    bias: int
    largest: float
    infinite: bool = False
    signed_zero: bool = True
    nan: bool = True


FLOATS = {
    "float8e4m3fn": Format(8, 3, 7, 448.0),
    "float8e4m3fnuz": Format(8, 3, 8, 240.0, signed_zero=False),
    "float8e5m2": Format(8, 2, 15, 57344.0, infinite=True),
    "float8e5m2fnuz": Format(8, 2, 16, 57344.0, signed_zero=False),
    "float4e2m1": Format(4, 1, 1, 6.0, nan=False),
}
INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
"""The least and the greatest number."""
HELD = dict.fromkeys(FLOATS, "float32") | {
    name: "uint8" if name[0] == "u" else "int8" for name in INTEGERS
}
"""The type of the arrays that hold the numbers of each type."""
EXPONENTS = (-126, 127)


def values(name: str) -> list[float]:
    """The number of each code of a floating-point format, in the order of the codes."""
    form = FLOATS[name]
    half = 1 << (form.bits - 1)
    found = []
    for code in range(half):
        exponent, fraction = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
        scale = 2.0 ** (max(exponent, 1) - form.bias - form.mantissa)
        number = scale * (fraction + (1 << form.mantissa) * (exponent > 0))
        beyond = float("inf") if form.infinite and not fraction else float("nan")
        found.append(number if number <= form.largest else beyond)
    minus = [-number for number in found]
    if not form.signed_zero:
        minus[0] = float("nan")
    return found + minus


def _narrow(call: Call) -> list[TensorType]:
    name = call["to"]
    if name not in HELD:
        raise DtypeError(f"expected 'to' to be one of {', '.join(HELD)}, got {name!r}")
    return [(HELD[name], call.shape())]


def to_grid(emit: Emitter, x: Any, name: str, saturate: bool) -> Any:
    """float32 numbers rounded to the nearest of a format, halves to the even one.

    Beyond the greatest number: that number, or infinity or NaN without ``saturate``.
    """
    form = FLOATS[name]
    single = "float32"

    def number(value: float) -> Any:
        return emit.constant(value, single)

    # The step between neighbours by binade. A logarithm that lands in the binade beside gives the
    # same result: there x is so close to a power of two that it is rounded to it.
    least = 1 - form.bias
    greatest = max(e for e in range(*EXPONENTS) if 2.0**e <= form.largest)
    unknown = emit.emit("IsNaN", x)
    size = emit.emit("Abs", emit.emit("Where", unknown, number(0.0), x))
    binade = emit.emit("Floor", emit.emit("Log2", size))
    binade = emit.emit("Clip", binade, min=float(least), max=float(greatest))
    index = emit.emit("Cast", emit.emit("Sub", binade, number(float(least))), to="int32")
    steps = [2.0 ** (e - form.mantissa) for e in range(least, greatest + 1)]
    step = emit.emit("Gather", emit.constant(steps, single), index, axis=0)
    rounded = emit.emit("Mul", emit.emit("Round", emit.emit("Div", x, step)), step)
    if saturate or not form.nan:
        # Clip leaves NaN, which a format without it has as -0.
        rounded = emit.emit("Clip", rounded, min=-form.largest, max=form.largest)
        if not form.nan:
            rounded = emit.emit("Where", unknown, number(-0.0), rounded)
    else:
        outside = emit.emit("Greater", emit.emit("Abs", rounded), number(form.largest))
        beyond = number(float("nan"))
        if form.infinite:
            beyond = emit.emit("Mul", emit.emit("Sign", x), number(float("inf")))
        rounded = emit.emit("Where", outside, beyond, rounded)
    return rounded if form.signed_zero else emit.emit("Add", rounded, number(0.0))


def _wrapped(emit: Emitter, x: Any, name: str) -> Any:
    """Integers modulo the size of a type; fractions are cut off first."""
    low, high = INTEGERS[name]
    count = high - low + 1
    whole = emit.emit("Cast", x, to="int32")
    whole = emit.emit("BitwiseAnd", whole, emit.constant(count - 1, "int32"))
    if low:
        above = emit.emit("Greater", whole, emit.constant(high, "int32"))
        moved = emit.emit("Sub", whole, emit.constant(count, "int32"))
        whole = emit.emit("Where", above, moved, whole)
    return emit.emit("Cast", whole, to=HELD[name])


def _emit_narrow(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, name = inputs[0], call["to"]
    _narrow(call)
    if name in INTEGERS:
        return _wrapped(emit, x, name)
    if call.dtype() != "float32":
        x = emit.emit("Cast", x, to="float32")
    return to_grid(emit, x, name, bool(call["saturate"]))


SPECS = [
    operator(
        "NarrowCast",
        "input",
        "output",
        _narrow,
        {"saturate": integer(1), "to": dtype_name(required=True)},
        domain=OWN,
        decompose=_emit_narrow,
        doc="x as a number of a type of 8 bits or fewer, held in int8, uint8 or float32.",
    ),
]
