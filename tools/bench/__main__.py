"""Session against ONNX Runtime, interleaved in one run: ``nox -s bench``, ``python tools/bench``.

Each workload is built from the project's own layers with seeded weights, traced and saved as ONNX;
the session (fast and exact) and ONNX Runtime load the same file and take turns. Only the ratios
within one run mean anything: machines, and minutes on one machine, differ.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from rich.console import Console
from rich.progress import track
from rich.table import Table

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from tracing import TraceCost, trace_cost
from workloads import WORKLOADS, Inputs, Workload

Run = Callable[[], object]


def save(workload: Workload, folder: Path) -> Path:
    """Trace the workload's model and save it as ONNX."""
    om.manual_seed(0)
    model = workload.build().eval()
    inputs = workload.inputs()
    traced = model.trace(
        *(om.from_numpy(array) for array in inputs.values()),
        input_names=list(inputs),
        axis_names=workload.axes,
        verify=False,
    )
    file = folder / f"{workload.name.replace(' ', '_').replace(',', '')}.onnx"
    traced.save_onnx(file)
    return file


def peer(file: Path, inputs: Inputs, threads: int) -> Callable[[], list[np.ndarray]]:
    """ONNX Runtime on the file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def ours(file: Path, inputs: Inputs, mode: ArithmeticMode, threads: int) -> Run:
    """The session on the file."""
    session = Session(file, mode=mode, threads=threads)
    return lambda: session.run(inputs)


def medians(runs: list[Run], seconds: float) -> list[float]:
    """The median time of each run in seconds, the runs taking turns for about ``seconds``."""
    for run in runs:
        run()
    once = []
    for run in runs:
        start = time.perf_counter()
        run()
        once.append(time.perf_counter() - start)
    # A turn is long enough that the clock's own cost does not show.
    repeats = [max(1, round(2e-4 / max(elapsed, 1e-7))) for elapsed in once]
    turn_cost = sum(count * elapsed for count, elapsed in zip(repeats, once, strict=True))
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(min(400, max(5, round(seconds / turn_cost)))):
        for run, count, taken in zip(runs, repeats, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                run()
            taken.append((time.perf_counter() - start) / count)
    return [statistics.median(taken) for taken in times]


def measure(workload: Workload, file: Path, threads: int, seconds: float) -> list[float]:
    """Median seconds of ONNX Runtime, session exact, session fast."""
    inputs = workload.inputs()
    return medians(
        [
            peer(file, inputs, threads),
            ours(file, inputs, ArithmeticMode.EXACT, threads),
            ours(file, inputs, ArithmeticMode.FAST, threads),
        ],
        seconds,
    )


def print_table(rows: dict[str, list[float]], threads: int, console: Console) -> None:
    """The times, and the ratios to ONNX Runtime: below 1 is faster."""
    table = Table(title=f"median of one run in ms, {threads} thread(s); ratios to ONNX Runtime")
    for column in ("workload", "ONNX Runtime", "exact", "fast", "exact / ORT", "fast / ORT"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for name, times in rows.items():
        ratios = [f"{taken / times[0]:.2f}" for taken in times[1:]]
        table.add_row(name, *(f"{1e3 * taken:.4g}" for taken in times), *ratios)
    means = [
        math.exp(statistics.fmean(math.log(times[mode] / times[0]) for times in rows.values()))
        for mode in (1, 2)
    ]
    table.add_section()
    table.add_row("geometric mean", "", "", "", *(f"{mean:.2f}" for mean in means))
    console.print(table)


def print_trace_table(rows: dict[str, TraceCost], console: Console) -> None:
    """What a trace costs: times an eager run, and for each node."""
    table = Table(title="one trace (finish included) beside one eager run")
    for column in ("workload", "eager ms", "trace ms", "trace / eager", "nodes", "µs a node"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for name, cost in rows.items():
        table.add_row(
            name,
            f"{1e3 * cost.eager:.4g}",
            f"{1e3 * cost.traced:.4g}",
            f"{cost.ratio:.2f}",
            str(cost.nodes),
            f"{1e6 * cost.per_node:.0f}",
        )
    console.print(table)


def main() -> None:
    """Print one table for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of workload names")
    parser.add_argument("--threads", nargs="*", type=int, default=sorted({1, os.cpu_count() or 1}))
    parser.add_argument("--seconds", type=float, default=3.0, help="for each workload")
    options = parser.parse_args()
    chosen = [
        workload
        for workload in WORKLOADS
        if not options.only or any(part in workload.name for part in options.only)
    ]
    if not chosen:
        names = ", ".join(workload.name for workload in WORKLOADS)
        parser.error(f"--only: no workload has such a name; there are {names}")
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        files = [
            (workload, save(workload, Path(folder)))
            for workload in track(chosen, "building", console=console, transient=True)
        ]
        for threads in options.threads:
            rows = {
                workload.name: measure(workload, file, threads, options.seconds)
                for workload, file in track(files, "measuring", console=console, transient=True)
            }
            print_table(rows, threads, console)
    costs = {workload.name: trace_cost(workload) for workload in chosen}
    print_trace_table(costs, console)


if __name__ == "__main__":
    main()
