"""``python -m digit_lines``: train, trace, verify, save, load, read and compare."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import onemodel_tensors as om
from digit_lines.comparison import compare, read_labels, session_reader
from digit_lines.lines import HELD_OUT, Line, compose_lines, load_scans, stack
from digit_lines.reader import LineReader, weights_hash
from digit_lines.report import draw_readings, print_comparison
from digit_lines.training import train
from onemodel_graph import ArithmeticMode
from onemodel_kernels import set_num_threads
from onemodel_trace import TracedModel

HELD_OUT_PART = 1
SHOWN_LINES = 12
THREADS = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the models and the picture.")] = Path("out"),
    epochs: Annotated[int, typer.Option(min=1, max=1000, help="Rounds of training.")] = 16,
    lines: Annotated[int, typer.Option(min=1, help="New lines in each round.")] = 2000,
    held_out: Annotated[int, typer.Option(min=1, help="Lines for the test.")] = 400,
    batch_size: Annotated[int, typer.Option(min=1, max=1024, help="Lines in a step.")] = 8,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Same seed, same bits.")] = 0,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads.")] = THREADS,
) -> None:
    """Train a reader of handwritten digit lines, trace and save it, and read with every engine."""
    console = Console()
    started = time.perf_counter()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(
            f"{out}: expected a folder that exists or can be made, but {error.strerror}",
            param_hint="--out",
        ) from None
    set_num_threads(threads)
    training_scans, held_out_scans = load_scans()
    with stage("trained", console):
        model = train(
            training_scans,
            epochs=epochs,
            lines_per_epoch=lines,
            batch_size=batch_size,
            seed=seed,
        )
    console.print(f"weights sha256 {weights_hash(model)}")
    test_lines = compose_lines(held_out_scans, held_out, seed, HELD_OUT_PART, HELD_OUT)
    onnx_file, v1_file = out / "digit_lines.onnx", out / "digit_lines.om1"
    with stage("traced, verified at other sizes and saved", console):
        traced = trace_reader(model, test_lines[:3])
        traced.save_onnx(onnx_file)
        traced.save(v1_file)
    with stage("read the held-out lines", console):
        comparison = compare(model, onnx_file, v1_file, test_lines, threads)
    print_comparison(comparison, console)
    picture = out / "digit_lines.png"
    read = session_reader(v1_file, ArithmeticMode.EXACT, threads)
    shown = test_lines[:SHOWN_LINES]
    draw_readings(picture, shown, [read_labels(read(stack([line])))[0] for line in shown])
    console.print(f"wrote {onnx_file}, {v1_file} and {picture}")
    console.print(f"whole job: {time.perf_counter() - started:.0f} s with {threads} threads")
    if not all(comparison.equal.values()):
        raise typer.Exit(1)


def trace_reader(model: LineReader, examples: list[Line]) -> TracedModel:
    """The model as a graph with symbolic batch and width, checked at sizes other than these."""
    return model.trace(
        om.from_numpy(stack(examples)),
        input_names=["image"],
        output_names=["log_probs"],
        axis_names={"image": {0: "batch", 3: "width"}},
        verify=True,
    )


@contextmanager
def stage(name: str, console: Console) -> Iterator[None]:
    """Print how long a part of the job took."""
    start = time.perf_counter()
    yield
    console.print(f"{name} in {time.perf_counter() - start:.1f} s")


def run() -> None:
    """The command line."""
    typer.run(main)


if __name__ == "__main__":
    run()
