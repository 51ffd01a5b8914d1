"""What a call costs beside its arithmetic: additions of four elements, eager and with gradients."""

from __future__ import annotations

import statistics
import timeit
from dataclasses import dataclass

import numpy as np

import onemodel_tensors as om

CALLS = 2000
"""Calls of a turn, of which the clock is read once."""
TURNS = 25


@dataclass(frozen=True)
class SmallCost:
    """Median seconds of a call, of numpy's addition of the same arrays, and how many it may take."""

    taken: float
    peer: float
    most: float


def small_costs() -> dict[str, SmallCost]:
    """The calls in turns with numpy's."""
    array = np.arange(4, dtype=np.float32)
    given = {
        "array": array,
        "a": om.from_numpy(array),
        "b": om.from_numpy(array),
        "leaf": om.from_numpy(array).requires_grad_(True),
    }
    peer = timeit.Timer("array + array", globals=given)
    found: dict[str, SmallCost] = {}
    for name, statement, most in (
        ("add of 4", "a + b", 1.0e-6),
        ("add of 4 with gradients", "leaf + b", 1.6e-6),
    ):
        call = timeit.Timer(statement, globals=given)
        turns = [(call.timeit(CALLS), peer.timeit(CALLS)) for _ in range(TURNS)]
        taken, theirs = (statistics.median(times) / CALLS for times in zip(*turns, strict=True))
        found[name] = SmallCost(taken, theirs, most)
    return found
