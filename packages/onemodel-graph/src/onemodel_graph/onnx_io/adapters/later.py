"""Forms that later opsets added and that operators of the present one can say."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter
from onemodel_kernels.errors import AttributeValueError

ALWAYS = 1 << 30
"""No opset ends the need for these."""


@adapter(ALWAYS, "SpaceToDepth")
def _space_to_depth(rewriter: Rewriter) -> list[Node]:
    """``CRD`` keeps the blocks of a channel together: each channel is moved by itself."""
    node = rewriter.node
    mode = node.attributes.pop("mode", "DCR")
    if mode == "DCR":
        return rewriter.done()
    if mode != "CRD":
        raise AttributeValueError(f"mode: expected 'DCR' or 'CRD', got {mode!r}")
    x = node.inputs[0]
    alone = rewriter.add("Reshape", [x, rewriter.constant([-1, 1, 0, 0])])
    moved = rewriter.add("SpaceToDepth", [alone], **node.attributes)
    rows = rewriter.add("Shape", [x], start=0, end=1)
    shape = rewriter.add("Concat", [rows, rewriter.constant([-1, 0, 0])], axis=0)
    return rewriter.replace("Reshape", [moved, shape])
