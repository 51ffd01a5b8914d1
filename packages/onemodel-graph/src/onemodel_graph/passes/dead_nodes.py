"""Removes nodes and initializers that no output depends on."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Value
from onemodel_graph.passes.base import Pass


def run(graph: Graph) -> bool:
    """Walks back from the outputs; bodies of kept nodes are cleaned too."""
    wanted: set[Value] = set(graph.outputs)
    kept = []
    changed = False
    for node in reversed(graph.nodes):
        if not any(value in wanted for value in node.outputs):
            changed = True
            continue
        kept.append(node)
        wanted.update(value for value in node.inputs if value is not None)
        for body in node.attributes.values():
            if isinstance(body, Graph):
                changed = run(body) or changed
                wanted.update(body.captured)
    kept.reverse()
    graph.nodes = kept
    own = {*graph.inputs, *graph.values.values()}
    own.update(v for node in graph.nodes for v in node.outputs if v is not None)
    read = [v for node in graph.walk() for v in node.inputs if v is not None] + graph.outputs
    known = set(graph.captured)
    graph.captured = [v for v in dict.fromkeys(read) if v not in own and v in known]
    unused = [name for name, value in graph.values.items() if value not in wanted]
    for name in unused:
        del graph.initializers[name]
        del graph.values[name]
    return changed or bool(unused)


PASS = Pass("dead-nodes", run, ensures="Every node and initializer is needed by an output.")
