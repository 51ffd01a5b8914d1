"""Inference rules that many operators share, and the short form in which families write specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onemodel_kernels.errors import DtypeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.spec import Attribute, Call, OpSpec, TensorType, slots

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = frozenset({"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"})
OWN = "onemodel"
"""The domain of operators that ONNX does not have."""


def same(call: Call) -> list[TensorType]:
    """The first input's type."""
    return [(call.dtype(), call.shape())]


def predicate(call: Call) -> list[TensorType]:
    """A bool for each element."""
    return [("bool", call.shape())]


def broadcasting(call: Call) -> list[TensorType]:
    """One dtype, broadcast shapes."""
    dtype = call.agree()
    present = [shape for shape in call.shapes if shape is not None]
    return [(dtype, extents.broadcast_shapes(*present))]


def comparison(call: Call) -> list[TensorType]:
    """A bool for each element of the broadcast shape."""
    return [("bool", broadcasting(call)[0][1])]


def logical(call: Call) -> list[TensorType]:
    """Bools in, a bool for each element of the broadcast shape out."""
    if call.agree() != "bool":
        raise DtypeError(f"inputs must be bool, but they are {call.dtype()}")
    return comparison(call)


def no_attributes(call: Call) -> dict[str, Any]:
    """For kernels that take none of the operator's attributes."""
    return {}


def chosen(*names: str, **renamed: str) -> Any:
    """A ``prepare`` that passes the named attributes on; ``kernel_name="ONNX name"`` renames."""

    def prepare(call: Call) -> dict[str, Any]:
        found = {name: call[name] for name in names if call[name] is not None}
        for kernel_name, name in renamed.items():
            if call[name] is not None:
                found[kernel_name] = call[name]
        return found

    return prepare


def operator(
    name: str,
    inputs: str,
    outputs: str,
    rule: Any,
    attributes: Mapping[str, Attribute] | None = None,
    **facts: Any,
) -> OpSpec:
    """A spec in the families' short form.

    ``inputs`` and ``outputs`` are as :func:`onemodel_kernels.ops.spec.slots` reads them; the kernel
    has the operator's own name unless ``kernel`` or ``decompose`` is among ``facts``.
    """
    if "kernel" not in facts and "decompose" not in facts:
        facts["kernel"] = name
    return OpSpec(name, slots(inputs), slots(outputs), rule, dict(attributes or {}), **facts)
