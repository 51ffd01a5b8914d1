"""Turns Constant nodes into initializers."""

from __future__ import annotations

from onemodel_graph.ir import Graph
from onemodel_graph.passes.base import CODED, Pass
from onemodel_graph.planning.sequences import constant_array


def run(graph: Graph) -> bool:
    """Numeric constants only; a constant that is an output stays a node."""
    outputs = set(graph.outputs)
    kept = []
    changed = False
    for node in graph.nodes:
        for body in node.attributes.values():
            if isinstance(body, Graph):
                changed = run(body) or changed
        value = node.outputs[0] if node.outputs else None
        text = value is not None and value.dtype == "string"
        if text or node.operator != "Constant" or node.domain or value is None or value in outputs:
            kept.append(node)
            continue
        array = constant_array(node.attributes)
        if value.name in graph.initializers:
            kept.append(node)
            continue
        if value.dtype not in CODED:
            value.dtype = array.dtype
        value.shape = tuple(array.shape)
        graph.initializers[value.name] = array
        graph.values[value.name] = value
        changed = True
    graph.nodes = kept
    return changed


PASS = Pass("constant-nodes", run, ensures="Constants are initializers.")
