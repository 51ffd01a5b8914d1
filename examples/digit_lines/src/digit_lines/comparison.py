"""The held-out lines, read by every engine from the saved files in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import onemodel_tensors as om
from digit_lines.lines import BLANK, Image, Line, batches_of_similar_width, stack
from digit_lines.reader import LineReader
from onemodel_graph import ArithmeticMode, Session
from onemodel_training import Ratio, character_error_rate, ctc_greedy_decode

BATCH_SIZES = (1, 3, 8, 32)
#: Each batch is timed so often, the engines taking turns; the fastest turn counts.
TURNS = 3

Reader = Callable[[Image], NDArray[np.float32]]


@dataclass
class Engine:
    """One way to read, with what was measured on it."""

    name: str
    read: Reader
    largest_difference: float = 0.0
    seconds: dict[int, float] = field(default_factory=lambda: dict.fromkeys(BATCH_SIZES, 0.0))
    error: Ratio = field(default_factory=lambda: Ratio(0, 0))


@dataclass
class Comparison:
    """What the engines read and how fast, and which results have equal bits."""

    engines: list[Engine]
    equal: dict[str, bool]
    lines: int
    widths: tuple[int, int]


def read_labels(log_probs: NDArray[np.float32]) -> list[list[int]]:
    """The classes that each line of a batch says, from log-probabilities (steps, batch, classes)."""
    return ctc_greedy_decode(om.from_numpy(log_probs), blank=BLANK)


def session_reader(source: Path, mode: ArithmeticMode, threads: int | None = None) -> Reader:
    """A reader that runs a saved file through a session."""
    session = Session(source, mode=mode, threads=threads)
    return lambda image: session.run({"image": image})[0]


def onnxruntime_reader(source: Path, threads: int) -> Reader:
    """A reader that runs a saved file through ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return lambda image: session.run(None, {"image": image})[0]


def eager_reader(model: LineReader) -> Reader:
    """A reader that runs the model itself."""

    def read(image: Image) -> NDArray[np.float32]:
        with om.no_grad():
            return model(om.from_numpy(image)).numpy()

    return read


def compare(
    model: LineReader, onnx_file: Path, v1_file: Path, lines: list[Line], threads: int
) -> Comparison:
    """Read the lines at several batch sizes and widths with every engine; the model is the oracle.

    Args:
        model: the trained model, in evaluation mode.
        onnx_file: the model saved as ONNX.
        v1_file: the model saved in the library's format.
        lines: the lines to read; each batch size reads all of them.
        threads: the number of threads of sessions and of ONNX Runtime.
    """
    engines = [
        Engine("eager model", eager_reader(model)),
        Engine("session, exact", session_reader(v1_file, ArithmeticMode.EXACT, threads)),
        Engine("session, fast", session_reader(onnx_file, ArithmeticMode.FAST, threads)),
        Engine("ONNX Runtime", onnxruntime_reader(onnx_file, threads)),
    ]
    for size in BATCH_SIZES:
        for batch in batches_of_similar_width(lines, size):
            _read_batch(engines, [lines[index] for index in batch], size)
    return Comparison(
        engines,
        _equalities(model, onnx_file, v1_file, lines),
        len(lines),
        (min(line.width for line in lines), max(line.width for line in lines)),
    )


def _read_batch(engines: list[Engine], batch: list[Line], size: int) -> None:
    image = stack(batch)
    written = [line.labels for line in batch]
    oracle = engines[0].read(image)
    fastest = dict.fromkeys(range(len(engines)), float("inf"))
    for turn in range(TURNS + 1):
        for index, engine in enumerate(engines):
            start = time.perf_counter()
            result = engine.read(image)
            elapsed = time.perf_counter() - start
            if turn == 0:  # the first run of a width plans it; only what repeats is timed
                difference = float(np.abs(result - oracle).max())
                engine.largest_difference = max(engine.largest_difference, difference)
                engine.error += character_error_rate(read_labels(result), written)
            else:
                fastest[index] = min(fastest[index], elapsed)
    for index, engine in enumerate(engines):
        engine.seconds[size] += fastest[index]


def _equalities(
    model: LineReader, onnx_file: Path, v1_file: Path, lines: list[Line]
) -> dict[str, bool]:
    """Whether results that are promised to be the same have the same bits."""
    one = session_reader(v1_file, ArithmeticMode.EXACT, 1)
    two = session_reader(v1_file, ArithmeticMode.EXACT, 2)
    from_onnx = session_reader(onnx_file, ArithmeticMode.EXACT, 2)
    eager = eager_reader(model)
    equal = {
        "exact, 1 thread = exact, 2 threads": True,
        "exact, batch of 8 = its rows one by one": True,
        "exact from ONNX = exact from format v1": True,
        "exact session = eager model": True,
    }
    for batch in batches_of_similar_width(lines, 8):
        image = stack([lines[index] for index in batch])
        result = two(image)
        rows = [two(np.ascontiguousarray(image[row : row + 1])) for row in range(len(batch))]
        others = (one(image), np.concatenate(rows, axis=1), from_onnx(image), eager(image))
        for name, other in zip(equal, others, strict=True):
            equal[name] = equal[name] and result.tobytes() == other.tobytes()
    return equal
