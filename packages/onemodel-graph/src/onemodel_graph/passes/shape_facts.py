"""What is certain of shapes before a run: extents of values, and the numbers of shape arithmetic.

An extent is a number, or stands for one: the name of an input's symbol, or an axis of a value. Equal
ones are equal in every run; nothing is taken from shapes that a file states of its inner values.
"""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_graph.ir import Node, Value
from onemodel_graph.passes.axis_orders import permutation
from onemodel_graph.passes.axis_steps import UNARY
from onemodel_graph.passes.base import Matcher
from onemodel_graph.planning.numbers import read

Extent = int | str | tuple[Value, int]
DEPTH = 32
"""Nodes in a row that are looked at; beyond them a value stands for itself."""
COMPUTED = frozenset({"Add", "Div", "Mul", "Pow", "Sub"})
LARGEST = 1 << 16
"""Entries of a vector of numbers at most."""


class ShapeFacts:
    """Looks up what is certain.

    Args:
        matcher: The graph.
        ranks: The number of axes of the values for which it is certain.
    """

    def __init__(self, matcher: Matcher, ranks: dict[Value, int]) -> None:
        self._matcher = matcher
        self._ranks = ranks
        self._inputs = set(matcher.graph.inputs)
        # Values that many others are made of are looked at once.
        self._extents: dict[Value, tuple[Extent, ...] | None] = {}
        self._numbers: dict[Value, tuple[Extent, ...] | None] = {}
        self._single: dict[Value, int | None] = {}

    def extents(self, value: Value | None, depth: int = DEPTH) -> tuple[Extent, ...] | None:
        """The shape of a value; ``None`` where the number of axes is not certain."""
        if value is None:
            return None
        if value not in self._extents:
            self._extents[value] = self._shape(value, depth)
        return self._extents[value]

    def _shape(self, value: Value, depth: int) -> tuple[Extent, ...] | None:
        rank = self._ranks.get(value)
        if rank is None:
            return None
        array = self._matcher.array(value)
        if array is not None:
            return tuple(array.shape)
        own: list[Extent] = [(value, axis) for axis in range(rank)]
        known: Sequence[Extent | None] | None = None
        if value in self._inputs:
            known = value.shape
        elif depth and (node := self._matcher.producer(value)) is not None:
            known = self._made(node, depth - 1)
        if known is None or len(known) != rank:
            return tuple(own)
        return tuple(
            mine if entry is None else entry for mine, entry in zip(own, known, strict=True)
        )

    def _made(self, node: Node, depth: int) -> Sequence[Extent | None] | None:
        """The shape of a node's first result, ``None`` for what does not follow."""
        name = node.operator
        if name == "Reshape":
            target = self.numbers(node.inputs[1], depth)
            return None if target is None else [None if e in (0, -1) else e for e in target]
        source = self.extents(node.inputs[0], depth) if node.inputs else None
        if source is None:
            return None
        perm = permutation(node)
        if perm is not None:
            return [source[axis] for axis in perm] if len(perm) == len(source) else None
        if name in UNARY:
            return source
        axes = self._axes(node, len(source), depth)
        if axes is None:
            return None
        if name in ("Slice", "Split"):
            return [None if axis in axes else entry for axis, entry in enumerate(source)]
        return [entry for axis, entry in enumerate(source) if axis not in axes]

    def _axes(self, node: Node, rank: int, depth: int) -> set[int] | None:
        """The axes that a Slice or a Split cuts, or that a Squeeze or a Gather takes away."""
        listed: tuple[Extent, ...] | None = None
        if node.operator in ("Slice", "Squeeze"):
            position = 3 if node.operator == "Slice" else 1
            if position < len(node.inputs):
                listed = self.numbers(node.inputs[position], depth)
        elif node.operator in ("Split", "Gather"):
            axis = node.attributes.get("axis", 0)
            indices = (
                self._ranks.get(node.inputs[1]) if node.inputs[1:] and node.inputs[1] else None
            )
            listed = (axis,) if node.operator == "Split" or indices == 0 else None
        if listed is None or not all(isinstance(axis, int) for axis in listed):
            return None
        found = {axis + rank if axis < 0 else axis for axis in listed if isinstance(axis, int)}
        return found if all(0 <= axis < rank for axis in found) else None

    def numbers(self, value: Value | None, depth: int = DEPTH) -> tuple[Extent, ...] | None:
        """The integers in a vector (or the one in a value without axes), where all are certain."""
        if value is None:
            return None
        if value not in self._numbers:
            self._numbers[value] = self._integers(value, depth)
        return self._numbers[value]

    def _integers(self, value: Value, depth: int) -> tuple[Extent, ...] | None:
        array = self._matcher.array(value)
        if array is not None:
            if array.dtype not in ("int64", "int32") or array.ndim > 1 or array.size > LARGEST:
                return None
            found = read(array)
            return tuple(found) if array.ndim else (found,)
        node = self._matcher.producer(value)
        if node is None or not depth or not node.inputs:
            return None
        if node.operator == "Shape":
            shape = self.extents(node.inputs[0], depth - 1)
            start, end = node.attributes.get("start", 0), node.attributes.get("end")
            return None if shape is None else shape[start:end]
        if node.operator == "Concat":
            parts = [self.numbers(part, depth - 1) for part in node.inputs]
            whole = [part for part in parts if part is not None]
            if len(whole) < len(parts) or sum(map(len, whole)) > LARGEST:
                return None
            return tuple(extent for part in whole for extent in part)
        source = self.numbers(node.inputs[0], depth - 1)
        if node.operator in ("Squeeze", "Unsqueeze"):
            return source if source is not None and len(source) == 1 else None
        if source is None or node.operator not in ("Gather", "Slice"):
            return None
        given = [self.numbers(operand, depth - 1) for operand in node.inputs[1:]]
        if not given or not all(p is not None and len(p) == 1 for p in given):
            return None
        operands = [p[0] for p in given if p is not None]
        if not all(isinstance(operand, int) for operand in operands):
            return None
        at = [operand for operand in operands if isinstance(operand, int)]
        if node.operator == "Gather":
            return (source[at[0]],) if -len(source) <= at[0] < len(source) else None
        if len(at) < 2 or any(axis != 0 for axis in at[2:3]) or any(s != 1 for s in at[3:]):
            return None
        return source[slice(at[0], at[1])]

    def single(self, value: Value | None, depth: int = DEPTH) -> int | None:
        """How many axes a value of certainly one element has at most."""
        if value is None or not depth:
            return None
        if value not in self._single:
            self._single[value] = self._one(value, depth)
        return self._single[value]

    def _one(self, value: Value, depth: int) -> int | None:
        extents = self.extents(value, depth)
        if extents is not None:
            return len(extents) if all(extent == 1 for extent in extents) else None
        numbers = self.numbers(value, depth)
        if numbers is not None:
            return 1 if len(numbers) == 1 else None
        node = self._matcher.producer(value)
        if node is None or (node.operator not in UNARY and node.operator not in COMPUTED):
            return None
        taken = node.inputs[: 1 if node.operator in UNARY else 2]
        ranks = [self.single(part, depth - 1) for part in taken]
        known = [rank for rank in ranks if rank is not None]
        return max(known) if len(known) == len(ranks) else None
