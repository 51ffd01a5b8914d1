"""Joins Transpose nodes that follow each other, and removes those that change nothing."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Value
from onemodel_graph.passes.base import Matcher, Pass, replace_values


def run(graph: Graph) -> bool:
    """Only moves elements; a transpose that others read too stays for them."""
    matcher = Matcher(graph)
    replaced: dict[Value, Value] = {}
    changed = False
    for node in graph.nodes:
        perm = node.attributes.get("perm")
        if node.operator != "Transpose" or node.domain or perm is None:
            continue
        before = matcher.producer(node.inputs[0], "Transpose")
        if before is not None and before.attributes.get("perm") is not None:
            first = before.attributes["perm"]
            perm = tuple(first[axis] for axis in perm)
            node.attributes["perm"] = perm
            node.inputs[0] = before.inputs[0]
            changed = True
        result, source = node.outputs[0], node.inputs[0]
        same = perm == tuple(range(len(perm)))
        if same and result is not None and source is not None and result not in matcher.outputs:
            replaced[result] = source
    graph.nodes = [n for n in graph.nodes if n.outputs[:1] == [] or n.outputs[0] not in replaced]
    replace_values(graph, replaced)
    return changed or bool(replaced)


PASS = Pass(
    "transpose-cancelling",
    run,
    ensures="No Transpose reads a Transpose.",
    bit_rule="It moves elements and computes nothing.",
)
