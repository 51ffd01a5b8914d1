"""Feeds changed models to the importer, the reader of format v1, the planner and the kernels.

    python fuzz.py [--count 100000] [--start 0] [--seconds 10] [--megabytes 4096] [--keep FOLDER]

The models are those of ONNX's backend suite, and the same in format v1. Each is changed as its seed
says and then loaded, prepared and run in a worker process with limits of time and memory. A model
may run or be refused by an error of the library; anything else is reported, with its seed:
another exception, a crash, a hang. The exit status is 1 if there was any.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance")]

import suite  # noqa: E402
from worker import changed  # noqa: E402

from onemodel_graph.format.v1 import to_bytes  # noqa: E402
from onemodel_graph.onnx_io import import_model  # noqa: E402
from onemodel_kernels.errors import OneModelError  # noqa: E402

LARGEST = 1 << 15
"""Bytes of the largest model that is changed."""
SHOWN = 2000
"""Inputs after which the counts so far are printed."""
BATCH = 200
PATIENCE = 10
"""How many times longer than the processor's time of an input its time may be: others run too."""


def corpus(every: int = 1) -> list[bytes]:
    """The suite's models that are small, and those that can be read also in format v1."""
    found = []
    for case in suite.load()[::every]:
        if len(case.model) > LARGEST:
            continue
        found.append(case.model)
        try:
            found.append(to_bytes(import_model(case.model)))
        except OneModelError:
            continue
    return found


class Worker:
    """One process with its limits."""

    def __init__(self, models: Path, megabytes: int, seconds: float) -> None:
        limits = [str(megabytes << 20), str(seconds)]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(models), *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.buffer = b""

    def send(self, first: int, last: int) -> None:
        """Asks for the seeds ``first`` to ``last - 1``."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{first} {last}\n".encode())
            self.process.stdin.flush()

    def line(self, seconds: float) -> str | None:
        """The next line, ``""`` when the process has ended, ``None`` when it takes too long."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = max(end - time.monotonic(), 0.0)
            ready, _, _ = select.select([self.process.stdout], [], [], left)
            if not ready:
                return None
            part = self.process.stdout.read1(1 << 16)
            if not part:
                return ""
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def stop(self) -> int:
        """Ends the process; its exit status."""
        self.process.kill()
        with self.process as process:
            return process.wait()


def outcomes(models: list[bytes], start: int, count: int, seconds: float, megabytes: int):
    """(seed, outcome) of each input."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        path.write_bytes(pickle.dumps(models))
        worker = Worker(path, megabytes, seconds)
        seed, end = start, start + count
        while seed < end:
            last = min(seed + BATCH, end)
            worker.send(seed, last)
            while seed < last:
                # The first line of a new process waits for its imports too.
                patience = PATIENCE * seconds
                line = worker.line(patience + 20 if seed == start else patience)
                if line is None or line == "":
                    status = worker.stop()
                    hung = line is None or status == -signal.SIGPROF
                    yield seed, f"hung {seconds} s" if hung else f"crashed {status}"
                    seed += 1
                    worker = Worker(path, megabytes, seconds)
                    break
                word, _, rest = line.partition(" ")
                if word == "done":
                    number, _, outcome = rest.partition(" ")
                    yield int(number), outcome
                    seed = int(number) + 1
        worker.stop()


def summary(counts: collections.Counter[str], seconds: float) -> str:
    """How many inputs came to what."""
    listed = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    return f"{sum(counts.values())} inputs in {seconds:.0f} s: {listed}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of one input")
    parser.add_argument("--megabytes", type=int, default=4096, help="address space of a worker")
    parser.add_argument("--keep", type=Path, help="where to write the inputs that are reported")
    options = parser.parse_args()
    models = corpus()
    print(f"{len(models)} models", flush=True)
    counts: collections.Counter[str] = collections.Counter()
    bad = 0
    begin = time.monotonic()
    for seed, outcome in outcomes(
        models, options.start, options.count, options.seconds, options.megabytes
    ):
        counts[outcome.split(" ")[0]] += 1
        if outcome not in ("ran", "loaded", "refused"):
            bad += 1
            print(f"seed {seed}: " + outcome.replace("\\n", "\n"), flush=True)
            if options.keep is not None:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / str(seed)).write_bytes(changed(models, seed))
        if sum(counts.values()) % SHOWN == 0:
            print(summary(counts, time.monotonic() - begin), flush=True)
    if sum(counts.values()) % SHOWN:
        print(summary(counts, time.monotonic() - begin))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
