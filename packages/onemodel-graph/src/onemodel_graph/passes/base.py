"""What a pass is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onemodel_graph.ir import Graph, Node, Value


@dataclass(eq=False, slots=True)
class Pass:
    """One rewriting of a graph.

    Attributes:
        name: For messages and for the choice on the command line.
        run: Rewrites the graph in place; whether it changed anything.
        modes: Arithmetic modes in which it may run; a pass of exact mode changes no bit.
        requires: Names of passes whose guarantees it needs.
        ensures: What is true of the graph afterwards, in words.
    """

    name: str
    run: Callable[[Graph], bool]
    modes: frozenset[str] = frozenset({"fast", "exact"})
    requires: tuple[str, ...] = ()
    ensures: str = ""
    bit_rule: str = "It changes no arithmetic."


EXACT = frozenset({"fast", "exact"})
FAST = frozenset({"fast"})


def replace_values(graph: Graph, replaced: Mapping[Value, Value]) -> None:
    """Lets every reader of a value, bodies included, read another one."""
    if not replaced:
        return

    def final(value: Value) -> Value:
        while value in replaced:
            value = replaced[value]
        return value

    def visit(part: Graph) -> None:
        for node in part.nodes:
            for position, value in enumerate(node.inputs):
                if value is not None and value in replaced:
                    node.inputs[position] = final(value)
            for body in node.attributes.values():
                if isinstance(body, Graph):
                    visit(body)
        part.outputs = [final(value) for value in part.outputs]
        part.captured = list(dict.fromkeys(final(value) for value in part.captured))

    visit(graph)


def keep_output_names(graph: Graph, names: list[str]) -> None:
    """Gives the outputs their names back after values took each other's place."""
    for value, name in zip(graph.outputs, names, strict=True):
        value.name = name


@dataclass(eq=False, slots=True)
class Matcher:
    """Looks up who writes and who reads, for passes that match patterns."""

    graph: Graph
    producers: dict[Value, Node] = field(init=False)
    consumers: dict[Value, list[Node]] = field(init=False)
    outputs: set[Value] = field(init=False)

    def __post_init__(self) -> None:
        self.producers = self.graph.producers()
        self.consumers = self.graph.consumers()
        self.outputs = set(self.graph.outputs)

    def only_reader(self, value: Value) -> Node | None:
        """The one node that reads a value which is no output, or ``None``."""
        readers = self.consumers.get(value, [])
        return readers[0] if len(readers) == 1 and value not in self.outputs else None
