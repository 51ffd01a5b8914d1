"""The order in which passes run."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node
from onemodel_graph.passes import (
    attention_recognition,
    batch_norm_folding,
    bias_fusion,
    cast_removal,
    common_subexpressions,
    constant_folding,
    constant_nodes,
    dead_nodes,
    gelu_recognition,
    identity_removal,
    layer_norm_recognition,
    layout_planning,
    pad_folding,
    rms_norm_recognition,
    transpose_cancelling,
    transpose_sinking,
)
from onemodel_graph.passes.base import Pass

PASSES: tuple[Pass, ...] = (
    constant_nodes.PASS,
    identity_removal.PASS,
    cast_removal.PASS,
    constant_folding.PASS,
    common_subexpressions.PASS,
    transpose_sinking.PASS,
    transpose_cancelling.PASS,
    layout_planning.PASS,
    pad_folding.PASS,
    gelu_recognition.PASS,
    layer_norm_recognition.PASS,
    rms_norm_recognition.PASS,
    attention_recognition.PASS,
    dead_nodes.PASS,
    batch_norm_folding.PASS,
    bias_fusion.PASS,
    dead_nodes.PASS,
)
ROUNDS = 8
"""Passes are repeated until nothing changes, at most this often."""


def optimise(graph: Graph, mode: str = "exact", passes: tuple[Pass, ...] = PASSES) -> Graph:
    """A rewritten copy of a graph; the graph itself stays as it is.

    Args:
        graph: The graph; its values, nodes and initializers are shared where they do not change.
        mode: ``"exact"`` (no pass may change a bit of a result) or ``"fast"``.
        passes: Which passes, in order.
    """
    result = copy(graph)
    chosen = [entry for entry in passes if mode in entry.modes]
    for _ in range(ROUNDS):
        changed = 0
        for entry in chosen:
            changed += entry.run(result)
        if not changed:
            break
    return result


def copy(graph: Graph) -> Graph:
    """A graph whose nodes and lists are its own; values and arrays are shared."""
    nodes = []
    for node in graph.nodes:
        attributes = {
            name: copy(value) if isinstance(value, Graph) else value
            for name, value in node.attributes.items()
        }
        nodes.append(
            Node(
                node.domain,
                node.operator,
                list(node.inputs),
                list(node.outputs),
                attributes,
                node.name,
            )
        )
    return Graph(
        graph.name,
        list(graph.inputs),
        list(graph.outputs),
        dict(graph.initializers),
        nodes,
        graph.opset,
        dict(graph.metadata),
        dict(graph.values),
        list(graph.captured),
    )
