"""Operators whose attributes became inputs."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter

_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSumSquare",
)  # fmt: skip


def _move(rewriter: Rewriter, attribute: str, position: int) -> None:
    value = rewriter.node.attributes.pop(attribute, None)
    if value is not None:
        rewriter.set_input(position, rewriter.constant(value))


@adapter(18, *_REDUCTIONS)
@adapter(13, "ReduceSum", "Squeeze", "Unsqueeze")
def _axes(rewriter: Rewriter) -> list[Node]:
    _move(rewriter, "axes", 1)
    return rewriter.done()


@adapter(13, "Split")
def _split(rewriter: Rewriter) -> list[Node]:
    _move(rewriter, "split", 1)
    return rewriter.done()


@adapter(11, "Clip")
def _clip(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    x = node.inputs[0]
    low, high = node.attributes.pop("min", None), node.attributes.pop("max", None)
    # The bounds take the input's type at plan time: before opset 11 they were float attributes.
    for position, bound in ((1, low), (2, high)):
        if bound is not None:
            constant = rewriter.constant(bound, "float32")
            if x is not None and x.dtype not in (None, "float32"):
                constant = rewriter.add("CastLike", [constant, x])
            rewriter.set_input(position, constant)
    return rewriter.done()


@adapter(11, "Pad")
def _pad(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    value = node.attributes.pop("value", 0.0)
    _move(rewriter, "pads", 1)
    if value:
        rewriter.set_input(2, rewriter.constant(value, "float32"))
    return rewriter.done()


@adapter(10, "Slice")
def _slice(rewriter: Rewriter) -> list[Node]:
    _move(rewriter, "starts", 1)
    _move(rewriter, "ends", 2)
    _move(rewriter, "axes", 3)
    return rewriter.done()


@adapter(10, "TopK")
def _top_k(rewriter: Rewriter) -> list[Node]:
    k = rewriter.node.attributes.pop("k")
    rewriter.set_input(1, rewriter.constant([k]))
    return rewriter.done()


@adapter(12, "Dropout")
def _dropout(rewriter: Rewriter) -> list[Node]:
    rewriter.node.attributes.pop("ratio", None)
    return rewriter.done()


@adapter(20, "DFT")
def _dft(rewriter: Rewriter) -> list[Node]:
    axis = rewriter.node.attributes.pop("axis", 1)
    rewriter.set_input(2, rewriter.constant(axis))
    return rewriter.done()
