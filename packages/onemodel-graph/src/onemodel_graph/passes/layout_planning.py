"""Chooses, for each region of operators that can work in any order of axes, the order that needs the
fewest transposed elements around it.

Exporters of networks with channels last put a Transpose before and one after each convolution. What
stands between two convolutions (additions, activations, paddings, concatenations, reductions) can
as well run with channels first: then the pairs around it vanish.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.axis_orders import (
    REDUCTIONS,
    Order,
    Step,
    identity,
    inverse,
    permits,
    permutation,
    ranks,
    reorder,
    step_of,
    stored,
)
from onemodel_graph.passes.base import Matcher, Pass
from onemodel_graph.planning.numbers import tensor

ORDERS = 8
"""Orders tried for one region."""
AXIS = 8.0
"""How much smaller the result of a reduction counts for each axis that it takes away."""


@dataclass(slots=True)
class _Region:
    """Values with the order in which each would be stored, and the nodes between them."""

    orders: dict[Value, Order]
    steps: dict[int, Step] = field(default_factory=dict)
    sizes: dict[Value, float] = field(default_factory=dict)


class _Plan:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.matcher = Matcher(graph)
        rank = ranks(self.matcher)
        found = ((node, step_of(self.matcher, node, rank)) for node in graph.nodes)
        self.steps = {id(node): step for node, step in found if step is not None}
        self.stored: dict[Value, Value] = {}

    def moving(self, node: Node, step: Step) -> list[Value]:
        """The inputs whose axes take part, constants aside."""
        values = (node.inputs[position] for position in step.inputs)
        return [v for v in values if v is not None and self.matcher.array(v) is None]

    def grow(self, value: Value, order: Order) -> _Region | None:
        """All that is connected with a value stored in an order; ``None`` where orders disagree."""
        region = _Region({value: order}, sizes={value: 1.0})
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

    def inside(self, value: Value, region: _Region) -> bool:
        """Whether a node of the region makes a value."""
        maker = self.matcher.producers.get(value)
        return maker is not None and id(maker) in region.steps

    def needed(self, value: Value, region: _Region) -> bool:
        """Whether something outside reads a value in the order in which it is written."""
        if value in self.matcher.outputs:
            return True
        for node in self.matcher.consumers.get(value, ()):
            step = region.steps.get(id(node))
            if step is not None:
                if any(v is value and p not in step.inputs for p, v in enumerate(node.inputs)):
                    return True
            elif permutation(node) is None and not _plain_shape(node):
                return True
        return False

    def cost(self, region: _Region) -> float:
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

    def best(self, start: Value, rank: int) -> tuple[_Region | None, set[Value]]:
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

    def apply(self, region: _Region) -> None:
        """Rewrites the nodes of a region, and what stands at its border."""
        made: list[Node] = []
        for value in self.graph.inputs:
            if value in region.orders:
                made += self._enter(value, region)
        for node in self.graph.nodes:
            step = region.steps.get(id(node))
            perm = permutation(node)
            source = node.inputs[0] if node.inputs else None
            turned = source is not None and self.stored.get(source, source) is not source
            if step is not None:
                made += self._inside(node, step, region)
                continue
            if source is not None and turned and perm is not None and self.inside(source, region):
                order = region.orders[source]
                perm = tuple(order[axis] for axis in perm)
                node.inputs = [self.stored[source]]
                node.attributes["perm"] = perm
                if perm == identity(len(perm)):
                    node.operator, node.attributes = "Identity", {}
            elif source is not None and turned and _plain_shape(node):
                made += self._shape(node, source, region.orders[source])
                continue
            made.append(node)
            entering = (v for v in node.outputs if v is not None and v in region.orders)
            for value in entering:
                made += self._enter(value, region)
        self.graph.nodes = made

    def _enter(self, value: Value, region: _Region) -> list[Node]:
        """The stored form of a value that comes from outside."""
        order = region.orders[value]
        if order == identity(len(order)):
            self.stored[value] = value
            return []
        above = self.matcher.producers.get(value)
        perm = permutation(above)
        source: Value | None = value
        if above is not None and perm is not None:
            source = above.inputs[0]
        else:
            perm = identity(len(order))
        assert source is not None
        total = tuple(perm[axis] for axis in inverse(order))
        if total == identity(len(total)):
            self.stored[value] = source
            return []
        self.stored[value] = Value(f"{value.name}/stored", value.dtype)
        return [Node("", "Transpose", [source], [self.stored[value]], {"perm": total})]

    def _inside(self, node: Node, step: Step, region: _Region) -> list[Node]:
        moving = self.moving(node, step)
        before = region.orders[moving[0]]
        after = step.after(before)
        if before != identity(len(before)) or after != identity(len(after)):
            reorder(self.matcher, node, before, after)
        for position in step.inputs:
            value = node.inputs[position]
            array = self.matcher.array(value)
            if value is None:
                continue
            if array is None:
                node.inputs[position] = self.stored[value]
            elif array.ndim and before != identity(len(before)):
                turned = stored(array, before)
                node.inputs[position] = self.matcher.add_constant(f"{value.name}/stored", turned)
        follow = []
        for index, value in enumerate(node.outputs):
            if value is None:
                continue
            if after == identity(len(after)):
                self.stored[value] = value
                continue
            inner = Value(f"{value.name}/stored", value.dtype)
            self.stored[value] = inner
            node.outputs[index] = inner
            if self.needed(value, region):
                follow.append(Node("", "Transpose", [inner], [value], {"perm": after}))
        return [node, *follow]

    def _shape(self, node: Node, source: Value, order: Order) -> list[Node]:
        result = node.outputs[0]
        assert result is not None
        inner = Value(f"{result.name}/stored", "int64", (len(order),))
        axes = self.matcher.add_constant(f"{result.name}/axes", tensor(list(order), "int64"))
        node.inputs, node.outputs = [self.stored[source]], [inner]
        return [node, Node("", "Gather", [inner, axes], [result], {"axis": 0}, node.name)]


def _shrink(node: Node, step: Step) -> float:
    """How many times larger an input is than an output."""
    if node.operator in REDUCTIONS:
        return AXIS ** max(len(step.removed), 1)
    return float(len(node.outputs)) if node.operator == "Split" else 1.0


def _plain_shape(node: Node) -> bool:
    """A Shape of all axes: it follows from the shape of the stored form."""
    return node.operator == "Shape" and not node.domain and not node.attributes


def _improve(graph: Graph, seen: set[Value]) -> bool:
    """Rewrites the first region that was not looked at before and gains by it."""
    plan = _Plan(graph)
    for node in graph.nodes:
        perm, result = permutation(node), node.outputs[0] if node.outputs else None
        if perm is None:
            continue
        for start in (result, node.inputs[0]):
            if start is None or start in seen or plan.matcher.array(start) is not None:
                continue
            region, values = plan.best(start, len(perm))
            seen |= values
            if region is not None:
                plan.apply(region)
                return True
    return False


def run(graph: Graph) -> bool:
    """Region after region, at most as many as there are Transpose nodes."""
    seen: set[Value] = set()
    changed = False
    for _ in range(sum(permutation(node) is not None for node in graph.nodes)):
        if not _improve(graph, seen):
            break
        changed = True
    return changed


PASS = Pass(
    "layout-planning",
    run,
    requires=("transpose-cancelling",),
    ensures="No region of operators that work in any order of axes has fewer transposed elements "
    "around it in another order.",
    bit_rule="It moves elements; each result comes from the same elements, in the same order.",
)
