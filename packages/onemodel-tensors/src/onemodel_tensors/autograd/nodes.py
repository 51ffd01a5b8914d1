"""Where gradients go: the leaves of the graph, and the outputs of records that have several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from onemodel_tensors.record import BackwardRecord

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor

__all__ = ["Leaf", "Node", "Output"]

Hook = Callable[["Tensor"], Any]


class Leaf:
    """The autograd node of a tensor that the user made with ``requires_grad``: gradients are summed up here.

    Attributes:
        grad: the sum of the gradients of all backward passes since it was last cleared, or ``None``.
        hooks: functions called with each gradient before it is added.
        after: functions called, without an argument, after it was added.
    """

    __slots__ = ("__weakref__", "after", "grad", "hooks")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.hooks: dict[int, Hook] | None = None
        self.after: dict[int, Callable[[], Any]] | None = None


class Output:
    """One output of a record that has several: ``record`` and its position."""

    __slots__ = ("index", "record")

    def __init__(self, record: BackwardRecord, index: int) -> None:
        self.record = record
        self.index = index


Node: TypeAlias = Leaf | BackwardRecord | Output
