"""Values: what nodes read and write."""

from __future__ import annotations

from dataclasses import dataclass

Dimension = int | str | None
"""A static size, the name of a symbolic one, or ``None`` when nothing is known of it."""


@dataclass(eq=False, slots=True)
class Value:
    """One tensor of a graph, written by one node or given as input or initializer.

    Values are compared by identity: two values of one name are two values.

    Attributes:
        name: Unique in its graph.
        dtype: numpy's name of the element type, or ``None`` when it is not known. ``"string"`` and
            ``"sequence"``, ``"optional"`` stand for values that are not numeric tensors.
        shape: One entry for each axis, or ``None`` when not even the rank is known.
    """

    name: str
    dtype: str | None = None
    shape: tuple[Dimension, ...] | None = None

    def __repr__(self) -> str:
        if self.shape is None:
            shown = "?"
        else:
            shown = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"{self.name}: {self.dtype or '?'}[{shown}]"
