"""A graph made ready for planning, once per session: what each node is, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.planning.checks import Signature, check_node, strange_element_type
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Known
from onemodel_kernels import Kernel, ops
from onemodel_kernels.errors import AttributeValueError, OneModelError, UnsupportedError
from onemodel_kernels.ops import Attribute, OpSpec
from onemodel_kernels.ops.spec import slots

TEXT = "onemodel.text"
"""The domain of operators on texts (:mod:`onemodel_graph.texts`)."""
Handler = Callable[[Planner, "Step", Sequence[Known]], "Sequence[Known] | Expansion"]
HANDLERS: dict[tuple[str, str], Handler] = {}
"""Operators that the planner itself carries out: constants, sequences, control flow."""
SIGNATURES: dict[tuple[str, str], Signature] = {}
"""Their inputs and attributes."""


HINTS = {
    (
        "onemodel.text",
        "RegexFullMatch",
    ): "there is no matcher here whose time is bounded for every pattern",
    (
        "ai.onnx.ml",
        "ZipMap",
    ): "it makes an output of the model only; or convert with options={'zipmap': False}",
}
"""What to do about operators that are met and have no place here."""


def handler(
    operator: str, inputs: str = "", attributes: str = "", domain: str = ""
) -> Callable[[Handler], Handler]:
    """Registers a handler for an operator.

    Args:
        operator: Its name.
        inputs: Its inputs in one line; ``?`` marks an optional one, ``*`` a variadic one.
        attributes: ``name:type`` of each attribute; ``!`` marks one that must be given.
        domain: Its domain.
    """
    found = {}
    for word in attributes.split():
        name, _, kind = word.partition(":")
        found[name] = Attribute(kind.rstrip("!"), required=kind.endswith("!"))  # type: ignore[arg-type]

    def register(function: Handler) -> Handler:
        HANDLERS[domain, operator] = function
        SIGNATURES[domain, operator] = Signature(slots(inputs), found)
        return function

    return register


@dataclass(eq=False, slots=True)
class Step:
    """One node with its spec looked up.

    Attributes:
        node: The node.
        spec: Its spec, or ``None`` when a handler carries it out.
        handle: Its handler, or ``None``.
        tensors: Positions of the inputs that are passed as tensors.
        operands: (position, name) of the inputs that are passed as attributes.
        bodies: Its subgraphs made ready, by attribute.
        state: What a handler keeps between plans.
    """

    node: Node
    spec: OpSpec | None
    handle: Handler | None
    tensors: tuple[int, ...]
    operands: tuple[tuple[int, str], ...]
    bodies: dict[str, Prepared] = field(default_factory=dict)
    state: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Alias:
    """Outputs of an inlined body under the names of the node that it stands for."""

    pairs: list[tuple[Value, Value]]


@dataclass(eq=False, slots=True)
class Expansion:
    """What a handler returns for a node that is planned as other steps in its place."""

    steps: list[Step | Alias]


@dataclass(eq=False, slots=True)
class Prepared:
    """A graph with its steps."""

    graph: Graph
    steps: list[Step]


def prepare(graph: Graph) -> Prepared:
    """Looks up every node.

    Raises:
        UnsupportedError: listing every node whose operator is not supported.
        AttributeValueError: for a node whose attributes are wrong.
    """
    missing: list[str] = []
    prepared = _prepare(graph, missing)
    if missing:
        listed = "\n  ".join(missing)
        raise UnsupportedError(
            f"{graph.name}: {len(missing)} node(s) use operators or element types that are not supported:\n  {listed}"
        )
    return prepared


def _prepare(graph: Graph, missing: list[str]) -> Prepared:
    native = frozenset(Kernel.names())
    steps = []
    for node in graph.nodes:
        handle = HANDLERS.get((node.domain, node.operator))
        spec = None if handle is not None else ops.find(node.operator, node.domain)
        if spec is None and handle is None:
            hint = HINTS.get((node.domain, node.operator))
            if hint is None and node.domain == TEXT:
                hint = "it has no form for strings, which are passed on, compared and encoded"
            if hint is None and node.domain:
                hint = f"import the package that registers it, if {node.domain!r} is one of yours"
            missing.append(node.label if hint is None else f"{node.label}: {hint}")
            continue
        lacks = (
            spec is not None
            and not spec.in_shape
            and spec.kernel is not None
            and spec.kernel not in native
        )
        if spec is not None and lacks:
            missing.append(f"{node.label}: there is no native kernel {spec.kernel!r}")
            continue
        strange = None if spec is None else strange_element_type(node, spec)
        if strange is not None:
            missing.append(f"{node.label}: elements of type {strange} are not supported")
            continue
        tensors: tuple[int, ...] = tuple(range(len(node.inputs)))
        operands: tuple[tuple[int, str], ...] = ()
        if spec is not None:
            try:
                spec.check(node.attributes)
            except OneModelError as error:
                raise AttributeValueError(f"{node.label}: {error}") from None
            check_node(node, spec)
            positions = {position for position, _ in spec.operands}
            tensors = tuple(p for p in tensors if p not in positions)
            operands = tuple(o for o in spec.operands if o[0] < len(node.inputs))
        else:
            check_node(node, SIGNATURES[node.domain, node.operator])
        step = Step(node, spec, handle, tensors, operands)
        for name, body in node.attributes.items():
            if isinstance(body, Graph):
                step.bodies[name] = _prepare(body, missing)
        steps.append(step)
    return Prepared(graph, steps)
