"""Engines that take turns, each in its own process."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ENGINES = ("onnxruntime", "exact", "fast")
TURN = 0.02
"""Seconds of work in one turn: long against the wake-up of a parked pool."""
REST = 0.07
"""Seconds between turns, in which the workers of the engine before stop to spin: those of ONNX Runtime
take a core for nearly 50 ms after a run."""
FEWEST = 9
"""Turns of each engine at least."""


class Contender:
    """One engine on one file in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._line()

    def seconds(self, count: int) -> float:
        """The mean seconds of ``count`` runs in a row."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the engine's process ended: {' '.join(self.process.args[1:])}")
        return line


@contextmanager
def contender(engine: str, file: Path, inputs: Path, threads: int) -> Iterator[Contender]:
    """Start an engine; it ends with the context."""
    script = Path(__file__).with_name("contender.py")
    command = [sys.executable, str(script), engine, str(file), str(inputs), str(threads)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Contender(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def medians(file: Path, inputs: Path, threads: int, seconds: float) -> list[float]:
    """The median seconds of one run of each engine of ENGINES, which take turns for ``seconds``."""
    with ExitStack() as stack:
        contenders = [
            stack.enter_context(contender(engine, file, inputs, threads)) for engine in ENGINES
        ]
        counts = [max(1, round(TURN / max(c.seconds(3), 1e-7))) for c in contenders]
        shuffle = random.Random(0)
        times: list[list[float]] = [[] for _ in contenders]
        end = time.perf_counter() + seconds
        order = list(range(len(contenders)))
        while time.perf_counter() < end or len(times[0]) < FEWEST:
            # A new order each round, so that no engine always follows the same one.
            shuffle.shuffle(order)
            for mine in order:
                time.sleep(REST)
                times[mine].append(contenders[mine].seconds(counts[mine]))
        return [statistics.median(taken) for taken in times]
