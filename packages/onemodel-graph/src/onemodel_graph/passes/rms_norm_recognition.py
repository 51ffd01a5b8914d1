"""Recognises RMS normalisation over the last axis, written with elementary operators."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import FAST, Matcher, Pass, near
from onemodel_graph.passes.layer_norm_recognition import last_mean, squared, vector
from onemodel_kernels.ops.normalization import DOUBLE

QUANTISED = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})


def _inverse_root(matcher: Matcher, value: Value | None) -> tuple[Value, float] | None:
    """(x, epsilon) when a value is ``1 / sqrt(mean(x²) + epsilon)``."""
    node = matcher.producer(value, "Div", "Reciprocal")
    if node is None:
        return None
    if node.operator == "Div" and not near(matcher.number(node.inputs[0]), 1.0):
        return None
    root = matcher.producer(node.inputs[-1], "Sqrt")
    add = None if root is None else matcher.producer(root.inputs[0], "Add")
    pair = None if add is None else matcher.split(add)
    if pair is None:
        return None
    epsilon = matcher.number(pair[0])
    source = squared(matcher, last_mean(matcher, pair[1]))
    return None if epsilon is None or source is None else (source, epsilon)


def _normalised(matcher: Matcher, value: Value | None) -> tuple[Value, float] | None:
    """(x, epsilon) when a value is ``x / sqrt(mean(x²) + epsilon)``."""
    node = matcher.producer(value, "Mul")
    if node is None or len(node.inputs) != 2:
        return None
    for x, factor in (node.inputs, node.inputs[::-1]):
        found = _inverse_root(matcher, factor)
        if found is not None and found[0] is x:
            return found
    return None


def _match(matcher: Matcher, node: Node) -> bool:
    pair = matcher.split(node)
    if pair is None or not vector(matcher.array(pair[0])):
        return False
    found = _normalised(matcher, pair[1])
    result = node.outputs[0]
    if found is None or result is None or matcher.only_reader(pair[1]) is not node:
        return False
    x, epsilon = found
    node.operator, node.inputs = "RMSNormalization", [x, pair[0]]
    node.attributes = {"axis": -1, "epsilon": epsilon}
    if any(reader.operator in QUANTISED for reader in matcher.consumers.get(result, ())):
        # Where 8 bits follow, an error of one last place turns a tie and moves a whole step.
        node.attributes["stash_type"] = DOUBLE
    return True


def run(graph: Graph) -> bool:
    """Each match becomes one RMSNormalization node, in double precision before a quantisation."""
    matcher = Matcher(graph)
    changed = False
    for node in graph.nodes:
        if node.operator == "Mul" and not node.domain and _match(matcher, node):
            changed = True
    return changed


PASS = Pass(
    "rms-norm-recognition",
    run,
    FAST,
    ensures="RMS normalisation over the last axis is one node.",
    bit_rule="One kernel with its own order of sums takes the place of seven operators.",
)
