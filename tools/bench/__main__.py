"""Session against ONNX Runtime, interleaved in one run: ``nox -s bench``, ``python tools/bench``.

Each workload is built from the project's own layers with seeded weights, traced and saved as ONNX;
the session (fast and exact) and ONNX Runtime load the same file, each in a process of its own, and
take turns. Only the ratios within one run mean anything: machines, and minutes on one machine,
differ. Further tables have the cost of training steps, of tracing and of the smallest calls.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import onemodel_tensors as om
from machine import described
from shares import Share, best_product, shares
from small import SmallCost, small_costs
from steps import STEPS, StepCost, step_cost
from tracing import TraceCost, trace_cost
from turns import medians
from unseen import UnseenCost, symbolic, unseen_cost
from workloads import WORKLOADS, Workload


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


def store(workload: Workload, folder: Path) -> Path:
    """Write the workload's inputs where the engines' processes find them."""
    file = folder / "inputs.npz"
    np.savez(file, **workload.inputs())
    return file


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


def print_share_table(rows: dict[str, Share], best: float, threads: int, console: Console) -> None:
    """Where the time goes, and how near products come to the best one of this run."""
    title = (
        f"shares of an exact run, {threads} thread(s); products beside the best one of 768 cubed"
    )
    table = Table(title=f"{title} ({best / 1e9:.0f} GFLOP/s)")
    for column in ("workload", "operators", "GFLOP/s", "of the best"):
        table.add_column(column, justify="left" if column in ("workload", "operators") else "right")
    for name, share in rows.items():
        largest = ", ".join(f"{operator} {part:.0%}" for operator, part in share.operators[:4])
        rate = share.operations / share.seconds
        table.add_row(name, largest, f"{rate / 1e9:.0f}", f"{rate / best:.0%}")
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


def print_small_table(rows: dict[str, SmallCost], console: Console) -> None:
    """What a call costs beside its arithmetic."""
    table = Table(title="one eager call beside numpy's")
    for column in ("call", "numpy µs", "µs", "target µs", "/ numpy"):
        table.add_column(column, justify="left" if column == "call" else "right")
    for name, cost in rows.items():
        shown = (f"{1e6 * seconds:.2f}" for seconds in (cost.peer, cost.taken, cost.most))
        table.add_row(name, *shown, f"{cost.taken / cost.peer:.2f}")
    console.print(table)


def print_unseen_table(rows: dict[str, UnseenCost], threads: int, console: Console) -> None:
    """What the first run of a shape costs, in later runs of it."""
    table = Table(title=f"first run of an unseen shape, exact, {threads} thread(s)")
    for column in ("workload", "first ms", "repeated ms", "first / repeated"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for name, cost in rows.items():
        ratio = f"{cost.first / cost.repeated:.2f}"
        table.add_row(name, f"{1e3 * cost.first:.4g}", f"{1e3 * cost.repeated:.4g}", ratio)
    console.print(table)


def print_step_table(
    rows: dict[str, tuple[StepCost, float]], threads: int, console: Console
) -> None:
    """What a training step costs, in forward runs of ONNX Runtime."""
    table = Table(title=f"one training step, {threads} thread(s); in ONNX Runtime's forward runs")
    for column in ("workload", "ONNX Runtime ms", "step ms", "forward", "step", "target"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for name, (cost, most) in rows.items():
        table.add_row(
            name,
            f"{1e3 * cost.peer:.4g}",
            f"{1e3 * cost.step:.4g}",
            f"{cost.forward / cost.peer:.2f}",
            f"{cost.step / cost.peer:.2f}",
            f"{most:.1f}",
        )
    console.print(table)


def main() -> None:
    """Print the tables of sessions and of training steps for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of workload names")
    parser.add_argument("--threads", nargs="*", type=int, default=sorted({1, os.cpu_count() or 1}))
    parser.add_argument("--seconds", type=float, default=3.0, help="for each workload")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()

    def wanted(name: str) -> bool:
        return not options.only or any(part in name for part in options.only)

    chosen = [workload for workload in WORKLOADS if wanted(workload.name)]
    steps = [workload for workload in STEPS if wanted(workload.name)]
    if not chosen and not steps:
        names = ", ".join(workload.name for workload in (*WORKLOADS, *STEPS))
        parser.error(f"--only: no workload has such a name; there are {names}")
    console = Console()
    results: dict[str, Any] = {**described(), "traces": {}, "small": {}}
    for table in ("sessions", "shares", "best_product", "unseen", "steps"):
        results[table] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = [
            (workload, save(workload, Path(folder)))
            for workload in track(chosen, "building", console=console, transient=True)
        ]
        for threads in options.threads:
            rows = {
                workload.name: medians(
                    file, store(workload, Path(folder)), threads, options.seconds
                )
                for workload, file in track(files, "measuring", console=console, transient=True)
            }
            results["sessions"][str(threads)] = rows
            if rows:
                print_table(rows, threads, console)
                parts = {
                    workload.name: shares(file, workload.inputs(), threads)
                    for workload, file in track(files, "profiling", console=console, transient=True)
                }
                best = best_product(threads)
                results["shares"][str(threads)] = {n: asdict(share) for n, share in parts.items()}
                results["best_product"][str(threads)] = best
                print_share_table(parts, best, threads, console)
            unseen = {
                workload.name: unseen_cost(workload, save(workload, Path(folder)), threads)
                for workload in symbolic()
                if wanted(workload.name)
            }
            results["unseen"][str(threads)] = {n: asdict(cost) for n, cost in unseen.items()}
            if unseen:
                print_unseen_table(unseen, threads, console)
            taken = {
                workload.name: (step_cost(workload, threads, options.seconds), workload.most)
                for workload in track(steps, "training", console=console, transient=True)
            }
            results["steps"][str(threads)] = {
                name: {**asdict(cost), "target": most} for name, (cost, most) in taken.items()
            }
            if taken:
                print_step_table(taken, threads, console)
    if chosen:
        costs = {workload.name: trace_cost(workload) for workload in chosen}
        results["traces"] = {name: asdict(cost) for name, cost in costs.items()}
        print_trace_table(costs, console)
    if wanted("add of 4"):
        calls = small_costs()
        results["small"] = {name: asdict(cost) for name, cost in calls.items()}
        print_small_table(calls, console)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
