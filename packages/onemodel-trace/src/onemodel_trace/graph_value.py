"""What the tracer knows of one value of the graph that it writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onemodel_kernels import Array
    from onemodel_trace.tracer import Tracer

SymbolicShape = tuple[Any, ...]
"""One plain int or :class:`~onemodel_trace.extents.SymbolicExtent` for each axis."""


class GraphValue:
    """A value of the recorded graph: an input, a constant or an output of a node.

    It is what ``Tensor._trace`` holds, so a tensor that shares a value (an alias) shares this object.

    Attributes:
        tracer: The tracer that records it.
        dtype: Element type.
        shape: One plain int or symbolic extent for each axis.
        node: The node that writes it; None for an input or a constant.
        constant: The array of a constant, until the trace finishes.
        label: The name that was asked for, or a stem to make one from; empty where nobody asked.
    """

    __slots__ = ("constant", "dtype", "label", "node", "shape", "tracer")

    def __init__(
        self,
        tracer: Tracer,
        dtype: str,
        shape: SymbolicShape,
        label: str = "",
        constant: Array | None = None,
    ) -> None:
        self.tracer = tracer
        self.dtype = dtype
        self.shape = shape
        self.node: PendingNode | None = None
        self.constant = constant
        self.label = label

    @property
    def recorder(self) -> Tracer | None:
        """The tracer while it records, else None: the tensor is then an ordinary one."""
        return self.tracer if self.tracer.recording else None

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether no axis is symbolic."""
        return all(type(extent) is int for extent in self.shape)

    def __repr__(self) -> str:
        made = self.label if self.node is None else self.node.operator
        return f"GraphValue({made}, {self.dtype}, {self.shape})"


@dataclass(eq=False, slots=True)
class PendingNode:
    """A node that was recorded; it is written when an output turns out to need it."""

    domain: str
    operator: str
    inputs: list[GraphValue | None]
    attributes: dict[str, Any]
    outputs: list[GraphValue] = field(default_factory=list)
