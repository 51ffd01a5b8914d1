"""Convolutions, whose attributes are spelled out, and resizing."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import ops
from onemodel_trace.extents.expression import constant
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded


def _with_kernel_shape(writer: GraphWriter, call: Recorded) -> Any:
    weight = call.value(1)
    attributes = {"kernel_shape": weight.shape[2:], **call.attributes}
    return writer.emit_spec(ops.get(call.operator), call.inputs, attributes, 1)[0]


def _resize(writer: GraphWriter, call: Recorded) -> GraphValue:
    result = writer.emit_spec(ops.get("Resize"), call.inputs, call.attributes, 1)[0]
    for extent in result.shape:
        if type(extent) is not int and not writer.scope.at_least(extent.expression, 1):
            # The eager operator refuses to make an empty image.
            writer.scope.assume(">=", extent.expression, constant(1), "a resized axis is not empty")
    return result


LOWERINGS: dict[str, Lowering] = {
    "Conv": _with_kernel_shape,
    "ConvTranspose": _with_kernel_shape,
    "Resize": _resize,
}
