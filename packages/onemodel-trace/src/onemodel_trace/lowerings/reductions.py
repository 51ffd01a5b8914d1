"""Reductions that ONNX has under another name."""

from __future__ import annotations

from typing import Any

from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded


def _renamed(operator: str) -> Lowering:
    def lower(writer: GraphWriter, call: Recorded) -> Any:
        return writer.emit(operator, call.value(), **call.attributes)

    return lower


# Opset 20 lets ReduceMax and ReduceMin take bools: the greatest is true where any is.
LOWERINGS: dict[str, Lowering] = {
    "ReduceAny": _renamed("ReduceMax"),
    "ReduceAll": _renamed("ReduceMin"),
}
