"""Chooses, for each region of operators that can work in any order of axes, the order that needs the
fewest transposed elements around it.

Exporters of networks with channels last put a Transpose before and one after each convolution. What
stands between two convolutions (additions, activations, paddings, concatenations, reductions) can
as well run with channels first: then the pairs around it vanish.
"""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.axis_orders import Order, Step, identity, inverse, permutation, stored
from onemodel_graph.passes.axis_steps import reorder
from onemodel_graph.passes.base import Pass
from onemodel_graph.passes.layout_regions import Region, Regions, plain_shape
from onemodel_graph.planning.numbers import tensor


class _Rewriting:
    """Gives the values of a region another order.

    Attributes:
        stored: By value: what holds it in the order of the region.
    """

    def __init__(self, graph: Graph, regions: Regions) -> None:
        self.graph = graph
        self.regions = regions
        self.matcher = regions.matcher
        self.stored: dict[Value, Value] = {}

    def apply(self, region: Region) -> None:
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
            if (
                source is not None
                and turned
                and perm is not None
                and self.regions.inside(source, region)
            ):
                order = region.orders[source]
                perm = tuple(order[axis] for axis in perm)
                node.inputs = [self.stored[source]]
                node.attributes["perm"] = perm
                if perm == identity(len(perm)):
                    node.operator, node.attributes = "Identity", {}
            elif source is not None and turned and plain_shape(node):
                made += self._shape(node, source, region.orders[source])
                continue
            made.append(node)
            entering = (v for v in node.outputs if v is not None and v in region.orders)
            for value in entering:
                made += self._enter(value, region)
        self.graph.nodes = made

    def _enter(self, value: Value, region: Region) -> list[Node]:
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

    def _inside(self, node: Node, step: Step, region: Region) -> list[Node]:
        moving = self.regions.moving(node, step)
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
            if self.regions.needed(value, region):
                follow.append(Node("", "Transpose", [inner], [value], {"perm": after}))
        return [node, *follow]

    def _shape(self, node: Node, source: Value, order: Order) -> list[Node]:
        result = node.outputs[0]
        assert result is not None
        inner = Value(f"{result.name}/stored", "int64", (len(order),))
        axes = self.matcher.add_constant(f"{result.name}/axes", tensor(list(order), "int64"))
        node.inputs, node.outputs = [self.stored[source]], [inner]
        return [node, Node("", "Gather", [inner, axes], [result], {"axis": 0}, node.name)]


def _improve(graph: Graph, seen: set[Value]) -> bool:
    """Rewrites the first region that was not looked at before and gains by it."""
    regions = Regions(graph)
    for node in graph.nodes:
        perm, result = permutation(node), node.outputs[0] if node.outputs else None
        if perm is None:
            continue
        for start in (result, node.inputs[0]):
            if start is None or start in seen or regions.matcher.array(start) is not None:
                continue
            region, values = regions.best(start, len(perm))
            seen |= values
            if region is not None:
                _Rewriting(graph, regions).apply(region)
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
