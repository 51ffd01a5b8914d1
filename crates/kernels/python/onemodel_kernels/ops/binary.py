"""Elementwise operators of two and more inputs, with broadcasting."""

from __future__ import annotations

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
from onemodel_kernels.ops.spec import Call, TensorType, integer, text
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


def _modulo(call: Call) -> list[TensorType]:
    if call.agree() in FLOATS and not call["fmod"]:
        raise AttributeValueError("floating point inputs need fmod=1")
    return broadcasting(call)


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
        _modulo,
        "The remainder: the divisor's sign, with fmod=1 the dividend's.",
        attributes={"fmod": integer(0)},
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
        doc="x shifted by y bits; a shift by the width or more gives 0.",
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
