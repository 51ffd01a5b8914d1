"""Operators at element types that ONNX lacks them for, or where several roundings would differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded

SINGLE = {"float16": "float32", "bfloat16": "float32"}
"""Steps of a half-precision function are computed wide and rounded once, as its kernel does."""

SMALL_INTEGERS = dict.fromkeys(("int8", "uint8", "int16", "uint16"), "int32")
"""Sums and products wrap alike, however wide they are computed."""


def computed_in(wider: Mapping[str, str], lowering: Lowering) -> Lowering:
    """The lowering with its inputs cast to a wider type, and its first output cast back.

    Args:
        wider: The type to compute in, by the first input's.
        lowering: Writes the call.
    """

    def lower(writer: GraphWriter, call: Recorded) -> Any:
        dtype = call.value().dtype
        wide = wider.get(dtype)
        if wide is None:
            return lowering(writer, call)
        inputs = [
            writer.emit("Cast", value, to=wide)
            if value is not None and value.dtype == dtype
            else value
            for value in call.inputs
        ]
        result = lowering(writer, Recorded(call.operator, inputs, call.attributes, call.outputs))
        if isinstance(result, tuple):
            return (writer.emit("Cast", result[0], to=dtype), *result[1:])
        return writer.emit("Cast", result, to=dtype)

    return lower


def as_it_is(writer: GraphWriter, call: Recorded) -> Any:
    """The operator under its own name."""
    return tuple(writer.emit_many(call.operator, call.outputs, *call.inputs, **call.attributes))
