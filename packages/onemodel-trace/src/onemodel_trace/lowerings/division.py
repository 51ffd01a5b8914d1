"""Divisions and remainders that round down."""

from __future__ import annotations

from typing import Any

from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded


def _floor_divide(writer: GraphWriter, call: Recorded) -> Any:
    a, b = call.value(0), call.value(1)
    if a.dtype.startswith("float"):
        return writer.emit("Floor", writer.emit("Div", a, b))
    if a.dtype.startswith("uint"):
        return writer.emit("Div", a, b)
    # ONNX divides integers towards zero; the remainder of Mod has the divisor's sign.
    whole = writer.emit("Sub", a, writer.emit("Mod", a, b, fmod=0))
    return writer.emit("Div", whole, b)


LOWERINGS: dict[str, Lowering] = {"FloorDiv": _floor_divide}
