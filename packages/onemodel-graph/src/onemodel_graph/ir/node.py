"""Nodes: one use of an operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir.value import Value


@dataclass(eq=False, slots=True)
class Node:
    """One use of an operator.

    Attributes:
        domain: ``""`` for ONNX's own operators.
        operator: The operator's name.
        inputs: In the operator's order; ``None`` where an optional input is absent.
        outputs: In the operator's order; ``None`` where an optional output is not asked for.
        attributes: int, float, str, tuples of those, ``Array`` for tensors, ``Graph`` for bodies;
            an element type is its dtype name.
        name: For messages; may be empty.
    """

    domain: str
    operator: str
    inputs: list[Value | None]
    outputs: list[Value | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def label(self) -> str:
        """How messages name the node: operator and name, or operator and first output."""
        shown = f"{self.domain}::{self.operator}" if self.domain else self.operator
        if self.name:
            return f"{shown} (node {self.name!r})"
        first = next((output.name for output in self.outputs if output is not None), None)
        return shown if first is None else f"{shown} (output {first!r})"

    def __repr__(self) -> str:
        outs = ", ".join("" if v is None else v.name for v in self.outputs)
        ins = ", ".join("" if v is None else v.name for v in self.inputs)
        return f"{outs} = {self.operator}({ins})"
