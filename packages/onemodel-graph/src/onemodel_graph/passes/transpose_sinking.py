"""Moves Transpose nodes behind elementwise operators, where one then meets another."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import Matcher, Pass

UNARY = frozenset({
    "Abs", "Cast", "Ceil", "Celu", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "Identity", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh",
})  # fmt: skip
BINARY = frozenset({"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"})


def _permutation(node: Node | None) -> tuple[int, ...] | None:
    """The permutation of a Transpose that states one."""
    found = None if node is None else node.attributes.get("perm")
    return None if found is None else tuple(found)


def _operand(matcher: Matcher, node: Node) -> Value | None:
    """The one input of an elementwise operator that is no single number."""
    if node.operator in UNARY and not node.domain:
        present = [value for value in node.inputs if value is not None]
        return present[0] if len(present) == 1 else None
    if node.operator == "Clip" and not node.domain:
        bounds = [matcher.array(value) for value in node.inputs[1:] if value is not None]
        return node.inputs[0] if all(b is not None and b.ndim == 0 for b in bounds) else None
    if node.operator in BINARY and not node.domain:
        pair = matcher.split(node)
        array = None if pair is None else matcher.array(pair[0])
        if pair is not None and array is not None and array.ndim == 0:
            return pair[1]
    return None


def _chain(matcher: Matcher, last: Node) -> tuple[Node, list[Node]] | None:
    """(the Transpose above, the elementwise operators between) of a Transpose."""
    between: list[Node] = []
    value = last.inputs[0]
    while value is not None and matcher.only_reader(value) is (between[-1] if between else last):
        above = matcher.producer(value)
        if above is None:
            return None
        if above.operator == "Transpose":
            return (above, between) if between else None
        between.append(above)
        value = _operand(matcher, above)
    return None


def _met(matcher: Matcher, node: Node) -> bool:
    """Transpose, elementwise operators, Transpose: the operators first, then one Transpose."""
    perm = _permutation(node)
    found = None if perm is None else _chain(matcher, node)
    if found is None or perm is None:
        return False
    above, between = found
    first = _permutation(above)
    if first is None or len(first) != len(perm):
        return False
    old, new = above.outputs[0], above.inputs[0]
    for reader in [*reversed(between), node]:
        reader.inputs = [new if value is old else value for value in reader.inputs]
        if reader is not node:
            # Its elements stand in another order now: a value of its own, with no shape stated.
            old = reader.outputs[0]
            new = None if old is None else Value(f"{old.name}/before_transpose", old.dtype)
            reader.outputs = [new]
    node.attributes["perm"] = tuple(first[axis] for axis in perm)
    return True


def _shared(matcher: Matcher, node: Node) -> Node | None:
    """The Transpose that follows an operator on two values that are transposed alike."""
    if node.operator not in BINARY or node.domain or len(node.inputs) != 2:
        return None
    left, right = (matcher.producer(value, "Transpose") for value in node.inputs)
    perm, result = _permutation(left), node.outputs[0]
    if left is None or right is None or left is right or perm is None or result is None:
        return None
    if _permutation(right) != perm:
        return None
    for value in node.inputs:
        if value is None or matcher.only_reader(value) is not node:
            return None
    inner = Value(f"{result.name}/before_transpose", result.dtype)
    node.inputs = [left.inputs[0], right.inputs[0]]
    node.outputs[0] = inner
    return Node("", "Transpose", [inner], [result], {"perm": perm}, node.name)


def run(graph: Graph) -> bool:
    """Once for each match; what the moved Transpose leaves behind is removed as dead."""
    changed = False
    kept: list[Node] = []
    matcher = Matcher(graph)
    for node in graph.nodes:
        kept.append(node)
        if node.operator == "Transpose" and not node.domain:
            changed = _met(matcher, node) or changed
            continue
        follower = _shared(matcher, node)
        if follower is not None:
            kept.append(follower)
            changed = True
            graph.nodes = [*kept, *graph.nodes[graph.nodes.index(node) + 1 :]]
            matcher = Matcher(graph)
    graph.nodes = kept
    return changed


PASS = Pass(
    "transpose-sinking",
    run,
    ensures="No Transpose stands above elementwise operators with another below them.",
    bit_rule="It moves elements; each elementwise result is computed from the same elements.",
)
