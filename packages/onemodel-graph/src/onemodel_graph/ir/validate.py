"""The structural rules that every graph keeps."""

from __future__ import annotations

from collections.abc import Iterable

from onemodel_graph.ir.graph import Graph
from onemodel_graph.ir.value import Value
from onemodel_kernels.errors import AttributeValueError


def validate(graph: Graph, outer: Iterable[Value] = ()) -> None:
    """Checks that names are unique and that every value is written before it is read.

    Args:
        graph: The graph, bodies included.
        outer: Values of enclosing graphs that the graph may read.

    Raises:
        AttributeValueError: naming the node and the value.
    """
    known: set[Value] = set(outer)
    names: dict[str, Value] = {}

    def declare(value: Value, what: str) -> None:
        if value in known:
            raise AttributeValueError(f"{what}: the value {value.name!r} is written twice")
        if names.setdefault(value.name, value) is not value:
            raise AttributeValueError(f"{what}: two values have the name {value.name!r}")
        known.add(value)

    for value in graph.inputs:
        declare(value, "input")
    for name, value in graph.values.items():
        if value in known:
            continue
        if name != value.name or names.setdefault(name, value) is not value:
            declare(value, "initializer")
        known.add(value)
    for node in graph.nodes:
        for source in node.inputs:
            if source is not None and source not in known:
                raise AttributeValueError(
                    f"{node.label}: reads the value {source.name!r}, which nothing before it writes"
                )
        for body in node.attributes.values():
            if isinstance(body, Graph):
                validate(body, known)
        for made in node.outputs:
            if made is None:
                continue
            if made in known or names.setdefault(made.name, made) is not made:
                declare(made, node.label)
            known.add(made)
    for value in graph.outputs:
        if value not in known:
            raise AttributeValueError(f"output: nothing writes the value {value.name!r}")
