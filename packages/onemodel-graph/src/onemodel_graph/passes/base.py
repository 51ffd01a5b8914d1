"""What a pass is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onemodel_graph.ir import Graph, Node, Value
from onemodel_kernels import Array
from onemodel_kernels.ops.narrow import HELD


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


CODED = frozenset({*HELD, "string"})
"""Element types whose arrays hold something else: what reads one may mean it by its type."""
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

    def producer(self, value: Value | None, *operators: str) -> Node | None:
        """The node that writes a value, when it is an ONNX operator of one of these names."""
        node = None if value is None else self.producers.get(value)
        if node is None or node.domain or (operators and node.operator not in operators):
            return None
        return node

    def array(self, value: Value | None) -> Array | None:
        """The array of an initializer of numbers."""
        if (
            value is None
            or value.dtype == "string"
            or self.graph.values.get(value.name) is not value
        ):
            return None
        return self.graph.initializers.get(value.name)

    def number(self, value: Value | None) -> float | None:
        """The number in an initializer of one element."""
        array = self.array(value)
        if array is None or array.size != 1 or not array.dtype.startswith("float"):
            return None
        return float(array.reshape(()).item())

    def split(self, node: Node) -> tuple[Value, Value] | None:
        """(the constant, the other input) of a node with one constant input."""
        if len(node.inputs) != 2:
            return None
        left, right = node.inputs
        if left is None or right is None:
            return None
        if self.array(right) is not None and self.array(left) is None:
            return right, left
        if self.array(left) is not None and self.array(right) is None:
            return left, right
        return None

    def add_constant(self, stem: str, array: Array) -> Value:
        """A new initializer."""
        taken = {value.name for node in self.graph.nodes for value in node.outputs if value}
        taken.update(value.name for value in self.graph.inputs)
        name, count = stem, 0
        while name in self.graph.initializers or name in taken:
            count += 1
            name = f"{stem}_{count}"
        value = Value(name, array.dtype, tuple(array.shape))
        self.graph.initializers[name] = array
        self.graph.values[name] = value
        return value


def near(number: float | None, wanted: float) -> bool:
    """Whether a constant is the number that a pattern wants, up to its rounding to float."""
    return number is not None and abs(number - wanted) <= 1e-5 * max(abs(wanted), 1.0)
