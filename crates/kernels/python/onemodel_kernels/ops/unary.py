"""Elementwise operators of one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import DtypeError
from onemodel_kernels.ops.rules import FLOATS, INTEGERS, OWN, operator, predicate, same
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, dtype_name, integer

ELEMENTARY = "Own polynomial, at most 2 ulp, the same bits on every machine."


def _bool(call: Call) -> list[TensorType]:
    if call.dtype() != "bool":
        raise DtypeError(f"the input must be bool, but it is {call.dtype()}")
    return same(call)


def _float(call: Call) -> list[TensorType]:
    if call.dtype() not in FLOATS:
        raise DtypeError(f"the input must be floating point, but it is {call.dtype()}")
    return same(call)


def _integer(call: Call) -> list[TensorType]:
    if call.dtype() not in INTEGERS:
        raise DtypeError(f"the input must be an integer type, but it is {call.dtype()}")
    return same(call)


def _cast(call: Call) -> list[TensorType]:
    return [(call["to"], call.shape())]


def _cast_like(call: Call) -> list[TensorType]:
    return [(call.dtype(1), call.shape())]


def _emit_cast_like(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    return emit.emit("Cast", inputs[0], to=call.dtype(1))


def _to(call: Call) -> dict[str, Any]:
    return {"to": call["to"]}


SPECS = [
    operator("Neg", "X", "Y", same, since_version=13, doc="-x; wraps for integers."),
    operator(
        "Abs", "X", "Y", same, since_version=13, doc="|x|; the least signed integer stays as it is."
    ),
    operator("Sign", "input", "output", same, since_version=13, doc="-1, 0 or 1; NaN stays NaN."),
    operator("Floor", "X", "Y", _float, since_version=13, doc="The greatest integer not above x."),
    operator("Ceil", "X", "Y", _float, since_version=13, doc="The least integer not below x."),
    operator(
        "Round",
        "X",
        "Y",
        _float,
        since_version=11,
        doc="The nearest integer; halves go to the even one.",
    ),
    operator("Trunc", "X", "Y", _float, domain=OWN, doc="x without its fraction."),
    operator("Sqrt", "X", "Y", _float, since_version=13, doc="The square root, correctly rounded."),
    operator("Rsqrt", "X", "Y", _float, domain=OWN, doc="1 / sqrt(x), two roundings."),
    operator("Reciprocal", "X", "Y", _float, since_version=13, doc="1 / x, correctly rounded."),
    operator("Square", "X", "Y", same, domain=OWN, doc="x * x."),
    operator("Identity", "input", "output", same, since_version=19, in_shape=True, doc="x."),
    operator(
        "Cast",
        "input",
        "output",
        _cast,
        {"saturate": integer(1), "to": dtype_name(required=True)},
        since_version=19,
        prepare=_to,
        doc="x in another dtype: floats to integers truncate, to bool is x != 0.",
    ),
    operator(
        "CastLike",
        "input target_type",
        "output",
        _cast_like,
        {"saturate": integer(1)},
        since_version=19,
        decompose=_emit_cast_like,
        doc="x in the dtype of the second input.",
    ),
    operator("IsNaN", "X", "Y", predicate, since_version=20, doc="Whether x is NaN."),
    operator(
        "IsInf",
        "X",
        "Y",
        predicate,
        {"detect_negative": integer(1), "detect_positive": integer(1)},
        since_version=20,
        doc="Whether x is infinite with a sign that is looked for.",
    ),
    operator("Not", "X", "Y", _bool, since_version=1, doc="Not x."),
    operator("BitwiseNot", "X", "Y", _integer, since_version=18, doc="Every bit flipped."),
]

_ELEMENTARY = {
    "Exp": (13, "input", "e^x"),
    "Log": (13, "input", "ln x"),
    "Erf": (13, "input", "The error function"),
    "Tanh": (13, "input", "tanh x"),
    "Sin": (7, "input", "sin x"),
    "Cos": (7, "input", "cos x"),
    "Tan": (7, "input", "tan x"),
    "Asin": (7, "input", "asin x"),
    "Acos": (7, "input", "acos x"),
    "Atan": (7, "input", "atan x"),
    "Sinh": (9, "input", "sinh x"),
    "Cosh": (9, "input", "cosh x"),
    "Asinh": (9, "input", "asinh x"),
    "Acosh": (9, "input", "acosh x"),
    "Atanh": (9, "input", "atanh x"),
}
SPECS += [
    operator(n, i, "output", _float, since_version=v, determinism=ELEMENTARY, doc=f"{d}.")
    for n, (v, i, d) in _ELEMENTARY.items()
]
SPECS += [
    operator(n, "X", "Y", _float, domain=OWN, determinism=ELEMENTARY, doc=f"{d}.")
    for n, d in {
        "Expm1": "e^x - 1 without cancellation",
        "Log1p": "ln(1 + x) without cancellation",
        "Log2": "The logarithm to base 2",
        "Log10": "The logarithm to base 10",
    }.items()
]
