"""From a graph to ONNX: IR version 9, the graph's opset, the same bytes for equal graphs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)

from onemodel_graph.ir import Graph, Model, Node, Value
from onemodel_graph.narrow import BITS, packed_size
from onemodel_graph.onnx_io.functions import functions_of
from onemodel_graph.onnx_io.tensors import stored_bytes, text_proto, to_proto
from onemodel_graph.onnx_io.types import dtype_number
from onemodel_kernels import Array, ops
from onemodel_kernels.errors import AttributeValueError, UnsupportedError
from onemodel_kernels.saving import write_atomically

IR_VERSION = 9
PRODUCER = "onemodel"
LIMIT = 2**31 - 2**24
"""Bytes of initializers from which on they are written beside the model: protobuf holds 2 GiB, nodes included."""
ALIGNMENT = 64


def to_onnx(model: Model | Graph) -> ModelProto:
    """The model as ONNX's protobuf; nothing in it depends on time, place or process.

    A node of a registered operator brings the function that :func:`register_function` gave it.

    Raises:
        UnsupportedError: for an operator that ONNX does not have at the graph's opset.
    """
    graph = model.graph if isinstance(model, Model) else model
    imports = dict(model.opset_imports) if isinstance(model, Model) else {}
    imports[""] = graph.opset
    functions = functions_of(graph)
    domains = {node.domain for node in graph.walk()} | {""}
    domains |= {entry.domain for function in functions for entry in function.opset_import}
    proto = ModelProto(ir_version=_ir_version(graph.opset), producer_name=PRODUCER)
    for domain in sorted(domains):
        proto.opset_import.add(domain=domain, version=imports.get(domain, 1))
    proto.graph.CopyFrom(_graph(graph))
    proto.functions.extend(functions)
    for key in sorted(graph.metadata):
        proto.metadata_props.add(key=key, value=graph.metadata[key])
    return proto


def _ir_version(opset: int) -> int:
    return IR_VERSION if opset <= 20 else 10 if opset <= 22 else 11


def save_onnx(model: Model | Graph, path: str | os.PathLike[str], *, limit: int = LIMIT) -> None:
    """Writes a model to a file, replacing it in one step.

    Initializers that together exceed ``limit`` bytes go to ``<file name>.<hash of them>.data`` beside
    it. The data that an earlier save of the same name left is removed after the new model is in
    place, so that a save that is killed leaves the old pair or the new one.
    """
    target = Path(path)
    graph = model.graph if isinstance(model, Model) else model
    total = sum(array.nbytes for inner in _graphs(graph) for array in inner.initializers.values())
    location = None
    if total <= limit:
        proto = to_onnx(model)
    else:
        location = f"{target.name}.{_data_hash(graph)}.data"
        proto, chunks = _with_external_data(model, graph, location)
        write_atomically(target.with_name(location), chunks)
    write_atomically(target, [proto.SerializeToString(deterministic=True)])
    stale = re.compile(re.escape(target.name) + r"\.[0-9a-f]{16}\.data")
    for entry in target.parent.iterdir():
        if entry.name != location and stale.fullmatch(entry.name):
            entry.unlink()


def _data_hash(graph: Graph) -> str:
    digest = hashlib.sha256()
    for name, array in graph.initializers.items():
        digest.update(f"{name}\0{array.nbytes}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _with_external_data(
    model: Model | Graph, graph: Graph, location: str
) -> tuple[ModelProto, Iterable[bytes]]:
    arrays = graph.initializers
    graph.initializers = {}
    try:
        proto = to_onnx(model)
    finally:
        graph.initializers = arrays
    offset = 0
    places = []
    for name, array in arrays.items():
        dtype = graph.values[name].dtype
        if dtype == "string":
            # ONNX holds texts in the message alone.
            proto.graph.initializer.append(to_proto(array, name, dtype, graph.values[name].shape))
            continue
        offset = -(-offset // ALIGNMENT) * ALIGNMENT
        length = packed_size(dtype, array.size) if dtype in BITS else array.nbytes
        tensor = TensorProto(
            dims=array.shape,
            data_type=dtype_number(dtype if dtype in BITS else array.dtype),
            name=name,
            data_location=TensorProto.EXTERNAL,
        )
        for key, text in (("location", location), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(text))
        proto.graph.initializer.append(tensor)
        places.append((offset, array, dtype))
        offset += length

    def chunks() -> Iterable[bytes]:
        at = 0
        for start, array, dtype in places:
            yield b"\0" * (start - at)
            data = stored_bytes(array, dtype)
            yield data
            at = start + len(data)

    return proto, chunks()


def _graphs(graph: Graph) -> Iterable[Graph]:
    yield graph
    for node in graph.nodes:
        for attribute in node.attributes.values():
            if isinstance(attribute, Graph):
                yield from _graphs(attribute)


def _graph(graph: Graph) -> GraphProto:
    proto = GraphProto(name=graph.name)
    for node in graph.nodes:
        proto.node.append(_node(node, graph.opset))
    for name, array in graph.initializers.items():
        value = graph.values[name]
        proto.initializer.append(to_proto(array, name, value.dtype, value.shape))
    proto.input.extend(_info(value) for value in graph.inputs)
    proto.output.extend(_info(value) for value in graph.outputs)
    return proto


def _node(node: Node, opset: int) -> NodeProto:
    spec = ops.find(node.operator, node.domain)
    if spec is not None and node.domain == "":
        if spec.domain != "":
            raise UnsupportedError(f"{node.label}: ONNX has no such operator; write it with others")
        if spec.since_version > max(opset, 20):
            raise UnsupportedError(
                f"{node.label}: it needs opset {spec.since_version}, the graph has opset {opset}"
            )
    proto = NodeProto(
        input=["" if value is None else value.name for value in node.inputs],
        output=["" if value is None else value.name for value in node.outputs],
        name=node.name,
        op_type=node.operator,
        domain=node.domain,
    )
    while proto.input and not proto.input[-1]:
        del proto.input[-1]
    while proto.output and not proto.output[-1]:
        del proto.output[-1]
    kinds = {} if spec is None else {name: entry.type for name, entry in spec.attributes.items()}
    for name in sorted(node.attributes):
        value = node.attributes[name]
        if name == "value_strings" and node.operator == "Constant" and not node.domain:
            proto.attribute.append(_constant_texts(value, node))
        elif value is not None:
            proto.attribute.append(_attribute(name, value, kinds.get(name), node))
    return proto


def _constant_texts(texts: Any, node: Node) -> AttributeProto:
    """The texts of a Constant with their shape, which is one axis in ``value_strings``."""
    made = node.outputs[0] if node.outputs else None
    if made is None or made.shape is None or len(made.shape) == 1:
        return _attribute("value_strings", texts, "strings", node)
    tensor = text_proto(texts, "", made.shape)
    return AttributeProto(name="value", t=tensor, type=AttributeProto.TENSOR)


def _attribute(name: str, value: Any, kind: str | None, node: Node) -> AttributeProto:
    proto = AttributeProto(name=name)
    if kind == "dtype" or (kind is None and name in ("to", "dtype") and isinstance(value, str)):
        proto.i, proto.type = dtype_number(value), AttributeProto.INT
    elif isinstance(value, Graph):
        proto.g.CopyFrom(_graph(value))
        proto.type = AttributeProto.GRAPH
    elif isinstance(value, Array):
        made = node.outputs[0] if node.operator == "Constant" and node.outputs else None
        proto.t.CopyFrom(to_proto(value, "", None if made is None else made.dtype))
        proto.type = AttributeProto.TENSOR
    elif isinstance(value, str):
        proto.s, proto.type = value.encode("utf-8", "surrogateescape"), AttributeProto.STRING
    elif kind == "float" or (kind is None and isinstance(value, float)):
        proto.f, proto.type = float(value), AttributeProto.FLOAT
    elif isinstance(value, bool | int):
        proto.i, proto.type = int(value), AttributeProto.INT
    elif isinstance(value, tuple | list):
        _list(proto, tuple(value), kind, node)
    else:
        raise AttributeValueError(
            f"{node.label}: the attribute {name!r} is {value!r}, which ONNX cannot hold"
        )
    return proto


def _list(proto: AttributeProto, value: tuple[Any, ...], kind: str | None, node: Node) -> None:
    if kind == "strings" or (value and isinstance(value[0], str)):
        proto.strings.extend(entry.encode("utf-8", "surrogateescape") for entry in value)
        proto.type = AttributeProto.STRINGS
    elif kind == "floats" or (kind is None and any(isinstance(entry, float) for entry in value)):
        proto.floats.extend(float(entry) for entry in value)
        proto.type = AttributeProto.FLOATS
    elif all(isinstance(entry, int) for entry in value):
        proto.ints.extend(int(entry) for entry in value)
        proto.type = AttributeProto.INTS
    else:
        raise AttributeValueError(
            f"{node.label}: the attribute {proto.name!r} is {value!r}, a mixed list"
        )


def _info(value: Value) -> ValueInfoProto:
    if value.dtype is None:
        raise AttributeValueError(
            f"value {value.name!r}: its dtype is not known, so it cannot be written"
        )
    kind = TypeProto()
    kind.tensor_type.elem_type = dtype_number(value.dtype)
    if value.shape is not None:
        shape = TensorShapeProto()
        for extent in value.shape:
            entry = shape.dim.add()
            if isinstance(extent, str):
                entry.dim_param = extent
            elif extent is not None:
                entry.dim_value = extent
        kind.tensor_type.shape.CopyFrom(shape)
    return ValueInfoProto(name=value.name, type=kind)
