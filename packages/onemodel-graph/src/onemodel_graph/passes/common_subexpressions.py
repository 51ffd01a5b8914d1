"""Lets nodes that compute the same thing from the same values be one node."""

from __future__ import annotations

from typing import Any

from onemodel_graph.ir import Graph, Value
from onemodel_graph.passes.base import Pass, replace_values
from onemodel_kernels import Array

SMALL = 4096
"""Initializers up to this many bytes are compared by content."""
_RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
                     "Multinomial", "Dropout"})  # fmt: skip


def _key(value: Any) -> Any:
    if isinstance(value, Array):
        return (value.dtype, value.shape, value.tobytes()) if value.nbytes <= SMALL else id(value)
    if isinstance(value, Graph):
        return id(value)
    return (type(value).__name__, value)


def run(graph: Graph) -> bool:
    """Equal small initializers first, then nodes in order."""
    replaced: dict[Value, Value] = {}
    constants: dict[Any, Value] = {}
    outputs = set(graph.outputs)
    for name, array in graph.initializers.items():
        value = graph.values[name]
        if array.nbytes <= SMALL and value not in outputs:
            key = (value.dtype, value.shape, array.dtype, array.shape, array.tobytes())
            first = constants.setdefault(key, value)
            if first is not value:
                replaced[value] = first
    seen: dict[Any, list[Value | None]] = {}
    kept = []
    for node in graph.nodes:
        inputs = tuple(replaced.get(v, v) if v is not None else None for v in node.inputs)
        wanted = [value for value in node.outputs if value is not None]
        shared = node.operator not in _RANDOM and not any(value in outputs for value in wanted)
        if not shared or any(isinstance(entry, Graph) for entry in node.attributes.values()):
            kept.append(node)
            continue
        attributes = tuple(sorted((name, _key(entry)) for name, entry in node.attributes.items()))
        present = tuple(value is not None for value in node.outputs)
        first_outputs = seen.setdefault(
            (node.domain, node.operator, inputs, attributes, present), node.outputs
        )
        if first_outputs is node.outputs:
            kept.append(node)
            continue
        pairs = zip(node.outputs, first_outputs, strict=True)
        replaced.update((v, o) for v, o in pairs if v is not None and o is not None)
    graph.nodes = kept
    replace_values(graph, replaced)
    return bool(replaced)


PASS = Pass(
    "common-subexpressions", run, ensures="No two nodes compute the same from the same values."
)
