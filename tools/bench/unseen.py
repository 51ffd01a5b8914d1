"""What the first run of an unseen input shape costs: the plan of that shape beside the run itself."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from onemodel_graph import Session
from workloads import WORKLOADS, Workload

SYMBOLIC = {
    "crnn": ("x", 3, range(290, 350, 4)),
    "encoder6": ("ids", 1, range(100, 160, 4)),
}
"""The symbolic axis of a workload and its sizes."""
REPEATS = 5


@dataclass(frozen=True)
class UnseenCost:
    """Median seconds of the first run of a shape and of the runs after it."""

    first: float
    repeated: float


def symbolic() -> list[Workload]:
    """The workloads, with an axis that a session may see in any size."""
    chosen = [workload for workload in WORKLOADS if workload.name in SYMBOLIC]
    return [
        replace(workload, axes={SYMBOLIC[workload.name][0]: {SYMBOLIC[workload.name][1]: "size"}})
        for workload in chosen
    ]


def unseen_cost(workload: Workload, file: Path, threads: int) -> UnseenCost:
    """Runs an exact session on one size after the other."""
    name, axis, sizes = SYMBOLIC[workload.name]
    session = Session(file, mode="exact", threads=threads)
    given = workload.inputs()[name]
    session.run({name: given})
    firsts, repeats = [], []
    for size in sizes:
        shape = (*given.shape[:axis], size, *given.shape[axis + 1 :])
        feeds = {name: np.resize(given, shape)}
        taken = []
        for _ in range(1 + REPEATS):
            start = time.perf_counter()
            session.run(feeds)
            taken.append(time.perf_counter() - start)
        firsts.append(taken[0])
        repeats.append(statistics.median(taken[1:]))
    return UnseenCost(statistics.median(firsts), statistics.median(repeats))
