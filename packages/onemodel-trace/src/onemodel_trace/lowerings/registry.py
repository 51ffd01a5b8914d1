"""The table of lowerings, put together from the family modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from onemodel_kernels.errors import UsageError
from onemodel_trace.graph_value import GraphValue

if TYPE_CHECKING:
    from onemodel_trace.graph_writer import GraphWriter

FAMILIES = (
    "elementwise",
    "division",
    "products",
    "convolution",
    "reductions",
    "normalization",
    "shapes",
    "indexing",
    "recurrent",
)


@dataclass(eq=False, slots=True)
class Recorded:
    """One operator call in terms of graph values.

    Attributes:
        operator: The record's name.
        inputs: One value for each operand, None where an optional one is absent.
        attributes: As recorded, with symbolic extents in place of sizes.
        outputs: How many outputs the call has.
    """

    operator: str
    inputs: list[GraphValue | None]
    attributes: dict[str, Any]
    outputs: int

    def value(self, index: int = 0) -> GraphValue:
        """An operand that must be there."""
        value = self.inputs[index]
        assert value is not None
        return value

    def optional(self, index: int) -> GraphValue | None:
        """An operand that may be absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes[attribute]

    def get(self, attribute: str, default: Any = None) -> Any:
        """An attribute, or a default."""
        return self.attributes.get(attribute, default)


Lowering = Callable[["GraphWriter", Recorded], Any]
"""Writes one recorded call; returns its output, or a tuple of its outputs."""

_TRAINING = (
    "a trace is an inference graph, and losses belong to training; return the model's outputs"
)
_GRADIENT = "gradients are not part of an inference graph"
_RANDOM = "a sample would be frozen into the graph; draw it before the trace and make it an input"

_REFUSED: dict[str, str] = {
    "CTCLoss": _TRAINING,
    "NllLoss": _TRAINING,
    "BatchNormTrain": "batch norm in training mode uses the batch's own statistics; call eval() first",
    "Dropout": "dropout in training mode would freeze one random mask; call eval() first",
    "NonZero": "the shape of the result depends on values",
    "Unique": "the shape of the result depends on values",
    "Compress": "the shape of the result depends on values",
}


_registered: dict[str, Lowering] = {}


def register(operator: str, lowering: Lowering) -> None:
    """Say how the tracer writes an operator of your own; without this it becomes a node of its domain.

    Args:
        operator: ``"domain::Name"``, as :func:`onemodel_tensors.extension.operator` records it.
        lowering: ``lowering(writer, call)`` writes nodes with ``writer.emit("Name", *values,
            **attributes)`` and returns the output, or a tuple of the outputs. The operands are
            ``call.value(i)``, the attributes ``call["name"]``.

    Raises:
        UsageError: the name has no domain, or has a lowering already.
    """
    if "::" not in operator:
        raise UsageError(
            f"register: expected 'domain::Name', got {operator!r}; operators without a domain are "
            "the library's own"
        )
    if operator in _registered:
        raise UsageError(f"register: {operator} has a lowering already")
    _registered[operator] = lowering


@cache
def _table() -> dict[str, Lowering]:
    found: dict[str, Lowering] = {}
    for family in FAMILIES:
        module = import_module(f"onemodel_trace.lowerings.{family}")
        found.update(module.LOWERINGS)
    return found


def find(operator: str) -> Lowering | None:
    """The lowering of an operator, or None when it is written as it is or not at all."""
    return _registered.get(operator) if "::" in operator else _table().get(operator)


def refusal(operator: str) -> str | None:
    """Why an operator cannot be in a graph, if that is known by its name."""
    if "::" in operator:
        return None
    if operator in _REFUSED:
        return _REFUSED[operator]
    if operator.startswith("Random"):
        return _RANDOM
    return _GRADIENT if operator.endswith("Grad") else None


def names() -> list[str]:
    """Every operator that has a lowering."""
    return sorted(_table())


def refused() -> dict[str, str]:
    """Every operator that is refused by name, with the reason."""
    return dict(_REFUSED)
