"""Graphs as JSON: the ``graph`` entry of format v1.

A graph is ``{name, opset, inputs, outputs, initializers, nodes, metadata}``. A value is
``[name, dtype, shape]`` where it is written, and its name where it is read (``""`` = absent). An
initializer is ``[name, key]``, with its dtype and shape behind where the tensor holds codes of it. A
node is ``[domain, operator, [inputs], [values], {attributes}, name]``. An attribute is a number, a
text, a list of one of them, ``{"float": "nan"}``, ``{"tensor": key}`` or ``{"graph": {…}}``.
"""

from __future__ import annotations

import math
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import CODED
from onemodel_graph.text_data import check_packed
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError
from onemodel_kernels.ops.narrow import HELD

DEPTH = 64
"""Bodies inside each other beyond this are refused."""


def write_graph(graph: Graph, tensors: dict[str, Array], prefix: str = "") -> dict[str, Any]:
    """The JSON tree of a graph; its arrays are added to ``tensors``, by the keys that the tree has."""
    initializers = []
    for name, array in graph.initializers.items():
        value = graph.values[name]
        key = _keep(tensors, prefix + name, array)
        # What the tensor holds does not say of which type the elements are, nor the shape of texts.
        initializers.append([name, key, *(_value(value)[1:] if value.dtype in CODED else ())])
    nodes = []
    for index, node in enumerate(graph.nodes):
        attributes = {
            name: _attribute(node.attributes[name], tensors, f"{prefix}{index}/{name}/")
            for name in sorted(node.attributes)
            if node.attributes[name] is not None
        }
        nodes.append([
            node.domain,
            node.operator,
            ["" if value is None else value.name for value in node.inputs],
            [None if value is None else _value(value) for value in node.outputs],
            attributes,
            node.name,
        ])  # fmt: skip
    return {
        "name": graph.name,
        "opset": graph.opset,
        "inputs": [_value(value) for value in graph.inputs],
        "outputs": [value.name for value in graph.outputs],
        "initializers": initializers,
        "nodes": nodes,
        "metadata": dict(sorted(graph.metadata.items())),
    }


def _keep(tensors: dict[str, Array], key: str, array: Array) -> str:
    stem, count = key, 0
    while key in tensors or key == "__metadata__":
        count += 1
        key = f"{stem}#{count}"
    tensors[key] = array
    return key


def _value(value: Value) -> list[Any]:
    return [value.name, value.dtype, None if value.shape is None else list(value.shape)]


def _attribute(value: Any, tensors: dict[str, Array], prefix: str) -> Any:
    if isinstance(value, Array):
        return {"tensor": _keep(tensors, prefix + "value", value)}
    if isinstance(value, Graph):
        return {"graph": write_graph(value, tensors, prefix)}
    if isinstance(value, tuple | list):
        return [_attribute(entry, tensors, prefix) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float | str):
        return value
    raise AttributeValueError(f"format v1 cannot hold the attribute value {value!r}")


def read_graph(
    tree: Any, tensors: dict[str, Array], outer: dict[str, Value] | None = None, depth: int = 0
) -> Graph:
    """The graph of a JSON tree.

    Raises:
        AttributeValueError: for what does not fit together, naming it. Trees of another form raise
            ``KeyError``, ``TypeError`` or ``ValueError``.
    """
    if depth > DEPTH:
        raise AttributeValueError(f"graphs are nested more than {DEPTH} deep")
    graph = Graph(str(tree["name"]), opset=int(tree["opset"]))
    outer = outer or {}
    names = dict(outer)
    for name, key, *coded in tree["initializers"]:
        array = tensors.get(key)
        if array is None:
            raise AttributeValueError(f"the initializer {name!r} has no tensor {key!r}")
        value = Value(str(name), array.dtype, tuple(array.shape))
        if coded:
            value = _read_value([name, *coded])
            _check_coded(array, value)
        graph.initializers[value.name] = array
        graph.values[value.name] = value
        names[value.name] = value
    for entry in tree["inputs"]:
        value = _read_value(entry)
        graph.inputs.append(value)
        names[value.name] = value
    for domain, operator, inputs, outputs, attributes, node_name in tree["nodes"]:
        read = [
            None if name == "" else _known(names, name, node_name or operator) for name in inputs
        ]
        parsed = {
            str(key): _read_attribute(entry, tensors, names, depth)
            for key, entry in attributes.items()
        }
        written = [None if entry is None else _read_value(entry) for entry in outputs]
        for made in written:
            if made is not None:
                names[made.name] = made
        graph.nodes.append(Node(str(domain), str(operator), read, written, parsed, str(node_name)))
    graph.outputs = [_known(names, name, "output") for name in tree["outputs"]]
    graph.metadata = {str(key): str(text) for key, text in tree["metadata"].items()}
    own = {*graph.inputs, *graph.values.values()}
    own.update(v for node in graph.nodes for v in node.outputs if v is not None)
    outside = set(outer.values())
    everything = [v for node in graph.walk() for v in node.inputs if v is not None] + graph.outputs
    graph.captured = [v for v in dict.fromkeys(everything) if v not in own and v in outside]
    return graph


def _check_coded(array: Array, value: Value) -> None:
    """Raises unless a tensor holds what stands for elements of a type that arrays do not have."""
    where = f"the initializer {value.name!r}"
    shape = value.shape or ()
    if value.dtype == "string":
        if not all(isinstance(extent, int) for extent in shape):
            raise AttributeValueError(f"{where} has the shape {shape}")
        check_packed(array, math.prod(shape), where)  # type: ignore[arg-type]
    elif HELD.get(value.dtype or "") != array.dtype or shape != tuple(array.shape):
        raise AttributeValueError(f"{where}: {value!r} is held in {array.dtype} {array.shape}")


def _known(names: dict[str, Value], name: str, where: str) -> Value:
    if name not in names:
        raise AttributeValueError(f"{where}: reads {name!r}, which nothing before it writes")
    return names[name]


def _read_value(entry: Any) -> Value:
    name, dtype, shape = entry
    extents = None
    if shape is not None:
        extents = tuple(shape)
        if not all(isinstance(e, str | None) or (type(e) is int and e >= 0) for e in extents):
            raise AttributeValueError(f"the value {name!r} has the shape {shape}")
    return Value(str(name), None if dtype is None else str(dtype), extents)


def _read_attribute(
    entry: Any, tensors: dict[str, Array], names: dict[str, Value], depth: int
) -> Any:
    if isinstance(entry, dict):
        if "tensor" in entry:
            array = tensors.get(entry["tensor"])
            if array is None:
                raise AttributeValueError(f"an attribute has no tensor {entry['tensor']!r}")
            return array
        if "graph" in entry:
            return read_graph(entry["graph"], tensors, names, depth + 1)
        return float(entry["float"])
    if isinstance(entry, list):
        return tuple(_read_attribute(part, tensors, names, depth) for part in entry)
    if isinstance(entry, int | float | str):
        return entry
    raise AttributeValueError(f"an attribute is {entry!r}")
