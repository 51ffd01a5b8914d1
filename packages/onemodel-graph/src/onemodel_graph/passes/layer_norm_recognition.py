"""Recognises layer normalisation over the last axis, written with elementary operators."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import FAST, Matcher, Pass, near
from onemodel_graph.planning.numbers import read
from onemodel_kernels import Array


def last_mean(matcher: Matcher, value: Value | None) -> Value | None:
    """``x`` when a value is the mean of ``x`` over the last axis, kept as an axis."""
    node = matcher.producer(value, "ReduceMean")
    if node is None or len(node.inputs) < 2 or not node.attributes.get("keepdims", 1):
        return None
    axes = matcher.array(node.inputs[1])
    source = node.inputs[0]
    if axes is None or axes.size != 1 or source is None:
        return None
    (axis,) = read(axes) if axes.ndim else (read(axes),)
    last = axis == -1 or (source.shape is not None and axis == len(source.shape) - 1)
    return source if last else None


def _centred(matcher: Matcher, value: Value | None) -> Value | None:
    """``x`` when a value is ``x - mean(x)``."""
    node = matcher.producer(value, "Sub")
    if node is None or last_mean(matcher, node.inputs[1]) is not node.inputs[0]:
        return None
    return node.inputs[0]


def squared(matcher: Matcher, value: Value | None) -> Value | None:
    """``d`` when a value is ``d * d`` or ``d ** 2``."""
    node = matcher.producer(value, "Mul", "Pow")
    if node is None:
        return None
    if node.operator == "Mul":
        return node.inputs[0] if node.inputs[0] is node.inputs[1] else None
    return node.inputs[0] if near(matcher.number(node.inputs[1]), 2.0) else None


def _normalised(matcher: Matcher, value: Value | None) -> tuple[Value, float] | None:
    """(x, epsilon) when a value is ``(x - mean) / sqrt(variance + epsilon)``."""
    node = matcher.producer(value, "Div")
    if node is None:
        return None
    source = _centred(matcher, node.inputs[0])
    root = matcher.producer(node.inputs[1], "Sqrt")
    add = None if root is None else matcher.producer(root.inputs[0], "Add")
    pair = None if add is None else matcher.split(add)
    if source is None or pair is None:
        return None
    epsilon = matcher.number(pair[0])
    deviation = squared(matcher, last_mean(matcher, pair[1]))
    if epsilon is None or deviation is None or _centred(matcher, deviation) is not source:
        return None
    return source, epsilon


def vector(array: Array | None) -> bool:
    """Whether an array is the scale or bias of one axis, in single precision."""
    return array is not None and array.ndim == 1 and array.dtype == "float32"


def _match(matcher: Matcher, node: Node) -> bool:
    outer = matcher.split(node)
    if outer is None or not vector(matcher.array(outer[0])):
        return False
    product = matcher.producer(outer[1], "Mul")
    inner = None if product is None else matcher.split(product)
    if inner is None or not vector(matcher.array(inner[0])):
        return False
    found = _normalised(matcher, inner[1])
    if found is None or matcher.only_reader(outer[1]) is not node:
        return False
    x, epsilon = found
    node.operator = "LayerNormalization"
    node.inputs = [x, inner[0], outer[0]]
    node.attributes = {"axis": -1, "epsilon": epsilon}
    return True


def run(graph: Graph) -> bool:
    """Each match becomes one LayerNormalization node."""
    matcher = Matcher(graph)
    changed = False
    for node in graph.nodes:
        if node.operator == "Add" and not node.domain and _match(matcher, node):
            changed = True
    return changed


PASS = Pass(
    "layer-norm-recognition",
    run,
    FAST,
    ensures="Layer normalisation over the last axis is one node.",
    bit_rule="One kernel with its own order of sums takes the place of nine operators.",
)
