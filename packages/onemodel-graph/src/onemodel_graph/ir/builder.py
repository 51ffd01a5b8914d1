"""The builder that tracers, importers and tests write graphs with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onemodel_graph.ir.graph import OPSET, Graph
from onemodel_graph.ir.node import Node
from onemodel_graph.ir.validate import validate
from onemodel_graph.ir.value import Dimension, Value
from onemodel_kernels.errors import AttributeValueError

if TYPE_CHECKING:
    from onemodel_kernels import Array


class GraphBuilder:
    """Builds a :class:`Graph` in order; names are unique, those asked for are kept verbatim.

    Args:
        name: The graph's name.
        opset: The opset whose meaning the nodes have.
    """

    def __init__(self, name: str = "graph", opset: int = OPSET) -> None:
        self._graph = Graph(name, opset=opset)
        self._taken: set[str] = set()
        self._counters: dict[str, int] = {}

    def fresh_name(self, stem: str) -> str:
        """A name that no value has yet: the stem itself, or the stem with a number."""
        if stem and stem not in self._taken:
            return stem
        count = self._counters.get(stem, 0)
        while (name := f"{stem}_{count}") in self._taken:
            count += 1
        self._counters[stem] = count + 1
        return name

    def _claim(self, name: str) -> str:
        if not name:
            raise AttributeValueError("GraphBuilder: a value needs a name that is not empty")
        if name in self._taken:
            raise AttributeValueError(f"GraphBuilder: the name {name!r} is used twice")
        self._taken.add(name)
        return name

    def add_input(self, name: str, dtype: str, shape: Sequence[Dimension] | None) -> Value:
        """Adds an input; a string in ``shape`` names a symbolic extent."""
        value = Value(self._claim(name), dtype, None if shape is None else tuple(shape))
        self._graph.inputs.append(value)
        return value

    def add_initializer(self, name: str, array: Array) -> Value:
        """Adds a constant; the array is kept, not copied."""
        value = Value(self._claim(name), array.dtype, tuple(array.shape))
        self._graph.initializers[value.name] = array
        self._graph.values[value.name] = value
        return value

    def add_node(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[str | Value | None] = 1,
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        name: str = "",
        types: Sequence[tuple[str, Sequence[Dimension]]] | None = None,
    ) -> list[Value]:
        """Adds a node and returns its outputs.

        Args:
            operator: The operator's name.
            inputs: Its inputs; ``None`` where an optional one is absent.
            outputs: How many outputs, or a name (or a value made before, or ``None`` for an output
                that is not asked for) for each.
            attributes: Its attributes; ``None`` values are left out.
            domain: The operator's domain.
            name: The node's name.
            types: dtype and shape of each output, where they are known.
        """
        wanted: Sequence[str | Value | None]
        if isinstance(outputs, int):
            stem = (name or operator).replace(" ", "_")
            stems = [stem] if outputs == 1 else [f"{stem}_{index}" for index in range(outputs)]
            wanted = [self.fresh_name(stem) for stem in stems]
        else:
            wanted = outputs
        values: list[Value | None] = []
        for index, entry in enumerate(wanted):
            if entry is None:
                values.append(None)
                continue
            value = Value(entry) if isinstance(entry, str) else entry
            self._claim(value.name)
            if types is not None and index < len(types):
                value.dtype, shape = types[index]
                value.shape = tuple(shape)
            values.append(value)
        kept = {key: v for key, v in (attributes or {}).items() if v is not None}
        self._graph.nodes.append(Node(domain, operator, list(inputs), values, kept, name))
        return [value for value in values if value is not None]

    def add_output(self, value: Value) -> None:
        """Declares a value as the next output."""
        self._graph.outputs.append(value)

    def rename(self, value: Value, name: str) -> None:
        """Gives a value another free name."""
        if name == value.name:
            return
        self._claim(name)
        self._taken.discard(value.name)
        if value.name in self._graph.initializers:
            array = self._graph.initializers.pop(value.name)
            self._graph.initializers[name] = array
            self._graph.values[name] = self._graph.values.pop(value.name)
        value.name = name

    def add_metadata(self, key: str, text: str) -> None:
        """Adds a metadata entry."""
        self._graph.metadata[key] = text

    def build(self) -> Graph:
        """The graph, checked: every value is written once and before it is read.

        Raises:
            AttributeValueError: naming the node and the value that is wrong.
        """
        validate(self._graph)
        return self._graph
