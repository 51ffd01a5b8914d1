"""Quantisation before scales could be along an axis."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter


@adapter(13, "QuantizeLinear", "DequantizeLinear")
def _per_tensor(rewriter: Rewriter) -> list[Node]:
    rewriter.node.attributes.pop("axis", None)
    return rewriter.done()
