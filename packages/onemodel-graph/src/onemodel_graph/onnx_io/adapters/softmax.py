"""Softmax and its kin before opset 13: over all axes from ``axis`` on, taken together."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter


@adapter(13, "Softmax", "LogSoftmax", "Hardmax")
def _flattened(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    axis = node.attributes.get("axis", 1)
    x = node.inputs[0]
    if axis == -1 or (x is not None and x.shape is not None and axis == len(x.shape) - 1):
        node.attributes["axis"] = -1
        return rewriter.done()
    flat = rewriter.add("Flatten", [x], axis=axis)
    result = rewriter.add(node.operator, [flat], axis=1)
    shape = rewriter.add("Shape", [x])
    return rewriter.replace("Reshape", [result, shape], allowzero=1)
