"""Normalisations and names that changed."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter
from onemodel_kernels.errors import UnsupportedError


@adapter(14, "BatchNormalization")
def _batch(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    if node.attributes.pop("spatial", 1) != 1:
        raise UnsupportedError("spatial=0 normalises each position by itself; it is not supported")
    if any(value is not None for value in node.outputs[1:]):
        raise UnsupportedError(
            "training outputs of BatchNormalization are not supported before opset 14"
        )
    node.outputs = node.outputs[:1]
    return rewriter.done()


@adapter(21, "GroupNormalization")
def _group(rewriter: Rewriter) -> list[Node]:
    """Before opset 21 scale and bias have one entry for each group instead of each channel."""
    node = rewriter.node
    groups = node.attributes["num_groups"]
    channels = rewriter.add("Shape", [node.inputs[0]], start=1, end=2)
    count = rewriter.constant([groups])
    size = rewriter.add("Div", [channels, count])
    target = rewriter.add("Concat", [count, size], axis=0)
    column, every = rewriter.constant([groups, 1]), rewriter.constant([-1])
    for position in (1, 2):
        value = rewriter.add("Reshape", [node.inputs[position], column])
        value = rewriter.add("Expand", [value, target])
        node.inputs[position] = rewriter.add("Reshape", [value, every])
    return rewriter.done()


@adapter(100, "Scatter")
def _scatter(rewriter: Rewriter) -> list[Node]:
    rewriter.node.operator = "ScatterElements"
    return rewriter.done()
