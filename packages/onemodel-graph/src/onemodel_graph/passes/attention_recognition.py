"""Recognises attention written with elementary operators: softmax(scale q kᵀ + mask) v."""

from __future__ import annotations

from dataclasses import dataclass

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.axis_orders import Order, identity, permutation
from onemodel_graph.passes.axis_steps import ranks
from onemodel_graph.passes.base import FAST, Matcher, Pass
from onemodel_graph.passes.shape_facts import ShapeFacts
from onemodel_graph.planning.numbers import tensor
from onemodel_kernels.ops.rules import OWN

QUANTISED = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
MOVES = frozenset({"Reshape", "Squeeze", "Transpose"})
CLOSED = -1e8
"""A constant at most this large in place of a score hides the key as well when it is added."""


@dataclass(slots=True)
class _Scores:
    """``scale * left @ right``, and what is added to it."""

    left: Value
    right: Value
    scale: float
    mask: Value | None = None
    closing: tuple[Value, Value, bool] | None = None


class _Search:
    def __init__(self, graph: Graph) -> None:
        self.matcher = Matcher(graph)
        self.ranks = ranks(self.matcher)
        self.facts = ShapeFacts(self.matcher, self.ranks)

    def softmax(self, value: Value | None, reader: Node) -> tuple[Value, list[Node]] | None:
        """What a value that one node reads is the softmax by rows of, and the nodes that read it."""
        if value is None or self.matcher.only_reader(value) is not reader:
            return None
        node = self.matcher.producer(value, "Softmax", "Reshape")
        if node is None:
            return None
        x = node.inputs[0]
        if x is not None and node.operator == "Softmax":
            axis = node.attributes.get("axis", -1)
            rows = axis == -1 or axis + 1 == self.ranks.get(x, 0)
            return (x, [node]) if rows else None
        # As opsets before 13 have it: over all axes from one on, here only the last.
        shape = self.matcher.producer(node.inputs[1], "Shape")
        inner = self.matcher.producer(x, "Softmax")
        flat = None if inner is None else self.matcher.producer(inner.inputs[0], "Flatten")
        if shape is None or shape.attributes or inner is None or flat is None:
            return None
        x = flat.inputs[0]
        if x is None or shape.inputs[0] is not x:
            return None
        last = flat.attributes.get("axis", 1) + 1 == self.ranks.get(x, 0)
        return (x, [flat, shape]) if last and inner.attributes.get("axis", -1) in (1, -1) else None

    def alone(self, value: Value, readers: list[Node]) -> bool:
        """Whether nothing else reads a value."""
        found = self.matcher.consumers.get(value, ())
        return value not in self.matcher.outputs and all(node in readers for node in found)

    def scaled(self, value: Value | None) -> tuple[Value, float] | None:
        """(x, number) when a value is ``x * number`` or ``x / number``."""
        node = self.matcher.producer(value, "Mul", "Div")
        pair = None if node is None else self.matcher.split(node)
        number = None if pair is None else self.matcher.number(pair[0])
        if node is None or pair is None or not number:
            return None
        array = self.matcher.array(pair[0])
        if array is None or 0 < array.ndim > self.ranks.get(pair[1], 0):
            return None
        if node.operator == "Div":
            return None if node.inputs[1] is not pair[0] else (pair[1], 1.0 / number)
        return pair[1], number

    def product(self, value: Value | None, readers: list[Node]) -> _Scores | None:
        """The product that a value is, with constant factors taken out of it."""
        if value is None or not self.alone(value, readers):
            return None
        scale = 1.0
        node = self.matcher.producer(value)
        found = self.scaled(value)
        if found is not None and node is not None:
            if not self.alone(found[0], [node]):
                return None
            node, scale = self.matcher.producer(found[0]), found[1]
        if node is None or node.operator != "MatMul" or len(node.inputs) != 2:
            return None
        left, right = node.inputs
        if left is None or right is None:
            return None
        found = self.scaled(left)
        if found is not None:
            left, scale = found[0], scale * found[1]
        return _Scores(left, right, scale)

    def scores(self, value: Value, readers: list[Node]) -> _Scores | None:
        """The scores that a softmax takes, with their mask."""
        node = self.matcher.producer(value)
        if node is None or not self.alone(value, readers):
            return None
        if node.operator == "Add" and not node.domain and len(node.inputs) == 2:
            for index in (0, 1):
                found = self.product(node.inputs[index], [node])
                if found is not None:
                    found.mask = node.inputs[1 - index]
                    return found
            return None
        if node.operator == "Where" and not node.domain and len(node.inputs) == 3:
            condition = node.inputs[0]
            for index in (1, 2):
                closed = node.inputs[3 - index]
                number = self.matcher.number(closed)
                if number is None or closed is None or condition is None or number > CLOSED:
                    continue
                found = self.product(node.inputs[index], [node])
                if found is not None:
                    found.closing = (condition, closed, index == 1)
                    return found
            return None
        return self.product(value, readers)

    def turned(self, value: Value) -> tuple[Value, Order] | None:
        """(x, order) when a value is ``x`` with its axes in another order."""
        above = self.matcher.producers.get(value)
        perm = permutation(above)
        if above is not None and perm is not None and above.inputs[0] is not None:
            return above.inputs[0], perm
        # By way of three axes, as torch.export writes a change of the last two.
        turn = None if above is None else self.matcher.producer(above.inputs[0], "Transpose")
        if above is None or above.operator != "Reshape" or permutation(turn) != (0, 2, 1):
            return None
        first = None if turn is None else self.matcher.producer(turn.inputs[0], "Reshape")
        source = None if first is None else first.inputs[0]
        shape = self.facts.extents(source)
        if first is None or source is None or shape is None or len(shape) < 3:
            return None
        lead, rows, columns = shape[:-2], shape[-2], shape[-1]
        three = self.facts.numbers(first.inputs[1])
        back = self.facts.numbers(above.inputs[1])
        if three != (-1, rows, columns) or back != (*lead, columns, rows):
            return None
        rank = len(shape)
        return source, (*range(rank - 2), rank - 1, rank - 2)

    def factored(self, value: Value) -> tuple[Value, Value] | None:
        """(x, factor) when a value is a turned ``x`` times a value of one element."""
        node = self.matcher.producer(value, "Mul")
        for index in (0, 1) if node is not None and len(node.inputs) == 2 else ():
            assert node is not None
            x, factor = node.inputs[index], node.inputs[1 - index]
            turned = None if x is None else self.turned(x)
            axes = self.facts.single(factor)
            if x is None or factor is None or turned is None or axes is None:
                continue
            if axes <= len(turned[1]):
                return x, factor
        return None

    def keys(self, scores: _Scores, stem: str) -> tuple[Value, list[Node]] | None:
        """The keys ``(…, S, D)`` of a product with their transpose, and the nodes that make them."""
        value, factor = scores.right, None
        found = self.scaled(value)
        if found is not None:
            value, scores.scale = found[0], scores.scale * found[1]
        elif (varying := self.factored(value)) is not None:
            value, factor = varying
            number = self.matcher.number(factor)
            if number:
                scores.scale, factor = scores.scale * number, None
        value, perm = self.turned(value) or (value, identity(self.ranks.get(value, 0)))
        if len(perm) < 2:
            return None
        perm = (*perm[:-2], perm[-1], perm[-2])
        found = self.scaled(value)
        if found is not None:
            value, scores.scale = found[0], scores.scale * found[1]
        made: list[Node] = []
        if perm != identity(len(perm)):
            keys = Value(f"{stem}/keys", value.dtype)
            made.append(Node("", "Transpose", [value], [keys], {"perm": perm}))
            value = keys
        if factor is not None:
            times = Value(f"{stem}/scaled_keys", value.dtype)
            made.append(Node("", "Mul", [value, factor], [times]))
            value = times
        return value, made

    def quantised(self, value: Value) -> bool:
        """Whether a value, in whatever shape, goes into 8 bits.

        An error of one last place turns a tie there and moves a whole step.
        """
        for node in self.matcher.consumers.get(value, ()):
            if node.operator in QUANTISED:
                return True
            result = node.outputs[0]
            if node.operator in MOVES and result is not None and self.quantised(result):
                return True
        return False

    def mask(self, scores: _Scores, stem: str) -> tuple[Value | None, list[Node]]:
        """What is added to the scores, and the node that makes it of a condition."""
        array = None if scores.closing is None else self.matcher.array(scores.closing[1])
        if scores.closing is None or array is None:
            return scores.mask, []
        condition, closed, shown = scores.closing
        zero = self.matcher.add_constant(f"{stem}/open", tensor(0.0, array.dtype))
        branches = [zero, closed] if shown else [closed, zero]
        made = Value(f"{stem}/mask", array.dtype)
        return made, [Node("", "Where", [condition, *branches], [made])]


def _match(search: _Search, node: Node) -> list[Node]:
    """The nodes in front of a product that becomes attention; none where it is none."""
    result = node.outputs[0]
    rows = search.softmax(node.inputs[0], node) if len(node.inputs) == 2 else None
    if rows is None or result is None or node.inputs[1] is None:
        return []
    if result.dtype not in (None, "float32") or search.quantised(result):
        return []
    scores = search.scores(*rows)
    keys = None if scores is None else search.keys(scores, result.name)
    if scores is None or keys is None:
        return []
    mask, more = search.mask(scores, result.name)
    fused = Node(
        OWN,
        "FusedAttention",
        [scores.left, keys[0], node.inputs[1], *([] if mask is None else [mask])],
        [result],
        {"scale": scores.scale},
        node.name,
    )
    return [*keys[1], *more, fused]


def run(graph: Graph) -> bool:
    """Each match becomes one FusedAttention node, with its keys and its mask in front."""
    search = _Search(graph)
    kept: list[Node] = []
    changed = False
    for node in graph.nodes:
        made = _match(search, node) if node.operator == "MatMul" and not node.domain else []
        kept.extend(made or [node])
        changed = changed or bool(made)
    graph.nodes = kept
    return changed


PASS = Pass(
    "attention-recognition",
    run,
    FAST,
    ensures="Attention is one node, unless its result is quantised.",
    bit_rule="One kernel with its own order of sums takes the place of two products and a softmax.",
)
