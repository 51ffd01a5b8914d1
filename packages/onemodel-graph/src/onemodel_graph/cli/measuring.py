"""The commands that run a model beside another one or another runtime: ``bench`` and ``compare``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import Progress
from rich.table import Table

from onemodel_graph.cli.options import (
    Inputs,
    Mode,
    ModelPath,
    Seed,
    Size,
    Threads,
    console,
    feeds_of,
)
from onemodel_graph.cli.outputs import difference, leaves
from onemodel_graph.loading import load
from onemodel_graph.session import Session
from onemodel_kernels.errors import AttributeValueError


def _peer(model: Path, threads: int | None) -> Callable[[dict[str, Any]], list[Any]] | None:
    try:
        import onnxruntime  # noqa: TID251  (a peer to measure against, when it is there)
    except ImportError:
        return None
    data: Any = str(model)
    if model.suffix.lower() != ".onnx":
        from onemodel_graph.onnx_io import to_onnx

        data = to_onnx(load(model)).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    theirs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def call(feeds: dict[str, Any]) -> list[Any]:
        found: list[Any] = theirs.run(None, {n: np.asarray(a) for n, a in feeds.items()})
        return found

    return call


def bench(
    model: ModelPath,
    inputs: Inputs = None,
    mode: Mode = "fast",
    threads: Threads = None,
    size: Size = None,
    seed: Seed = 0,
    seconds: Annotated[float, typer.Option(help="How long to measure.", min=0.1)] = 3.0,
    peer: Annotated[bool, typer.Option(help="Also ONNX Runtime, in turn.")] = True,
) -> None:
    """Times a model, in turn with ONNX Runtime when it is installed."""
    start = time.perf_counter()
    session = Session(model, mode, threads)
    feeds = feeds_of(session, inputs, size, seed)
    session.run(feeds)
    first = time.perf_counter() - start
    contenders: dict[str, Callable[[dict[str, Any]], list[Any]]] = {"onemodel": session.run}
    theirs = _peer(model, threads) if peer else None
    if theirs is not None:
        contenders["ONNX Runtime"] = theirs
        theirs(feeds)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    begin = time.perf_counter()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=seconds)
        spent = 0.0
        # One turn at least, however short the time.
        while spent < seconds:
            for name, call in contenders.items():
                start = time.perf_counter()
                call(feeds)
                times[name].append(time.perf_counter() - start)
            spent = time.perf_counter() - begin
            progress.update(task, completed=spent)
    table = Table("runtime", "runs", "median ms", "best ms", box=None)
    for name, found in times.items():
        ordered = sorted(found)
        median = ordered[len(ordered) // 2]
        table.add_row(name, str(len(found)), f"{median * 1e3:.3f}", f"{ordered[0] * 1e3:.3f}")
    console.print(table)
    if theirs is not None:
        ours, other = (sorted(t)[len(t) // 2] for t in times.values())
        console.print(f"time over ONNX Runtime's: {ours / other:.2f}")
    console.print(f"load and first run: {first * 1e3:.1f} ms")


def compare(
    model: ModelPath,
    other: Annotated[
        Path | None, typer.Argument(help="Another model; ONNX Runtime on the same one without it.")
    ] = None,
    inputs: Inputs = None,
    mode: Mode = "fast",
    size: Size = None,
    seed: Seed = 0,
    tolerance: Annotated[
        float, typer.Option(help="Allowed difference over the largest value.")
    ] = 1e-5,
) -> None:
    """Runs two models (or two runtimes) on the same inputs and shows the first value that differs."""
    session = Session(model, mode)
    feeds = feeds_of(session, inputs, size, seed)
    ours = session.run(feeds)
    if other is None:
        call = _peer(model, None)
        if call is None:
            raise AttributeValueError("compare: name a second model, or pip install onnxruntime")
        theirs = call(feeds)
    else:
        theirs = Session(other, mode).run(list(feeds.values()))
    if len(ours) != len(theirs):
        raise AttributeValueError(f"compare: {len(ours)} outputs against {len(theirs)}")
    table = Table("output", "equal bits", "largest difference", "first that differs", box=None)
    worst = 0.0
    for value, mine, peer in zip(session.outputs, ours, theirs, strict=True):
        left, right = dict(leaves(value.name, mine)), dict(leaves(value.name, peer))
        if left.keys() != right.keys():
            raise AttributeValueError(
                f"compare: {value.name} holds {len(left)} arrays against {len(right)}"
            )
        for name, array in left.items():
            equal, apart, place = difference(array, right[name], tolerance)
            worst = max(worst, apart)
            table.add_row(name, "yes" if equal else "no", f"{apart:.3g}", place)
    console.print(table)
    if worst > tolerance:
        raise typer.Exit(1)
