"""The program of a segment, from its kernel calls: what is needed, joined and where it lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.slot import Call, Slot, nbytes
from onemodel_kernels import Outline, Program
from onemodel_kernels.errors import MemoryLimitError


def build(
    calls: Sequence[Call], feeds: Sequence[Slot], results: Sequence[Slot]
) -> tuple[Program, list[str]]:
    """A program that computes ``results`` from ``feeds``, and the label of each of its calls."""
    entries = Entries(feeds)
    for call in calls:
        entries.call(call)
    outline = Outline(len(feeds), entries.listed, [entries.place(slot) for slot in results])
    try:
        return outline.plan([(slot.dtype, slot.shape) for slot in feeds])
    except (MemoryLimitError, OverflowError) as error:
        largest = max(entries.index, key=nbytes)
        maker = next((call.label for call in calls if largest.root in call.outputs), "an input")
        raise MemoryLimitError(
            f"{maker}: {largest} needs more memory than there is; {error}"
        ) from None


class Entries:
    """Values and calls as an :class:`onemodel_kernels.Outline` takes them.

    Args:
        feeds: The values that come first.

    Attributes:
        listed: The entries so far.
        index: The index of each value that has one.
    """

    def __init__(self, feeds: Sequence[Slot]) -> None:
        self.listed: list[tuple[Any, ...]] = []
        self.index: dict[Slot, int] = {slot: i for i, slot in enumerate(feeds)}
        self.count = len(feeds)

    def add(self, entry: tuple[Any, ...], values: int = 1) -> int:
        """Adds an entry; the index of its first value."""
        self.listed.append(entry)
        self.count += values
        return self.count - values

    def place(self, slot: Slot) -> int:
        """The index of a value; constants and views are added when they are first needed."""
        found = self.index.get(slot)
        if found is None:
            if slot.array is not None:
                found = self.add(("constant", slot.array))
            else:
                found = self.add(("view", self.index[slot.root], slot.shape, slot.offset))
            self.index[slot] = found
        return found

    def call(self, call: Call) -> None:
        """Adds a call and its outputs."""
        inputs = [-1 if slot is None else self.place(slot) for slot in call.inputs]
        first = self.add(
            ("call", call.kernel, inputs, len(call.outputs), call.label), len(call.outputs)
        )
        for position, slot in enumerate(call.outputs):
            self.index[slot] = first + position
