"""Convolutions, whose attributes are spelled out, pools and resizing."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import ops
from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.extents.expression import constant
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded
from onemodel_trace.lowerings.wider import computed_in


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


def _pool(writer: GraphWriter, call: Recorded) -> Any:
    dtype = call.value().dtype
    if dtype in ("int64", "uint64"):
        raise TraceException(
            TraceErrorKind.UNSUPPORTED_OPERATION,
            f"{call.operator}: ONNX pools floats and 8-bit integers only, these are {dtype}; use "
            ".double() where the numbers are below 2**53",
        )
    _keep_pads_apart(writer, call.value())
    spec = ops.get(call.operator)
    return tuple(writer.emit_spec(spec, call.inputs, call.attributes, call.outputs))


def _keep_pads_apart(writer: GraphWriter, value: GraphValue) -> None:
    """Give a Pad before a pool the axes that it has anyway.

    ONNX Runtime takes zeros that are padded as the pool's own padding, which a maximum ignores, but
    only of a Pad without axes.
    """
    node = value.node
    while node is not None and node.operator in ("Transpose", "Reshape", "Squeeze", "Unsqueeze"):
        source = node.inputs[0]
        node = None if source is None else source.node
    if node is not None and node.operator == "Pad" and len(node.inputs) == 3:
        node.inputs.append(writer.constants.integers(range(node.outputs[0].rank)))


_EXACT_FLOATS = {
    "int16": "float32", "uint16": "float32", "int32": "float64", "uint32": "float64",
}  # fmt: skip
"""Floats that hold every number of an integer type."""

LOWERINGS: dict[str, Lowering] = {
    "Conv": _with_kernel_shape,
    "ConvTranspose": _with_kernel_shape,
    "MaxPool": computed_in(_EXACT_FLOATS, _pool),
    "AveragePool": _pool,
    "Resize": _resize,
}
