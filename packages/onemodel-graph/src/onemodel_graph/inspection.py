"""What a model is made of, as data."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from onemodel_graph import narrow, text_resolution
from onemodel_graph.guards import guards_of
from onemodel_graph.ir import Graph, Model, Value
from onemodel_graph.loading import load
from onemodel_graph.planning import handlers  # noqa: F401  (registers them)
from onemodel_graph.planning.steps import prepare
from onemodel_graph.text_data import unpacked
from onemodel_kernels import Array, ops
from onemodel_kernels.errors import OneModelError


@dataclass(slots=True)
class Report:
    """A model's parts.

    Attributes:
        name: The graph's name.
        opset: The opset whose meaning it has.
        inputs: (name, dtype, shape) of each input; ``None`` for what is not stated.
        outputs: The same of each output.
        symbols: Names of symbolic extents.
        guards: Comparisons on symbols that every run must keep.
        operators: Number of nodes by operator, bodies included.
        nodes: Number of nodes.
        weights: Number of initializers.
        parameters: Number of elements in them.
        weight_bytes: Their bytes.
        exact: Whether it can run in exact mode.
        not_exact: Nodes without an exact kernel.
        warnings: What stands in the way of running it.
        metadata: Text by key.
    """

    name: str
    opset: int
    inputs: list[tuple[str, str | None, list[Any] | None]]
    outputs: list[tuple[str, str | None, list[Any] | None]]
    symbols: list[str]
    guards: list[str]
    operators: dict[str, int]
    nodes: int
    weights: int
    parameters: int
    weight_bytes: int
    exact: bool
    not_exact: list[str]
    warnings: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain dicts and lists."""
        return asdict(self)


def _listed(value: Value) -> tuple[str, str | None, list[Any] | None]:
    return value.name, value.dtype, None if value.shape is None else list(value.shape)


def _elements(value: Value, array: Array) -> int:
    return len(unpacked(array)) if value.dtype == "string" else array.size


def inspect(model: str | os.PathLike[str] | bytes | Model | Graph) -> Report:
    """The parts of a model.

    Raises:
        OneModelError: when it cannot be read.
    """
    graph = load(model).graph
    nodes = list(graph.walk())
    names = Counter(f"{n.domain}::{n.operator}" if n.domain else n.operator for n in nodes)
    inexact = []
    for node in nodes:
        spec = ops.find(node.operator, node.domain)
        if spec is not None and not spec.exact:
            inexact.append(node.label)
    warnings = []
    try:
        prepare(narrow.resolve(text_resolution.resolve(graph).graph)[0])
    except OneModelError as error:
        warnings.append(str(error))
    arrays = list(graph.initializers.values())
    return Report(
        graph.name,
        graph.opset,
        [_listed(value) for value in graph.inputs],
        [_listed(value) for value in graph.outputs],
        list(graph.symbols),
        [guard.text for guard in guards_of(graph)],
        dict(sorted(names.items(), key=lambda item: (-item[1], item[0]))),
        len(nodes),
        len(arrays),
        sum(_elements(graph.values[name], array) for name, array in graph.initializers.items()),
        sum(array.nbytes for array in arrays),
        not inexact and not warnings,
        inexact,
        warnings,
        dict(graph.metadata),
    )
