"""Gives constant biases to the convolution before them.

A bias after a product needs no pass: the planner computes it in the tiles of the product.
"""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node
from onemodel_graph.passes.base import FAST, Matcher, Pass
from onemodel_kernels import Array


def _into_convolution(matcher: Matcher, conv: Node, bias: Array) -> bool:
    weight = matcher.array(conv.inputs[1])
    if weight is None or (len(conv.inputs) > 2 and conv.inputs[2] is not None):
        return False
    channels = weight.shape[0] if conv.operator == "Conv" else 0
    wanted = (channels, *(1 for _ in weight.shape[2:]))
    shape = bias.shape[1:] if bias.ndim == len(weight.shape) and bias.shape[0] == 1 else bias.shape
    if not channels or tuple(shape) != wanted:
        return False
    flat = bias.view_or_copy((channels,))
    source = conv.inputs[1]
    stem = "weight" if source is None else source.name
    conv.inputs = [*conv.inputs[:2], matcher.add_constant(f"{stem}/bias", flat)]
    return True


def run(graph: Graph) -> bool:
    """Convolutions whose result only the addition reads."""
    matcher = Matcher(graph)
    kept = []
    changed = False
    for node in graph.nodes:
        pair = matcher.split(node) if node.operator == "Add" and not node.domain else None
        result = node.outputs[0] if node.outputs else None
        before = None if pair is None else matcher.producer(pair[1], "Conv")
        if pair is None or before is None or result is None:
            kept.append(node)
            continue
        bias = matcher.array(pair[0])
        if bias is None or matcher.only_reader(pair[1]) is not node:
            kept.append(node)
            continue
        if not _into_convolution(matcher, before, bias):
            kept.append(node)
            continue
        before.outputs[0] = result
        changed = True
    graph.nodes = kept
    return changed


PASS = Pass(
    "bias-fusion",
    run,
    FAST,
    ensures="No constant bias is added to a convolution with constant weights.",
    bit_rule="The chain of products starts from the bias instead of ending with it: other roundings.",
)
