"""Scan before opset 9 ran over every row of a batch."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter


@adapter(9, "Scan")
def _scan(rewriter: Rewriter) -> list[Node]:
    rewriter.node.domain, rewriter.node.operator = "onemodel", "BatchedScan"
    return rewriter.done()
