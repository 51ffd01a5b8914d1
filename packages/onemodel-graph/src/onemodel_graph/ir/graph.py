"""Graphs and models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onemodel_graph.ir.node import Node
from onemodel_graph.ir.value import Value

if TYPE_CHECKING:
    from onemodel_kernels import Array

OPSET = 20
"""The ONNX opset whose meaning a graph has unless it says otherwise."""


@dataclass(eq=False, slots=True)
class Graph:
    """A graph in topological order.

    Attributes:
        name: The graph's name.
        inputs: Values that a run gives, in order.
        outputs: Values that a run returns, in order.
        initializers: Constant values by name.
        nodes: In an order in which every value is written before it is read.
        opset: The opset of the default domain whose meaning the nodes have.
        metadata: Text by key; ``"onemodel.guards"`` is a JSON list of comparisons on symbols.
        captured: For the body of a control-flow node: values of outer graphs that it reads.
    """

    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    initializers: dict[str, Array] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    opset: int = OPSET
    metadata: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    captured: list[Value] = field(default_factory=list)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of symbolic input extents, in the order in which they appear."""
        found: dict[str, None] = {}
        for value in self.inputs:
            for extent in value.shape or ():
                if isinstance(extent, str):
                    found[extent] = None
        return tuple(found)

    def initializer_value(self, name: str) -> Value:
        """The value that stands for an initializer."""
        return self.values[name]

    def producers(self) -> dict[Value, Node]:
        """The node that writes each value."""
        return {out: node for node in self.nodes for out in node.outputs if out is not None}

    def consumers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, one entry for each read."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                if value is not None:
                    found.setdefault(value, []).append(node)
            for body in node.attributes.values():
                if isinstance(body, Graph):
                    for value in body.captured:
                        found.setdefault(value, []).append(node)
        return found

    def walk(self) -> Iterator[Node]:
        """Every node, those of bodies included."""
        for node in self.nodes:
            yield node
            for attribute in node.attributes.values():
                if isinstance(attribute, Graph):
                    yield from attribute.walk()


@dataclass(eq=False, slots=True)
class Model:
    """A graph with the opsets that it speaks; model-local functions are written out in the graph.

    Attributes:
        graph: The main graph.
        opset_imports: The opset version by domain.
        producer: The program that wrote the file.
        doc: The model's own description.
    """

    graph: Graph
    opset_imports: dict[str, int] = field(default_factory=dict)
    producer: str = ""
    doc: str = ""
