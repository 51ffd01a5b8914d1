"""Folds a batch normalisation into the weights of the convolution before it."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node
from onemodel_graph.passes.base import FAST, Matcher, Pass
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Slot, constant
from onemodel_kernels import Array

EPSILON = 9.999999747378752e-06


def _folded(matcher: Matcher, norm: Node) -> bool:
    conv = matcher.producer(norm.inputs[0], "Conv")
    if conv is None or conv.outputs[0] is None or norm.attributes.get("training_mode"):
        return False
    if matcher.only_reader(conv.outputs[0]) is not norm or any(norm.outputs[1:]):
        return False
    weight = matcher.array(conv.inputs[1])
    old_bias = conv.inputs[2] if len(conv.inputs) > 2 else None
    arrays = [matcher.array(value) for value in norm.inputs[1:5]]
    bias_array = matcher.array(old_bias)
    if weight is None or any(array is None for array in arrays):
        return False
    if old_bias is not None and bias_array is None:
        return False
    w, b = _weights(weight, bias_array, [a for a in arrays if a is not None], norm)
    stem = conv.inputs[1].name if conv.inputs[1] is not None else "weight"
    conv.inputs = [
        conv.inputs[0],
        matcher.add_constant(f"{stem}/folded", w),
        matcher.add_constant(f"{stem}/folded_bias", b),
    ]
    return True


def _weights(
    weight: Array, bias: Array | None, arrays: list[Array], norm: Node
) -> tuple[Array, Array]:
    """``w * s`` and ``(bias - mean) * s + b`` with ``s = scale / sqrt(var + epsilon)``."""
    planner = Planner(Context())
    scale, shift, mean, variance = (constant(array) for array in arrays)
    epsilon = planner.constant(norm.attributes.get("epsilon", EPSILON), scale.dtype)
    spread = planner.emit("Sqrt", planner.emit("Add", variance, epsilon))
    factor = planner.emit("Div", scale, spread)
    rank = len(weight.shape)
    column = planner.emit("Reshape", factor, shape=(-1,) + (1,) * (rank - 1))
    w: Slot = planner.emit("Mul", constant(weight), column)
    start = planner.emit("Neg", mean) if bias is None else planner.emit("Sub", constant(bias), mean)
    b: Slot = planner.emit("Add", planner.emit("Mul", start, factor), shift)
    assert w.array is not None
    assert b.array is not None
    return w.array, b.array


def run(graph: Graph) -> bool:
    """Convolutions with constant weights whose result only the normalisation reads."""
    matcher = Matcher(graph)
    changed = False
    kept = []
    for node in graph.nodes:
        result = node.outputs[0] if node.outputs else None
        if node.operator != "BatchNormalization" or node.domain or result is None:
            kept.append(node)
            continue
        conv = matcher.producer(node.inputs[0], "Conv")
        if conv is None or not _folded(matcher, node):
            kept.append(node)
            continue
        # The convolution now writes the value that the normalisation wrote.
        conv.outputs[0] = result
        changed = True
    graph.nodes = kept
    return changed


PASS = Pass(
    "batch-norm-folding",
    run,
    FAST,
    ensures="No BatchNormalization follows a convolution with constant weights.",
    bit_rule="Weights are scaled before the sum instead of the sum after it: other roundings.",
)
