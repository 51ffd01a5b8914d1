"""From ONNX's protobuf to a graph, whatever opset it was written for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from onemodel_graph.ir import Graph, Model, Node, Value
from onemodel_graph.ir.graph import OPSET
from onemodel_graph.onnx_io.adapters import Rewriter, adapt
from onemodel_graph.onnx_io.adapters.label_encoder import lists_of
from onemodel_graph.onnx_io.attributes import attribute_value
from onemodel_graph.onnx_io.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
)
from onemodel_graph.onnx_io.raw_data import RawData
from onemodel_graph.onnx_io.scope import Scope, call, opsets_of
from onemodel_graph.onnx_io.tensors import ExternalData, to_array
from onemodel_graph.onnx_io.types import dtype_name
from onemodel_graph.onnx_io.value_types import type_constant, typed_value
from onemodel_kernels import ops
from onemodel_kernels.errors import AttributeValueError, OneModelError, UnsupportedError

OLDEST, NEWEST = 1, 28
NODES = 1 << 18
"""Nodes that functions may be written out as; functions that call functions multiply."""
DEPTH = 64
"""Bodies and functions inside each other beyond this are refused."""


def import_model(source: ModelProto | bytes | str | Path) -> Model:
    """The model in a file, in bytes or in a ``ModelProto``.

    Functions are written out, unless their operator is registered (onemodel_kernels.extension);
    constants stay nodes, nodes of older opsets are written as their present form.

    Raises:
        AttributeValueError: for a damaged file or a model that breaks ONNX's rules, naming the
            place.
        UnsupportedError: for an opset above 28 or an element type that is not supported.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        raw = RawData(path)
        try:
            return _imported(raw.message, path.parent, raw)
        finally:
            raw.close()
    return _imported(source, None, None)


def _imported(source: ModelProto | bytes, folder: Path | None, raw: RawData | None) -> Model:
    if isinstance(source, ModelProto):
        proto = source
    else:
        proto = ModelProto()
        try:
            proto.ParseFromString(bytes(source))
        except DecodeError as error:
            raise AttributeValueError(f"this is not an ONNX model: {error}") from None
    if not proto.HasField("graph"):
        raise AttributeValueError("this is not an ONNX model: it has no graph")
    try:
        return _Importer(proto, ExternalData(folder), raw).model()
    except (TypeError, UnicodeError) as error:
        # protobuf hands out bytes in place of a text that is not UTF-8.
        raise AttributeValueError(f"the model holds a text that is not UTF-8: {error}") from None


class _Importer:
    def __init__(self, proto: ModelProto, external: ExternalData, raw: RawData | None) -> None:
        self.proto = proto
        self.raw = raw
        self.external = external
        self.functions: dict[tuple[str, str], FunctionProto] = {
            ("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in proto.functions
        }
        self.names: set[str] = set()
        self.depth = 0
        self.written = 0

    def model(self) -> Model:
        opsets = opsets_of(self.proto.opset_import)
        version = opsets.get("", OPSET)
        if not OLDEST <= version <= NEWEST:
            raise UnsupportedError(
                f"opset {version}: opsets {OLDEST} to {NEWEST} can be read; "
                "onnx.version_converter may convert the model"
            )
        scope = Scope({}, opsets)
        self._collect(self.proto.graph)
        graph = self.graph(self.proto.graph, scope)
        graph.opset = max(version, OPSET)
        for entry in self.proto.metadata_props:
            graph.metadata[entry.key] = entry.value
        return Model(
            graph, {**opsets, "": graph.opset}, self.proto.producer_name, self.proto.doc_string
        )

    def _collect(self, proto: GraphProto) -> None:
        """Notes every name of the file, so that names made on the way collide with none."""
        self.names.update(entry.name for entry in proto.initializer)
        self.names.update(entry.name for entry in proto.input)
        for node in proto.node:
            self.names.update(node.output)
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    self._collect(attribute.g)

    def fresh(self, stem: str) -> str:
        name = stem
        count = 0
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        self.names.add(name)
        return name

    def graph(self, proto: GraphProto, outer: Scope) -> Graph:
        self.depth += 1
        if self.depth > DEPTH:
            raise AttributeValueError(f"{proto.name}: graphs are nested more than {DEPTH} deep")
        graph = Graph(proto.name or "graph")
        scope = outer.inner()
        raw = self.raw if self.depth == 1 else None
        for index, tensor in enumerate(proto.initializer):
            array = to_array(tensor, self.external, None if raw is None else raw.read(index))
            dtype = dtype_name(tensor.data_type)
            shape = tuple(tensor.dims) if dtype == "string" else tuple(array.shape)
            value = Value(scope.prefix + tensor.name, dtype, shape)
            if value.name in graph.initializers:
                raise AttributeValueError(f"the initializer {tensor.name!r} is there twice")
            graph.initializers[value.name] = array
            graph.values[value.name] = value
            scope.write(tensor.name, value, "initializer")
        if proto.sparse_initializer:
            raise UnsupportedError(f"{proto.name}: sparse initializers are not supported")
        for info in proto.input:
            known = scope.values.get(info.name)
            if known is not None and known.name in graph.initializers:
                # An initializer that is also an input: a default that a run does not override.
                continue
            value = typed_value(info, scope.prefix + info.name)
            graph.inputs.append(value)
            scope.write(info.name, value, "input")
        types = {info.name: info for info in [*proto.value_info, *proto.output]}
        self.nodes(proto.node, scope, graph, types)
        for info in proto.output:
            found = scope.values.get(info.name)
            if found is None:
                raise AttributeValueError(f"output {info.name!r}: nothing writes this value")
            graph.outputs.append(found)
        own = {*graph.inputs, *graph.values.values()}
        own.update(v for node in graph.nodes for v in node.outputs if v is not None)
        read = [v for node in graph.walk() for v in node.inputs if v is not None] + graph.outputs
        outside = set(outer.values.values())
        graph.captured = [v for v in dict.fromkeys(read) if v not in own and v in outside]
        self.depth -= 1
        return graph

    def nodes(
        self, protos: Sequence[NodeProto], scope: Scope, graph: Graph, types: Mapping[str, Any]
    ) -> None:
        for proto in protos:
            texts: tuple[object, ...] = (proto.op_type, proto.domain)
            if not all(isinstance(text, str) for text in texts):
                raise TypeError(f"operator and domain {texts}")
            domain = "" if proto.domain == "ai.onnx" else proto.domain
            function = self.functions.get((domain, proto.op_type))
            if function is not None and not ops.registered(proto.op_type, domain):
                self.inline(function, proto, scope, graph)
                continue
            node = self.node(proto, domain, scope, types)
            version = scope.opsets.get(domain, OPSET if not domain else 1)
            rewriter = Rewriter(node, version, graph, self.fresh)
            try:
                graph.nodes.extend(adapt(rewriter))
            except OneModelError as error:
                raise type(error)(f"{node.label}: {error}") from None
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise AttributeValueError(
                    f"{node.label}: it is not a {node.operator} of opset {version} "
                    f"({type(error).__name__}: {error})"
                ) from error

    def node(self, proto: NodeProto, domain: str, scope: Scope, types: Mapping[str, Any]) -> Node:
        shown = f"{proto.op_type} (node {proto.name!r})" if proto.name else proto.op_type
        inputs: list[Value | None] = []
        for name in proto.input:
            if not name:
                inputs.append(None)
                continue
            value = scope.values.get(name)
            if value is None:
                raise AttributeValueError(
                    f"{shown}: reads {name!r}, which nothing before it writes"
                )
            inputs.append(value)
        attributes = {}
        for entry in proto.attribute:
            attribute = entry
            if entry.ref_attr_name:
                given = scope.attributes.get(entry.ref_attr_name)
                if given is None:
                    continue
                attribute = given
            if attribute.type == AttributeProto.GRAPH:
                attributes[entry.name] = self.graph(attribute.g, scope)
            else:
                attributes[entry.name] = attribute_value(
                    attribute, entry.name, self.external, shown
                )
        outputs: list[Value | None] = []
        for name in proto.output:
            if not name:
                outputs.append(None)
                continue
            value = Value(self.fresh(scope.prefix + name) if scope.prefix else name)
            info = types.get(name)
            if info is not None:
                typed = typed_value(info, value.name)
                value.dtype, value.shape = typed.dtype, typed.shape
            scope.write(name, value, shown)
            outputs.append(value)
        if proto.op_type == "Constant" and not domain and outputs and outputs[0] is not None:
            type_constant(proto, outputs[0], attributes)
        if proto.op_type == "LabelEncoder" and domain == "ai.onnx.ml":
            attributes = lists_of(attributes)
        return Node(domain, proto.op_type, inputs, outputs, attributes, scope.prefix + proto.name)

    def inline(self, function: FunctionProto, proto: NodeProto, scope: Scope, graph: Graph) -> None:
        """Writes a function's nodes out in the place of the node that calls it."""
        self.depth += 1
        if self.depth > DEPTH:
            raise AttributeValueError(
                f"function {function.name!r}: functions call each other without end"
            )
        self.written += len(function.node)
        if self.written > NODES:
            raise AttributeValueError(
                f"function {function.name!r}: written out, the model's functions have more than {NODES} nodes"
            )
        prefix = self.fresh(f"{scope.prefix}{proto.name or function.name}") + "/"
        inner, nodes = call(function, proto, scope, prefix)
        self.nodes(nodes, inner, graph, {})
        for target, source in zip(proto.output, function.output, strict=False):
            if not target:
                continue
            if source not in inner.values:
                raise AttributeValueError(f"function {function.name!r}: nothing writes {source!r}")
            name = scope.prefix + target
            value = Value(self.fresh(name) if scope.prefix else name)
            graph.nodes.append(Node("", "Identity", [inner.values[source]], [value]))
            scope.write(target, value, f"function {function.name!r}")
        self.depth -= 1
