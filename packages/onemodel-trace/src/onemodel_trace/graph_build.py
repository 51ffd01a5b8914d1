"""From recorded nodes to a graph: what the outputs need, in order, with final names."""

from __future__ import annotations

import json
from collections.abc import Sequence

from onemodel_graph.ir import Graph, Node, Value, validate
from onemodel_trace.extents import ExtentScope
from onemodel_trace.graph_value import GraphValue, PendingNode
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.naming import dimension

GUARDS_KEY = "onemodel.guards"
"""Metadata key under which a session finds the relations that the graph relies on."""


def build_graph(
    writer: GraphWriter,
    inputs: Sequence[tuple[str, GraphValue]],
    outputs: Sequence[tuple[str, GraphValue]],
    scope: ExtentScope,
) -> Graph:
    """The graph of the nodes that the outputs depend on; every declared input stays."""
    return _Build(writer, inputs, outputs, scope).graph()


class _Build:
    def __init__(
        self,
        writer: GraphWriter,
        inputs: Sequence[tuple[str, GraphValue]],
        outputs: Sequence[tuple[str, GraphValue]],
        scope: ExtentScope,
    ) -> None:
        self._inputs = inputs
        self._outputs = outputs
        self._scope = scope
        self._nodes = _needed(writer.nodes, [value for _, value in outputs])
        self._graph = Graph("onemodel")
        self._values: dict[GraphValue, Value] = {}
        self._taken: set[str] = {name for name, _ in inputs} | {name for name, _ in outputs}
        self._reserved = writer.constants.names
        self._counts: dict[str, int] = {}

    def graph(self) -> Graph:
        graph, values = self._graph, self._values
        for name, value in self._inputs:
            values[value] = Value(name, value.dtype, self._dimensions(value))
            graph.inputs.append(values[value])
        names = self._output_names()
        for node in self._nodes:
            self._add_node(node, names)
        for name, value in self._outputs:
            written = values[value]
            if written.name != name:
                source, written = written, Value(name, value.dtype, self._dimensions(value))
                graph.nodes.append(Node("", "Identity", [source], [written], {}, name))
            graph.outputs.append(written)
        guards = self._scope.guards
        if guards:
            text = json.dumps([guard.source() for guard in guards], separators=(",", ":"))
            graph.metadata[GUARDS_KEY] = text
        validate(graph)
        return graph

    def _output_names(self) -> dict[GraphValue, str]:
        """The requested name of each node output; a second name of one value needs a node."""
        names: dict[GraphValue, str] = {}
        for name, value in self._outputs:
            if value.node is not None:
                names.setdefault(value, name)
        return names

    def _fresh(self, stem: str) -> str:
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{stem}_{count}"
            if name not in self._taken and name not in self._reserved:
                self._taken.add(name)
                return name

    def _claim(self, label: str) -> str:
        """The label itself, or one made from it when an input or output has that name."""
        if label in self._taken:
            return self._fresh(label)
        self._taken.add(label)
        return label

    def _constant(self, value: GraphValue) -> Value:
        held = value.constant
        assert held is not None, f"{value} has no producer"
        generated = value.label in ("", "constant")
        name = self._fresh("constant") if generated else self._claim(value.label)
        made = self._values[value] = Value(name, value.dtype, value.shape)
        self._graph.initializers[name] = held
        self._graph.values[name] = made
        return made

    def _add_node(self, node: PendingNode, names: dict[GraphValue, str]) -> None:
        values = self._values
        inputs = [
            None if source is None else values.get(source) or self._constant(source)
            for source in node.inputs
        ]
        outputs: list[Value | None] = []
        for value in node.outputs:
            name = names.get(value)
            if name is None:
                label = value.label
                name = self._claim(label) if label else self._fresh(node.operator.lower())
            made = values[value] = Value(name, value.dtype, self._dimensions(value))
            outputs.append(made)
        named = values[node.outputs[0]].name
        self._graph.nodes.append(
            Node(node.domain, node.operator, inputs, outputs, node.attributes, named)
        )

    def _dimensions(self, value: GraphValue) -> tuple[int | str | None, ...]:
        shape = value.shape
        for extent in shape:
            if type(extent) is not int:
                return tuple([dimension(extent, self._scope.axes) for extent in shape])
        return shape


def _needed(nodes: Sequence[PendingNode], outputs: Sequence[GraphValue]) -> list[PendingNode]:
    """The nodes that the outputs depend on, in the order in which they were recorded."""
    wanted = {value.node for value in outputs}
    needed: list[PendingNode] = []
    # A node comes after all that it reads.
    for node in reversed(nodes):
        if node in wanted:
            needed.append(node)
            for value in node.inputs:
                if value is not None:
                    wanted.add(value.node)
    needed.reverse()
    return needed
