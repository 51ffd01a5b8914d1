"""Huber(x; delta) for a session: facts, and a kernel compiled from Rust."""

from __future__ import annotations

from pathlib import Path

from onemodel_kernels.errors import DtypeError
from onemodel_kernels.extension import CompiledKernel, register
from onemodel_kernels.ops import Attribute, Call, InputSpec, OpSpec, TensorType

__all__ = ["HUBER"]


def _types(call: Call) -> list[TensorType]:
    if call.dtype() not in ("float32", "float64"):
        raise DtypeError(f"expected float32 or float64, got {call.dtype()}")
    return [(call.dtype(), call.shape())]


_NAMES = ("libcustom_operator.so", "libcustom_operator.dylib", "custom_operator.dll")
_PLACES = [Path(__file__).parent / name for name in _NAMES]
_LIBRARY = next((path for path in _PLACES if path.exists()), _PLACES[0])

HUBER = register(
    OpSpec(
        "Huber",
        inputs=(InputSpec("x"),),
        outputs=(InputSpec("y"),),
        rule=_types,
        attributes={"delta": Attribute("float", 1.0)},
        domain="com.example",
        doc="x^2 / 2 where |x| <= delta, delta (|x| - delta / 2) beyond.",
    ),
    CompiledKernel(_LIBRARY, "huber"),
)
