"""Random models, shapes and threads for a while: equal bits throughout, and memory that stays flat.

    python tools/soak.py --minutes 30 --seed 7

Each round makes a model, trains it for a step with two thread counts, traces it, saves and loads it in
both formats, and runs sessions in both modes from up to 16 Python threads at once, with kernels on
one to four threads. Every result must have the bits of the first run of its input. Between rounds
the resident memory is measured, without the freed blocks that are kept up to a bound; after a warm-up
it may not grow.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session, load
from onemodel_kernels import get_num_threads, release_cached, set_num_threads
from onemodel_training import (
    GELU,
    LSTM,
    SGD,
    AdamW,
    BatchNorm2d,
    Conv2d,
    Flatten,
    LayerNorm,
    Linear,
    MaxPool2d,
    NnModule,
    ReLU,
    Sequential,
    Tanh,
)

PAGE = os.sysconf("SC_PAGE_SIZE")
WARM_UP = 0.25
"""The part of the time after which memory counts: allocators and caches have their size by then."""
GROWTH = 32 << 20
"""Bytes that the median may grow from the second quarter to the last: what the pool's threads may come
to keep for themselves. A leak of one model or of one array for each run passes it in minutes."""
JUDGED_FROM = 5.0
"""Minutes from which on growth is judged; before, caches fill."""


@dataclass
class Kind:
    """A random model and what it takes: the shape of one row, the batch axis comes first."""

    name: str
    model: NnModule
    row: tuple[int, ...]


@dataclass
class Totals:
    """What was done, and the memory after each round."""

    rounds: int = 0
    runs: int = 0
    memory: list[int] = field(default_factory=list)


class Recurrent(NnModule):
    """The last step of an LSTM, read out by a linear layer."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.lstm = LSTM(inputs, width, batch_first=True)
        self.out = Linear(width, 5)

    def forward(self, input: om.Tensor) -> om.Tensor:
        """Rows of steps to rows of 5."""
        states, _ = self.lstm(input)
        return self.out(states.select(1, -1))


def random_kind(choice: random.Random) -> Kind:
    """A model of one of three families with random widths, on the seed of the generator."""
    om.manual_seed(choice.randrange(2**31))
    family = choice.choice(["mlp", "cnn", "recurrent"])
    width = choice.choice([3, 8, 16, 33, 64, 100])
    activation: Callable[[], NnModule] = choice.choice([ReLU, Tanh, GELU])
    if family == "mlp":
        layers = [Linear(7, width), activation(), LayerNorm(width), Linear(width, 5)]
        return Kind(f"mlp {width}", Sequential(*layers), (7,))
    if family == "recurrent":
        return Kind(f"recurrent {width}", Recurrent(6, width), (choice.randint(1, 20), 6))
    size = 4 * choice.randint(2, 6)
    layers = [
        Conv2d(3, width, 3, padding=1), BatchNorm2d(width), activation(), MaxPool2d(2),
        Conv2d(width, 8, 3, stride=2, padding=1), ReLU(), Flatten(), Linear(size * size // 2, 5),
    ]  # fmt: skip
    return Kind(f"cnn {width} on {size}", Sequential(*layers), (3, size, size))


def weights_hash(model: NnModule) -> str:
    """A hash over all parameters and buffers."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def train(kind: Kind, rows: int, choice: random.Random) -> None:
    """One step on one thread and on several, from the same state: the same weights."""
    kind.model.train()
    begin = {name: tensor.clone() for name, tensor in kind.model.state_dict().items()}
    x = om.randn(rows, *kind.row)
    maker = choice.choice([SGD, AdamW])
    hashes = set()
    for threads in (1, choice.randint(2, 4)):
        set_num_threads(threads)
        kind.model.load_state_dict(begin)
        optimiser = maker(kind.model.parameters(), lr=1e-3)
        optimiser.zero_grad()
        kind.model(x).square().mean().backward()
        optimiser.step()
        hashes.add(weights_hash(kind.model))
    if len(hashes) != 1:
        raise AssertionError(f"{kind.name}: a training step has other bits with more threads")
    kind.model.eval()


def make_sessions(kind: Kind, folder: Path) -> dict[str, Session]:
    """Sessions in both modes from the traced graph and from files of both formats."""
    traced = kind.model.trace(om.randn(2, *kind.row), axis_names={"input": {0: "batch"}})
    traced.save_onnx(folder / "model.onnx")
    traced.save(folder / "model.om1")
    return {
        "exact": traced.session(ArithmeticMode.EXACT),
        "exact, from ONNX": Session(folder / "model.onnx", ArithmeticMode.EXACT),
        "exact, from v1": Session(load(folder / "model.om1"), ArithmeticMode.EXACT),
        "fast": Session(folder / "model.onnx", ArithmeticMode.FAST),
    }


def hammer(
    kind: Kind, sessions: dict[str, Session], choice: random.Random, seconds: float, count: int
) -> int:
    """Run all sessions from ``count`` threads at once; the number of runs.

    The exact sessions must agree with each other and with the eager model, the fast one with itself.
    """
    inputs, expected = [], []
    set_num_threads(1)
    for _ in range(4):
        x = om.randn(choice.choice([1, 2, 5, 17, 32]), *kind.row)
        with om.no_grad():
            eager = kind.model(x).numpy().tobytes()
        inputs.append(x.numpy())
        fast = sessions["fast"].run(inputs[-1])[0].tobytes()
        expected.append({name: fast if name == "fast" else eager for name in sessions})
    set_num_threads(choice.randint(1, 4))
    until = time.monotonic() + seconds
    problems: list[str] = []
    runs: list[int] = []

    def work(seed: int) -> None:
        own, done = random.Random(seed), 0
        while time.monotonic() < until and not problems:
            number, name = own.randrange(len(inputs)), own.choice(list(sessions))
            got = sessions[name].run(inputs[number])[0].tobytes()
            done += 1
            if got != expected[number][name]:
                shape, threads = inputs[number].shape, get_num_threads()
                problems.append(f"{kind.name}, {name}, input {shape}, {threads} kernel threads")
        runs.append(done)

    seeds = [choice.randrange(2**31) for _ in range(count)]
    threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise AssertionError(f"other bits than the first run: {problems[0]}")
    if len(runs) != len(threads):
        raise AssertionError(f"{kind.name}: a thread ended with an error, see above")
    return sum(runs)


def resident() -> int:
    """Resident bytes of this process, without free memory that is kept for new arrays or threads."""
    gc.collect()
    release_cached()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def soak(minutes: float, seed: int, each: float = 1.0) -> Totals:
    """Rounds until the time is over.

    Raises:
        AssertionError: naming the model and the session whose bits differ.
    """
    choice = random.Random(seed)
    totals, begin = Totals(), time.monotonic()
    shown = begin
    with tempfile.TemporaryDirectory() as folder:
        while (now := time.monotonic()) < begin + 60 * minutes:
            kind = random_kind(choice)
            train(kind, choice.choice([1, 3, 16]), choice)
            sessions = make_sessions(kind, Path(folder))
            # A long run begins with a minute of 16 threads on the sessions of one model.
            first = totals.rounds == 0 and minutes >= 5
            seconds, count = (60.0, 16) if first else (each, choice.choice([1, 2, 4, 16]))
            totals.runs += hammer(kind, sessions, choice, seconds, count)
            totals.rounds += 1
            del kind, sessions
            totals.memory.append(resident())
            if now - shown >= 30:
                shown = now
                print(
                    f"{(now - begin) / 60:5.1f} min, {totals.rounds} models, {totals.runs:,} runs, "
                    f"{totals.memory[-1] >> 20} MiB",
                    flush=True,
                )
    return totals


def growth(memory: list[int]) -> int:
    """How much the median of the last quarter is above that of the second one, in bytes."""
    quarter = max(len(memory) // 4, 1)
    early = memory[int(len(memory) * WARM_UP) :][:quarter]
    return int(statistics.median(memory[-quarter:]) - statistics.median(early))


def main() -> int:
    """Soak and report: 1 when bits differed or memory grew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    totals = soak(options.minutes, options.seed)
    grown = growth(totals.memory)
    print(
        f"{totals.rounds} models, {totals.runs:,} runs with equal bits; memory: first "
        f"{totals.memory[0] >> 20}, largest {max(totals.memory) >> 20}, last "
        f"{totals.memory[-1] >> 20} MiB, growth {grown / 2**20:+.1f} MiB"
    )
    if grown > GROWTH and options.minutes >= JUDGED_FROM:
        print(f"memory grew by more than {GROWTH >> 20} MiB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
