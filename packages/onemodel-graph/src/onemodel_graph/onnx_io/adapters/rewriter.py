"""How an adapter writes nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.planning.numbers import tensor

Adapter = Callable[["Rewriter"], list[Node]]
_ADAPTERS: dict[str, list[tuple[int, Adapter]]] = {}


class Rewriter:
    """One old node and the means to write new ones.

    Attributes:
        node: The node as it was read; adapters may change it.
        version: The opset version of its domain.
    """

    def __init__(self, node: Node, version: int, graph: Graph, fresh: Callable[[str], str]) -> None:
        self.node = node
        self.version = version
        self._graph = graph
        self._fresh = fresh
        self.nodes: list[Node] = []
        self.reached = 0

    def constant(self, value: Any, dtype: str = "int64") -> Value:
        """A new initializer."""
        stem = self.node.name or self.node.operator
        name = self._fresh(f"{stem}/constant")
        array = tensor(value, dtype)
        made = Value(name, dtype, tuple(array.shape))
        self._graph.initializers[name] = array
        self._graph.values[name] = made
        return made

    def add(self, operator: str, inputs: Sequence[Value | None], **attributes: Any) -> Value:
        """A node before the old one, with one output."""
        stem = self.node.name or self.node.operator
        out = Value(self._fresh(f"{stem}/{operator}"))
        self.nodes.append(Node("", operator, list(inputs), [out], attributes, self.node.name))
        return out

    def replace(
        self, operator: str, inputs: Sequence[Value | None], **attributes: Any
    ) -> list[Node]:
        """All nodes so far, and one that writes the old node's outputs."""
        node = self.node
        last = Node("", operator, list(inputs), node.outputs, attributes, node.name)
        return [*self.nodes, last]

    def set_input(self, position: int, value: Value | None) -> None:
        """Sets an input of the node, padding with absent ones."""
        inputs = self.node.inputs
        while len(inputs) <= position:
            inputs.append(None)
        inputs[position] = value

    def next(self) -> list[Node]:
        """What the adapter of a later opset makes of the node as it is now."""
        adapters = _ADAPTERS.get(self.node.operator, ())
        for before, function in adapters:
            if self.reached < before and self.version < before:
                self.reached = before
                return function(self)
        return self.done()

    def done(self) -> list[Node]:
        """All nodes so far and the old one as it is now."""
        return [*self.nodes, self.node]


def adapter(before: int, *operators: str) -> Callable[[Adapter], Adapter]:
    """Registers an adapter for nodes of opsets below ``before``."""

    def register(function: Adapter) -> Adapter:
        for operator in operators:
            _ADAPTERS.setdefault(operator, []).append((before, function))
            _ADAPTERS[operator].sort(key=lambda entry: entry[0])
        return function

    return register


def adapt(rewriter: Rewriter) -> list[Node]:
    """The nodes of the present opset that stand for a node of an older one."""
    node = rewriter.node
    return rewriter.next() if node.domain == "" else [node]
