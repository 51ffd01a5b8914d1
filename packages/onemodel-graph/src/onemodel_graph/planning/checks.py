"""What a node must look like before it is planned: counts of inputs, attributes and their types."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onemodel_graph.ir import Graph, Node
from onemodel_graph.planning.slot import SIZES
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_kernels.ops import Attribute, InputSpec, OpSpec
from onemodel_kernels.ops.narrow import HELD

_NUMBERS = {"int": int, "float": (int, float), "string": str, "dtype": str, "type": str}
_LISTS = {"ints": int, "floats": (int, float), "strings": str}
_SHOWN = {
    "int": "an integer", "float": "a number", "string": "a text", "dtype": "an element type",
    "type": "a type", "ints": "a list of integers", "floats": "a list of numbers",
    "strings": "a list of texts", "tensor": "a tensor", "graph": "a graph",
}  # fmt: skip
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What the facts of an operator raise for values whose form they do not foresee."""
LARGEST = 2**63 - 1
"""The greatest integer that ONNX holds; the least one is its complement."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and attributes of an operator that the planner itself carries out."""

    inputs: tuple[InputSpec, ...]
    attributes: Mapping[str, Attribute]


@contextlib.contextmanager
def reading(node: Node) -> Iterator[None]:
    """Lets what looks at a node that was not checked yet fail by its name."""
    try:
        yield
    except OneModelError:
        raise
    except MALFORMED as error:
        raise AttributeValueError(
            f"{node.label}: its inputs or attributes have a form that it does not take "
            f"({type(error).__name__}: {error})"
        ) from error


def check_node(node: Node, facts: OpSpec | Signature) -> None:
    """Checks the attributes' types and the number of inputs.

    Raises:
        AttributeValueError: naming the node, what was expected and what came.
    """
    for name, attribute in facts.attributes.items():
        value = node.attributes.get(name)
        if value is None:
            if attribute.required:
                raise AttributeValueError(f"{node.label}: the attribute {name!r} is required")
        elif not _is(value, attribute.type):
            raise AttributeValueError(
                f"{node.label}: expected {name!r} to be {_SHOWN[attribute.type]}, got {_short(value)}"
            )
    if not node.outputs:
        raise AttributeValueError(f"{node.label}: expected at least one output, got none")
    _count(node, facts.inputs)


def _is(value: Any, kind: str) -> bool:
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and _in_range(value)  # type: ignore[arg-type]
    if kind in _LISTS:
        entry = _LISTS[kind]
        return isinstance(value, tuple | list) and all(
            isinstance(part, entry) and _in_range(part)  # type: ignore[arg-type]
            for part in value
        )
    return isinstance(value, Array if kind == "tensor" else Graph)


def _in_range(value: Any) -> bool:
    return not isinstance(value, int) or -LARGEST - 1 <= value <= LARGEST


def _short(value: Any) -> str:
    text = type(value).__name__ if isinstance(value, Array | Graph) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _count(node: Node, inputs: tuple[InputSpec, ...]) -> None:
    variadic = bool(inputs) and inputs[-1].variadic
    if len(node.inputs) > len(inputs) and not variadic:
        raise AttributeValueError(
            f"{node.label}: it takes at most {len(inputs)} inputs, {len(node.inputs)} are given"
        )
    for position, slot in enumerate(inputs):
        given = position < len(node.inputs) and node.inputs[position] is not None
        if not given and not slot.optional and not slot.variadic:
            raise AttributeValueError(f"{node.label}: the input {slot.name!r} is required")


def strange_element_type(node: Node, spec: OpSpec) -> str | None:
    """The first element type among the attributes that arrays do not hold."""
    for name, attribute in spec.attributes.items():
        value = node.attributes.get(name)
        if attribute.type != "dtype" or not isinstance(value, str) or value in SIZES:
            continue
        if value not in HELD or spec.name not in ("NarrowCast", "QuantizeLinear"):
            return value
    return None
