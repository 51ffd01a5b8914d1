"""Computes nodes whose inputs are all constants, once, with the kernels that a run would use."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import CODED, Pass
from onemodel_graph.planning.checks import MALFORMED
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.planner import NeedsValue, Planner
from onemodel_graph.planning.slot import Slot, constant
from onemodel_graph.planning.steps import HANDLERS
from onemodel_kernels import ops
from onemodel_kernels.errors import OneModelError

GROWTH = 1 << 20
"""A result this many bytes larger than its inputs is left to the run: it would only fill memory."""


def _constants(node: Node, known: dict[Value, Slot]) -> list[Slot | None] | None:
    found: list[Slot | None] = []
    for value in node.inputs:
        if value is None:
            found.append(None)
        elif value.dtype in CODED:
            # Its array is of another type, and what the node computes may depend on it.
            return None
        elif value in known:
            found.append(known[value])
        else:
            return None
    return found


def _folded(node: Node, inputs: list[Slot | None]) -> list[Slot] | None:
    if (node.domain, node.operator) in HANDLERS or not inputs:
        return None
    spec = ops.find(node.operator, node.domain)
    if spec is None:
        return None
    if node.operator.startswith("Random") or node.operator in ("Bernoulli", "Multinomial"):
        return None
    planner = Planner(Context())
    attributes = dict(node.attributes)
    try:
        for position, name in spec.operands:
            slot = inputs[position] if position < len(inputs) else None
            if slot is not None:
                attributes[name] = planner.value(slot, name)
                if spec.name == "Range" and not spec.domain:
                    attributes["dtype"] = slot.dtype
        if spec.name == "Split" and not spec.domain and "split" not in attributes:
            attributes.setdefault("num_outputs", len(node.outputs))
        operands = {position for position, _ in spec.operands}
        tensors = [slot for position, slot in enumerate(inputs) if position not in operands]
        if spec.data_dependent:
            return None
        outputs = list(planner.apply(spec, tensors, attributes))
    except (OneModelError, NeedsValue, *MALFORMED):
        # The node is wrong or too large; the session says so with its place when it plans it.
        return None
    if any(slot.array is None for slot in outputs):
        return None
    before = sum(
        slot.array.nbytes for slot in inputs if slot is not None and slot.array is not None
    )
    after = sum(slot.array.nbytes for slot in outputs if slot.array is not None)
    return outputs if after <= before + GROWTH else None


def run(graph: Graph) -> bool:
    """Folds in order, so that chains fold at once; outputs of the graph keep their nodes."""
    known = {graph.values[name]: constant(array) for name, array in graph.initializers.items()}
    outputs = set(graph.outputs)
    kept = []
    changed = False
    for node in graph.nodes:
        for body in node.attributes.values():
            if isinstance(body, Graph):
                changed = run(body) or changed
        inputs = _constants(node, known)
        wanted = [value for value in node.outputs if value is not None]
        if inputs is None or any(value in outputs for value in wanted):
            kept.append(node)
            continue
        folded = _folded(node, inputs)
        if folded is None:
            kept.append(node)
            continue
        for value, slot in zip(node.outputs, folded, strict=False):
            if value is None or slot.array is None:
                continue
            value.dtype, value.shape = slot.dtype, slot.shape
            graph.initializers[value.name] = slot.array
            graph.values[value.name] = value
            known[value] = slot
        changed = True
    graph.nodes = kept
    return changed


PASS = Pass(
    "constant-folding",
    run,
    ensures="No node computes a constant that does not depend on a shape.",
    bit_rule="The kernels of a run compute the constant, so its bits are those of a run.",
)
