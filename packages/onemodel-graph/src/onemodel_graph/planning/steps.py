"""A graph made ready for planning, once per session: what each node is, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import SIZES, Known
from onemodel_kernels import Kernel, ops
from onemodel_kernels.errors import AttributeValueError, OneModelError, UnsupportedError
from onemodel_kernels.ops import OpSpec

Handler = Callable[[Planner, "Step", Sequence[Known]], "Sequence[Known] | Expansion"]
HANDLERS: dict[tuple[str, str], Handler] = {}
"""Operators that the planner itself carries out: constants, sequences, control flow."""


def handler(operator: str, domain: str = "") -> Callable[[Handler], Handler]:
    """Registers a handler for an operator."""

    def register(function: Handler) -> Handler:
        HANDLERS[domain, operator] = function
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
            hint = f": import the package that registers it, if {node.domain!r} is one of yours"
            missing.append(node.label + (hint if node.domain else ""))
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
        strange = None if spec is None else _strange_element_type(node, spec)
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
            _count(node, spec)
            positions = {position for position, _ in spec.operands}
            tensors = tuple(p for p in tensors if p not in positions)
            operands = tuple(o for o in spec.operands if o[0] < len(node.inputs))
        step = Step(node, spec, handle, tensors, operands)
        for name, body in node.attributes.items():
            if isinstance(body, Graph):
                step.bodies[name] = _prepare(body, missing)
        steps.append(step)
    return Prepared(graph, steps)


def _strange_element_type(node: Node, spec: OpSpec) -> str | None:
    """The first element type among the attributes that arrays do not hold."""
    for name, attribute in spec.attributes.items():
        value = node.attributes.get(name)
        if attribute.type == "dtype" and isinstance(value, str) and value not in SIZES:
            return value
    return None


def _count(node: Node, spec: OpSpec) -> None:
    """Checks the number of inputs and that required ones are there."""
    variadic = bool(spec.inputs) and spec.inputs[-1].variadic
    if len(node.inputs) > len(spec.inputs) and not variadic:
        raise AttributeValueError(
            f"{node.label}: it takes at most {len(spec.inputs)} inputs, {len(node.inputs)} are given"
        )
    for position, slot in enumerate(spec.inputs):
        given = position < len(node.inputs) and node.inputs[position] is not None
        if not given and not slot.optional and not slot.variadic:
            raise AttributeValueError(f"{node.label}: the input {slot.name!r} is required")
