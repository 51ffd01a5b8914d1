"""From recorded nodes to a graph: what the outputs need, in order, with final names."""

from __future__ import annotations

import json
from collections.abc import Sequence

from onemodel_graph.ir import Graph, GraphBuilder, Value
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
        self._builder = GraphBuilder("onemodel")
        self._values: dict[GraphValue, Value] = {}
        self._taken: set[str] = {name for name, _ in inputs} | {name for name, _ in outputs}
        self._reserved = writer.constants.names
        self._counts: dict[str, int] = {}

    def graph(self) -> Graph:
        for name, value in self._inputs:
            self._values[value] = self._builder.add_input(
                name, value.dtype, self._dimensions(value)
            )
        names = self._output_names()
        for node in self._nodes:
            for source in node.inputs:
                if source is not None and source not in self._values:
                    self._add_constant(source)
            self._add_node(node, names)
        for name, value in self._outputs:
            written = self._values[value]
            if written.name != name:
                types = [(value.dtype, self._dimensions(value))]
                written = self._builder.add_node(
                    "Identity", [written], [name], name=name, types=types
                )[0]
            self._builder.add_output(written)
        guards = self._scope.guards
        if guards:
            text = json.dumps([guard.source() for guard in guards], separators=(",", ":"))
            self._builder.add_metadata(GUARDS_KEY, text)
        return self._builder.build()

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

    def _add_constant(self, value: GraphValue) -> None:
        held = value.constant
        assert held is not None, f"{value} has no producer"
        generated = value.label in ("", "constant")
        name = self._fresh("constant") if generated else self._claim(value.label)
        self._values[value] = self._builder.add_initializer(name, held)

    def _add_node(self, node: PendingNode, names: dict[GraphValue, str]) -> None:
        chosen: list[str] = []
        for value in node.outputs:
            name = names.get(value)
            if name is None:
                label = value.label
                name = self._claim(label) if label else self._fresh(node.operator.lower())
            chosen.append(name)
        values = self._values
        written = self._builder.add_node(
            node.operator,
            [None if value is None else values[value] for value in node.inputs],
            chosen,
            node.attributes,
            domain=node.domain,
            name=chosen[0],
            types=[(value.dtype, self._dimensions(value)) for value in node.outputs],
        )
        for value, made in zip(node.outputs, written, strict=True):
            values[value] = made

    def _dimensions(self, value: GraphValue) -> Sequence[int | str | None]:
        shape = value.shape
        for extent in shape:
            if type(extent) is not int:
                return [dimension(extent, self._scope.axes) for extent in shape]
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
