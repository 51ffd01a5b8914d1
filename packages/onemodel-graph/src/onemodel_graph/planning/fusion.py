"""Products and convolutions together with the elementwise calls that follow them.

The kernel decides what it computes in its tiles; its bits are those of the calls one after the
other, so both arithmetic modes fuse.
"""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_graph.planning.slot import Call, Slot, contiguous_strides, count
from onemodel_kernels import Kernel


def fuse(calls: Sequence[Call], results: Sequence[Slot]) -> list[Call]:
    """The calls, with those that only follow another one made part of it.

    Args:
        calls: In order; each is needed.
        results: The slots that the plan returns.
    """
    uses: dict[Slot, int] = {}
    for slot in results:
        uses[slot.root] = uses.get(slot.root, 0) + 1
    for call in calls:
        for given in call.inputs:
            if given is not None:
                uses[given.root] = uses.get(given.root, 0) + 1
    kept: list[Call | None] = []
    makers: dict[Slot, int] = {}
    for call in calls:
        merged = _merged(call, kept, makers, uses)
        if merged is None:
            merged = call
        for slot in merged.outputs:
            makers[slot] = len(kept)
        kept.append(merged)
    return [call for call in kept if call is not None]


def _merged(
    call: Call, kept: list[Call | None], makers: dict[Slot, int], uses: dict[Slot, int]
) -> Call | None:
    """The call as part of the one that made an input of it, which is taken out of ``kept``."""
    if len(call.outputs) != 1 or call.outputs[0].dtype != "float32":
        return None
    candidates = []
    for position, slot in enumerate(call.inputs):
        if slot is None or slot.array is not None or not _whole(slot):
            continue
        maker = makers.get(slot.root)
        if maker is not None and uses[slot.root] == 1 and slot.shape == call.outputs[0].shape:
            candidates.append((maker, position))
    # What was made last is joined, so that the other inputs are there before it runs.
    for maker, position in sorted(candidates, reverse=True):
        before = kept[maker]
        if before is None or len(before.outputs) != 1:
            continue
        kernel, others = _fused(before, call, position)
        if kernel is not None:
            kept[maker] = None
            label = f"{before.label} + {call.label.partition(' ')[0]}"
            return Call(kernel, [*before.inputs, *others], call.outputs, label)
    return None


def _fused(before: Call, call: Call, position: int) -> tuple[Kernel | None, list[Slot]]:
    """The kernel of both, and the inputs that it takes beside those of the first."""
    shape = call.outputs[0].shape
    others = [
        slot
        for i, slot in enumerate(call.inputs)
        if i != position and slot is not None and slot.array is None
    ]
    if any(slot.shape != shape or not _dense(slot) for slot in others):
        return None, []
    constants = [None if slot is None else slot.array for slot in call.inputs]
    own = before.outputs[0].shape
    kernel = before.kernel.fuse(len(before.inputs), own, call.kernel, position, constants, shape)
    return kernel, others


def _whole(slot: Slot) -> bool:
    """Whether a slot shows all elements of its memory in order."""
    return slot.base is None or (
        slot.offset == 0 and _dense(slot) and count(slot.shape) == count(slot.base.shape)
    )


def _dense(slot: Slot) -> bool:
    return slot.base is None or slot.strides == contiguous_strides(slot.shape)
