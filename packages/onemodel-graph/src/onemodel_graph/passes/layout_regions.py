"""Regions of operators that can work in any order of axes, and what an order of one costs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.axis_orders import Order, Step, identity, inverse, permutation
from onemodel_graph.passes.axis_steps import REDUCTIONS, permits, ranks, step_of
from onemodel_graph.passes.base import Matcher

ORDERS = 8
"""Orders tried for one region."""
AXIS = 8.0
"""How much smaller the result of a reduction counts for each axis that it takes away."""


@dataclass(slots=True)
class Region:
    """Values with the order in which each would be stored, and the nodes between them."""

    orders: dict[Value, Order]
    steps: dict[int, Step] = field(default_factory=dict)
    sizes: dict[Value, float] = field(default_factory=dict)


class Regions:
    """The operators of a graph that can work in any order, and the search for better ones.

    Attributes:
        matcher: The graph's readers, writers and constants.
    """

    def __init__(self, graph: Graph) -> None:
        self.matcher = Matcher(graph)
        rank = ranks(self.matcher)
        found = ((node, step_of(self.matcher, node, rank)) for node in graph.nodes)
        self.steps = {id(node): step for node, step in found if step is not None}

    def moving(self, node: Node, step: Step) -> list[Value]:
        """The inputs whose axes take part, constants aside."""
        values = (node.inputs[position] for position in step.inputs)
        return [v for v in values if v is not None and self.matcher.array(v) is None]

    def grow(self, value: Value, order: Order) -> Region | None:
        """All that is connected with a value stored in an order; ``None`` where orders disagree."""
        region = Region({value: order}, sizes={value: 1.0})
        work = deque([value])
        while work:
            value = work.popleft()
            around = [*self.matcher.consumers.get(value, ())]
            maker = self.matcher.producers.get(value)
            around += [] if maker is None else [maker]
            for node in around:
                step = self.steps.get(id(node))
                if step is None or id(node) in region.steps:
                    continue
                inputs = self.moving(node, step)
                outputs = [v for v in node.outputs if v is not None]
                if all(v is not value for v in [*inputs, *outputs]):
                    continue
                own, size = region.orders[value], region.sizes[value]
                forward = any(v is value for v in inputs)
                before = own if forward else step.before(own)
                if not permits(self.matcher, node, before):
                    return None
                scale = _shrink(node, step)
                pairs = [(v, before, size if forward else size * scale) for v in inputs]
                after = step.after(before)
                pairs += [(v, after, size / scale if forward else size) for v in outputs]
                for other, wanted, extent in pairs:
                    if region.orders.setdefault(other, wanted) != wanted:
                        return None
                    if other not in region.sizes:
                        region.sizes[other] = extent
                        work.append(other)
                region.steps[id(node)] = step
        return region

    def inside(self, value: Value, region: Region) -> bool:
        """Whether a node of the region makes a value."""
        maker = self.matcher.producers.get(value)
        return maker is not None and id(maker) in region.steps

    def needed(self, value: Value, region: Region) -> bool:
        """Whether something outside reads a value in the order in which it is written."""
        if value in self.matcher.outputs:
            return True
        for node in self.matcher.consumers.get(value, ()):
            step = region.steps.get(id(node))
            if step is not None:
                if any(v is value and p not in step.inputs for p, v in enumerate(node.inputs)):
                    return True
            elif permutation(node) is None and not plain_shape(node):
                return True
        return False

    def cost(self, region: Region) -> float:
        """The elements that Transpose nodes at the border of a region move."""
        total = 0.0
        for value, order in region.orders.items():
            size = region.sizes[value]
            same = order == identity(len(order))
            if self.inside(value, region):
                total += 0.0 if same or not self.needed(value, region) else size
                for node in self.matcher.consumers.get(value, ()):
                    perm = permutation(node)
                    if perm is not None and len(perm) == len(order):
                        joined = tuple(order[axis] for axis in perm)
                        total += size * (joined != identity(len(order)))
                continue
            perm = permutation(self.matcher.producers.get(value))
            if perm is None:
                total += 0.0 if same else size
            else:
                total += size * (order != perm)
                total += 0.0 if same or not self.needed(value, region) else size
        return total

    def best(self, start: Value, rank: int) -> tuple[Region | None, set[Value]]:
        """The region around a value in the order that beats the written one, and its values."""
        plain = self.grow(start, identity(rank))
        if plain is None or not plain.steps:
            return None, {start}
        tried = [plain]
        least, found = self.cost(plain), None
        for value in plain.orders:
            wanted = []
            if not self.inside(value, plain):
                wanted = [permutation(self.matcher.producers.get(value))]
            else:
                readers = self.matcher.consumers.get(value, ())
                wanted = [None if (p := permutation(n)) is None else inverse(p) for n in readers]
            for order in wanted:
                if order is None or len(order) != len(plain.orders[value]):
                    continue
                if len(tried) >= ORDERS or any(r.orders.get(value) == order for r in tried):
                    continue
                region = self.grow(value, order)
                if region is None:
                    continue
                region.sizes = plain.sizes
                tried.append(region)
                cost = self.cost(region)
                if cost < least:
                    least, found = cost, region
        return found, set(plain.orders)


def _shrink(node: Node, step: Step) -> float:
    """How many times larger an input is than an output."""
    if node.operator in REDUCTIONS:
        return AXIS ** max(len(step.removed), 1)
    return float(len(node.outputs)) if node.operator == "Split" else 1.0


def plain_shape(node: Node) -> bool:
    """A Shape of all axes: it follows from the shape of the stored form."""
    return node.operator == "Shape" and not node.domain and not node.attributes
