"""Removes nodes that pass their input on: Identity, and Dropout and Cast where they do nothing."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import Pass, replace_values


def _passes_on(node: Node) -> bool:
    source = node.inputs[0] if node.inputs else None
    if source is None or node.domain:
        return False
    if node.operator == "Identity":
        return True
    if node.operator == "Dropout":
        return len(node.inputs) < 3 and all(value is None for value in node.outputs[1:])
    if node.operator == "Cast":
        return source.dtype is not None and source.dtype == node.attributes.get("to")
    if node.operator in ("Sum", "Mean", "Max", "Min"):
        return len(node.inputs) == 1
    return node.operator == "Concat" and len(node.inputs) == 1


def run(graph: Graph) -> bool:
    """Readers read the input itself; outputs of the graph keep their nodes."""
    outputs = set(graph.outputs)
    replaced: dict[Value, Value] = {}
    kept = []
    changed = False
    for node in graph.nodes:
        for body in node.attributes.values():
            if isinstance(body, Graph):
                changed = run(body) or changed
        result = node.outputs[0] if node.outputs else None
        if result is not None and result not in outputs and _passes_on(node):
            source = node.inputs[0]
            assert source is not None
            replaced[result] = source
            continue
        kept.append(node)
    graph.nodes = kept
    replace_values(graph, replaced)
    return changed or bool(replaced)


PASS = Pass("identity-removal", run, ensures="No inner node only passes its input on.")
