"""Elementwise operators of two and more inputs, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, DtypeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.rules import (
    FLOATS,
    INTEGERS,
    OWN,
    broadcasting,
    comparison,
    logical,
    operator,
)
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, text
from onemodel_kernels.ops.unary import ELEMENTARY

ROUNDED = "One correctly rounded operation for each element; integers wrap; exact."


def _integers(call: Call) -> list[TensorType]:
    if call.agree() not in INTEGERS:
        raise DtypeError(f"inputs must be integers, but they are {call.dtype()}")
    return broadcasting(call)


def _power(call: Call) -> list[TensorType]:
    return [(call.dtype(0), extents.broadcast_shapes(call.shape(0), call.shape(1)))]


def _shift(call: Call) -> list[TensorType]:
    if call["direction"] not in ("LEFT", "RIGHT"):
        raise AttributeValueError(
            f"direction must be 'LEFT' or 'RIGHT', but it is {call['direction']!r}"
        )
    return _integers(call)


def _emit_shift(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """The kernel's shift; a signed number that is shifted right by its width or more (or by less
    than nothing) leaves its sign alone, which a shift by width - 1 gives.
    """
    x, amount = inputs[:2]
    dtype = call.agree()
    if call["direction"] == "RIGHT" and dtype.startswith("int"):
        last = emit.constant(int(dtype.removeprefix("int")) - 1, dtype)
        zero = emit.constant(0, dtype)
        amount = emit.emit("Where", emit.emit("Less", amount, zero), last, amount)
        amount = emit.emit("Min", amount, last)
    return emit.kernel("BitShift", x, amount, direction=call["direction"])


def _emit_modulo(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """The kernel's remainder; where floats need the divisor's sign, it is fitted to C's fmod."""
    a, b = inputs[:2]
    dtype = call.agree()
    if call["fmod"] or dtype not in FLOATS:
        return emit.kernel("Mod", a, b, fmod=call["fmod"])
    rest = emit.kernel("Mod", a, b, fmod=1)
    zero = emit.constant(0.0, dtype)
    apart = emit.emit("Xor", emit.emit("Less", rest, zero), emit.emit("Less", b, zero))
    none = emit.emit("Equal", rest, zero)
    moved = emit.emit("Where", apart, emit.emit("Add", rest, b), rest)
    # A remainder of nothing is a zero with the divisor's sign.
    signed = emit.emit("Where", emit.emit("Less", b, zero), emit.constant(-0.0, dtype), zero)
    return emit.emit("Where", none, signed, moved)


def _where(call: Call) -> list[TensorType]:
    if call.dtype(0) != "bool":
        raise DtypeError(f"the condition must be bool, but it is {call.dtype(0)}")
    dtype = call.agree(1, 2)
    return [(dtype, extents.broadcast_shapes(call.shape(0), call.shape(1), call.shape(2)))]


def _two(name: str, since: int, rule: Any, doc: str, **facts: Any) -> Any:
    facts.setdefault("determinism", ROUNDED)
    return operator(name, "A B", "C", rule, since_version=since, doc=doc, **facts)


SPECS = [
    _two("Add", 14, broadcasting, "a + b."),
    _two("Sub", 14, broadcasting, "a - b."),
    _two("Mul", 14, broadcasting, "a * b."),
    _two("Div", 14, broadcasting, "a / b; integers truncate towards zero."),
    operator(
        "Pow", "X Y", "Z", _power, since_version=15, determinism=ELEMENTARY, doc="x^y in x's dtype."
    ),
    _two(
        "Mod",
        13,
        broadcasting,
        "The remainder: the divisor's sign, with fmod=1 the dividend's.",
        attributes={"fmod": integer(0)},
        decompose=_emit_modulo,
    ),
    _two("FloorDiv", 1, broadcasting, "floor(a / b).", domain=OWN),
    operator(
        "Atan2",
        "Y X",
        "Z",
        broadcasting,
        domain=OWN,
        determinism=ELEMENTARY,
        doc="The angle of (x, y).",
    ),
    _two("Equal", 19, comparison, "a == b."),
    _two("Less", 13, comparison, "a < b."),
    _two("LessOrEqual", 16, comparison, "a <= b."),
    _two("Greater", 13, comparison, "a > b."),
    _two("GreaterOrEqual", 16, comparison, "a >= b."),
    _two("And", 7, logical, "a and b."),
    _two("Or", 7, logical, "a or b."),
    _two("Xor", 7, logical, "a != b."),
    _two("BitwiseAnd", 18, _integers, "a & b."),
    _two("BitwiseOr", 18, _integers, "a | b."),
    _two("BitwiseXor", 18, _integers, "a ^ b."),
    operator(
        "BitShift",
        "X Y",
        "Z",
        _shift,
        {"direction": text(required=True)},
        since_version=11,
        decompose=_emit_shift,
        doc="x shifted by y bits; by the width or more gives 0, or -1 for a negative x to the right.",
    ),
    operator(
        "Where", "condition X Y", "output", _where, since_version=16, doc="condition ? x : y."
    ),
    operator(
        "Max", "data_0*", "max", broadcasting, since_version=13, doc="The greatest; NaN wins."
    ),
    operator("Min", "data_0*", "min", broadcasting, since_version=13, doc="The least; NaN wins."),
    operator(
        "Sum",
        "data_0*",
        "sum",
        broadcasting,
        since_version=13,
        doc="The sum, added from the first on.",
    ),
    operator(
        "Mean",
        "data_0*",
        "mean",
        broadcasting,
        since_version=13,
        doc="The sum over the number of inputs.",
    ),
]
