"""Names that a list of nodes may read, and the nodes of a function where it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.onnx_io.messages import AttributeProto, FunctionProto, NodeProto
from onemodel_kernels.errors import AttributeValueError


def opsets_of(imports: Sequence[Any]) -> dict[str, int]:
    """Version by domain, the default domain as ``""``."""
    found = {}
    for entry in imports:
        found["" if entry.domain == "ai.onnx" else entry.domain] = entry.version
    return found


@dataclass(slots=True)
class Scope:
    """What the nodes of a graph, of a body or of a function refer to.

    Attributes:
        values: By the name in the file, those of graphs around it included.
        opsets: Version by domain.
        prefix: What the names of values and nodes start with in the graph that is made.
        attributes: Of a function: what its nodes refer to by name.
        written: Names that this graph has written.
    """

    values: dict[str, Value]
    opsets: Mapping[str, int]
    prefix: str = ""
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def inner(self) -> Scope:
        """That of a graph inside, which reads what this one has written so far."""
        return Scope(dict(self.values), self.opsets, self.prefix, self.attributes)

    def write(self, name: str, value: Value, where: str) -> None:
        """Notes a value; a name is written once in a graph."""
        if name in self.written:
            raise AttributeValueError(f"{where}: the value {name!r} is written twice")
        self.written.add(name)
        self.values[name] = value


def call(
    function: FunctionProto, proto: NodeProto, scope: Scope, prefix: str
) -> tuple[Scope, list[NodeProto]]:
    """The scope of a function's nodes where ``proto`` calls it, and the nodes.

    Inputs that the call leaves out are left out in the nodes too.

    Raises:
        AttributeValueError: for an input that nothing before the call writes.
    """
    attributes: dict[str, AttributeProto] = {a.name: a for a in function.attribute_proto}
    for entry in proto.attribute:
        given = scope.attributes.get(entry.ref_attr_name) if entry.ref_attr_name else entry
        if given is not None:
            attributes[entry.name] = given
    values: dict[str, Value] = {}
    for position, name in enumerate(function.input):
        given_name = proto.input[position] if position < len(proto.input) else ""
        if given_name:
            if given_name not in scope.values:
                raise AttributeValueError(
                    f"function {function.name!r}: reads {given_name!r}, which nothing before it writes"
                )
            values[name] = scope.values[given_name]
    absent = set(function.input) - set(values)
    nodes = []
    for node in function.node:
        if absent & set(node.input):
            copy = NodeProto()
            copy.CopyFrom(node)
            for position, name in enumerate(copy.input):
                if name in absent:
                    copy.input[position] = ""
            nodes.append(copy)
        else:
            nodes.append(node)
    opsets = {**scope.opsets, **opsets_of(function.opset_import)}
    return Scope(values, opsets, prefix, attributes), nodes
