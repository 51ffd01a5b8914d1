"""Convolutions: attributes that consumers expect to be spelled out."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import ops
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded


def _with_kernel_shape(writer: GraphWriter, call: Recorded) -> Any:
    weight = call.value(1)
    attributes = {"kernel_shape": weight.shape[2:], **call.attributes}
    return writer.emit_spec(ops.get(call.operator), call.inputs, attributes, 1)[0]


LOWERINGS: dict[str, Lowering] = {"Conv": _with_kernel_shape, "ConvTranspose": _with_kernel_shape}
