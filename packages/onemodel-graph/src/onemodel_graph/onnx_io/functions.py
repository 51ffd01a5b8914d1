"""ONNX functions of registered operators: what they mean to engines that do not know them."""

from __future__ import annotations

from onnx import AttributeProto, FunctionProto, NodeProto, defs, parser

from onemodel_graph.ir import Graph
from onemodel_graph.ir.graph import OPSET
from onemodel_kernels import ops
from onemodel_kernels.errors import UnsupportedError, UsageError

_FUNCTIONS: dict[tuple[str, str], FunctionProto] = {}


def register_function(text: str) -> None:
    """Give a registered operator a body of ONNX operators, which every saved ONNX model then carries.

    Other engines run the body; a session here runs the operator's own kernel.

    Args:
        text: A function in ONNX's text syntax, as ``<opset_import: ["": 20], domain:
            "com.example"> Name <beta: float = 1.0> (x) => (y) { ... }``.

    Raises:
        UsageError: the text is not a function; the operator is not registered or has a function
            already; inputs, outputs or attributes are not those of the operator's facts.
        UnsupportedError: the body uses an operator that its opset does not have.
    """
    try:
        function = parser.parse_function(text)
    except parser.ParseError as error:
        raise UsageError(f"register_function: this is not an ONNX function: {error}") from None
    shown = f"{function.domain}::{function.name}"
    spec = ops.find(function.name, function.domain)
    if spec is None or not ops.registered(function.name, function.domain):
        raise UsageError(
            f"register_function: {shown}: expected an operator that "
            "onemodel_kernels.extension.register made known; register it first"
        )
    if (function.domain, function.name) in _FUNCTIONS:
        raise UsageError(f"register_function: {shown} has a function already")
    attributes = {*function.attribute, *(entry.name for entry in function.attribute_proto)}
    for what, wanted, given in (
        ("inputs", [entry.name for entry in spec.inputs], list(function.input)),
        ("outputs", [entry.name for entry in spec.outputs], list(function.output)),
        ("attributes", sorted(spec.attributes), sorted(attributes)),
    ):
        if wanted != given:
            raise UsageError(
                f"register_function: {shown}: expected the {what} {wanted} of its facts, got {given}"
            )
    _check_body(function, shown)
    _FUNCTIONS[function.domain, function.name] = function


def _check_body(function: FunctionProto, shown: str) -> None:
    imports = {entry.domain: entry.version for entry in function.opset_import}
    if imports.get("") != OPSET:
        raise UnsupportedError(
            f'register_function: {shown}: expected opset_import "" : {OPSET}, got {imports.get("")}'
        )
    for node in function.node:
        known = ops.registered(node.op_type, node.domain)
        if not known and not defs.has(node.op_type, imports.get(node.domain, 1), node.domain):
            raise UnsupportedError(
                f"register_function: {shown}: the body uses {node.domain or 'ai.onnx'}::{node.op_type}, "
                f"which opset {imports.get(node.domain)} does not have"
            )


def functions_of(graph: Graph) -> list[FunctionProto]:
    """The functions that a graph's nodes, and the bodies of those, use; ordered by name."""
    found: dict[tuple[str, str], FunctionProto] = {}
    pending = [(node.domain, node.operator) for node in graph.walk()]
    while pending:
        key = pending.pop()
        function = _FUNCTIONS.get(key)
        if function is not None and key not in found:
            found[key] = function
            pending.extend(_operators(function.node))
    return [found[key] for key in sorted(found)]


def without_function(graph: Graph) -> list[str]:
    """The registered operators of a graph, bodies of functions included, that no other engine can run."""
    used = {(node.domain, node.operator) for node in graph.walk()}
    for function in functions_of(graph):
        used.update(_operators(function.node))
    return sorted(
        f"{domain}::{name}"
        for domain, name in used
        if ops.registered(name, domain) and (domain, name) not in _FUNCTIONS
    )


def _operators(nodes: object) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for node in nodes:  # type: ignore[attr-defined]
        assert isinstance(node, NodeProto)
        found.append((node.domain, node.op_type))
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                found.extend(_operators(attribute.g.node))
    return found
