"""Joins Cast nodes that follow each other, where the first one loses nothing."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import Matcher, Pass, replace_values

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_LOSSLESS = {
    "bool": {*_SIGNED, *_UNSIGNED, "float16", "bfloat16", "float32", "float64"},
    "float16": {"float32", "float64"},
    "bfloat16": {"float32", "float64"},
    "float32": {"float64"},
    "int8": {*_SIGNED[1:], "float16", "float32", "float64"},
    "uint8": {*_UNSIGNED[1:], *_SIGNED[1:], "float16", "float32", "float64"},
    "int16": {*_SIGNED[2:], "float32", "float64"},
    "uint16": {*_UNSIGNED[2:], *_SIGNED[2:], "float32", "float64"},
    "int32": {"int64", "float64"},
    "uint32": {"uint64", "int64", "float64"},
}
"""Types that hold every value of a type."""


def _source_type(matcher: Matcher, value: Value) -> str | None:
    """The dtype of a value, also where only the Cast that writes it says so."""
    node = matcher.producer(value, "Cast")
    return value.dtype if node is None else node.attributes.get("to")


def _joined(matcher: Matcher, node: Node) -> bool:
    """Lets a Cast read what the Cast before it reads, when that changes no bit."""
    middle = node.inputs[0]
    before = matcher.producer(middle, "Cast")
    source = None if before is None else before.inputs[0]
    if before is None or source is None:
        return False
    first, second = _source_type(matcher, source), before.attributes.get("to")
    if first is None or second not in _LOSSLESS.get(first, ()):
        return False
    node.inputs[0] = source
    return True


def run(graph: Graph) -> bool:
    """Bodies too; what a Cast to its own type passes on is read directly."""
    matcher = Matcher(graph)
    replaced: dict[Value, Value] = {}
    changed = False
    for node in graph.nodes:
        for body in node.attributes.values():
            if isinstance(body, Graph):
                changed = run(body) or changed
        if node.operator != "Cast" or node.domain or not node.inputs:
            continue
        while _joined(matcher, node):
            changed = True
        source, result = node.inputs[0], node.outputs[0]
        if source is None or result is None or result in matcher.outputs:
            continue
        if _source_type(matcher, source) == node.attributes.get("to"):
            replaced[result] = source
    graph.nodes = [n for n in graph.nodes if not n.outputs or n.outputs[0] not in replaced]
    replace_values(graph, replaced)
    return changed or bool(replaced)


PASS = Pass(
    "cast-removal",
    run,
    ensures="No Cast undoes or continues a Cast that loses nothing.",
    bit_rule="The type between holds every value, so one conversion gives what two gave.",
)
