"""Where the values of a segment live: arena offsets from lifetimes, in place where kernels allow
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.fusion import fuse
from onemodel_graph.planning.slot import Call, Slot, count, nbytes
from onemodel_kernels import Program
from onemodel_kernels.errors import MemoryLimitError

ALIGNMENT = 64
"""Bytes to which every value is aligned: one cache line, one AVX-512 register."""


def reachable(calls: Sequence[Call], results: Sequence[Slot]) -> list[Call]:
    """The calls that a result depends on, in order."""
    wanted = {slot.root for slot in results}
    kept = []
    for call in reversed(calls):
        if any(slot in wanted for slot in call.outputs):
            kept.append(call)
            wanted.update(slot.root for slot in call.inputs if slot is not None)
    kept.reverse()
    return kept


class _Arena:
    """Best-fit allocation over a list of free regions that is kept sorted and merged."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []
        self.size = 0

    def take(self, size: int) -> int:
        best = -1
        for index, (_, room) in enumerate(self.free):
            if room >= size and (best < 0 or room < self.free[best][1]):
                best = index
        if best < 0:
            if self.free and sum(self.free[-1]) == self.size:
                offset, _ = self.free.pop()
            else:
                offset = self.size
            self.size = offset + size
            return offset
        offset, room = self.free[best]
        if room == size:
            del self.free[best]
        else:
            self.free[best] = (offset + size, room - size)
        return offset

    def give(self, offset: int, size: int) -> None:
        low = 0
        while low < len(self.free) and self.free[low][0] < offset:
            low += 1
        self.free.insert(low, (offset, size))
        if low + 1 < len(self.free) and offset + size == self.free[low + 1][0]:
            self.free[low] = (offset, size + self.free.pop(low + 1)[1])
        if low and sum(self.free[low - 1]) == offset:
            start, before = self.free[low - 1]
            self.free[low - 1] = (start, before + self.free.pop(low)[1])


def _padded(size: int) -> int:
    return max(-(-size // ALIGNMENT), 1) * ALIGNMENT


def _offsets(calls: Sequence[Call], kept: set[Slot]) -> tuple[dict[Slot, int], int]:
    """Arena offsets of the outputs of calls that are not in ``kept`` (those live elsewhere)."""
    last: dict[Slot, int] = {}
    for index, call in enumerate(calls):
        for slot in call.inputs:
            if slot is not None:
                last[slot.root] = index
        for slot in call.outputs:
            last.setdefault(slot, index)
    arena = _Arena()
    offsets: dict[Slot, int] = {}
    sizes: dict[Slot, int] = {}
    for index, call in enumerate(calls):
        taken: set[Slot] = set()
        for position, slot in enumerate(call.outputs):
            if slot in kept:
                continue
            source = _in_place(call, position, index, last, offsets)
            if source is not None and source not in taken:
                taken.add(source)
                offsets[slot], sizes[slot] = offsets[source], sizes[source]
            else:
                sizes[slot] = _padded(nbytes(slot))
                offsets[slot] = arena.take(sizes[slot])
        ended = {s.root for s in call.inputs if s is not None} | set(call.outputs)
        for slot in sorted((s for s in ended if s in offsets), key=offsets.__getitem__):
            if last[slot] == index and slot not in taken:
                arena.give(offsets[slot], sizes[slot])
    return offsets, arena.size


def _in_place(
    call: Call, position: int, index: int, last: dict[Slot, int], offsets: dict[Slot, int]
) -> Slot | None:
    """The input whose memory an output may take over: read here for the last time, and only so."""
    pairs = call.kernel.in_place
    if not pairs:
        return None
    target = call.outputs[position]
    for source, output in pairs:
        slot = call.inputs[source] if output == position and source < len(call.inputs) else None
        if slot is None or slot.array is not None:
            continue
        root = slot.root
        if root not in offsets or last[root] != index:
            continue
        fits = slot.dtype == target.dtype and count(slot.shape) == count(target.shape)
        if not fits or count(root.shape) != count(slot.shape):
            continue
        readers = [i for i, s in enumerate(call.inputs) if s is not None and s.root is root]
        if all((i, position) in pairs and call.inputs[i].shape == slot.shape for i in readers):  # type: ignore[union-attr]
            return root
    return None


def build(
    calls: Sequence[Call], feeds: Sequence[Slot], results: Sequence[Slot]
) -> tuple[Program, list[str]]:
    """A program that computes ``results`` from ``feeds``, and the label of each of its calls."""
    calls = fuse(reachable(calls, results), results)
    made = {slot for call in calls for slot in call.outputs}
    shares: dict[Slot, int] = {}
    for slot in dict.fromkeys(results):
        shares[slot.root] = shares.get(slot.root, 0) + 1
    # A value that several results show stays in the arena: the program then copies each result.
    outputs = {root for root, n in shares.items() if n == 1 and root in made}
    offsets, size = _offsets(calls, outputs | (set(shares) & made))
    for root in shares:
        if root in made and root not in outputs:
            offsets[root] = size
            size += _padded(nbytes(root))
    values: list[tuple[Any, ...]] = []
    index: dict[Slot, int] = {}

    def place(slot: Slot) -> int:
        found = index.get(slot)
        if found is not None:
            return found
        if slot.array is not None:
            entry: tuple[Any, ...] = ("constant", slot.array)
        elif slot.base is not None:
            entry = ("view", place(slot.base), slot.shape, slot.strides, slot.offset)
        elif slot in outputs:
            entry = ("output", slot.dtype, slot.shape)
        else:
            entry = ("arena", slot.dtype, slot.shape, offsets[slot])
        index[slot] = len(values)
        values.append(entry)
        return index[slot]

    for slot in feeds:
        index[slot] = len(values)
        values.append(("input", slot.dtype, slot.shape))
    nodes = [
        (
            call.kernel,
            [-1 if slot is None else place(slot) for slot in call.inputs],
            [place(slot) for slot in call.outputs],
        )
        for call in calls
    ]
    try:
        program = Program(values, nodes, [place(slot) for slot in results], size)
    except (MemoryLimitError, OverflowError) as error:
        largest = max(index, key=nbytes)
        maker = next((call.label for call in calls if largest.root in call.outputs), "an input")
        raise MemoryLimitError(
            f"{maker}: {largest} needs more memory than there is; {error}"
        ) from None
    return program, [call.label for call in calls]
