"""The commands."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from onemodel_graph.cli.inputs import drawn, read_inputs, sizes_of
from onemodel_graph.cli.outputs import difference, leaves, numbers_of
from onemodel_graph.inspection import inspect as inspect_model
from onemodel_graph.loading import load
from onemodel_graph.model_format import ModelFormat, save
from onemodel_graph.passes import optimise
from onemodel_graph.session import Session
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_kernels.saving import write_atomically

app = typer.Typer(
    name="onemodel-graph",
    help="Load, inspect, run, compare and convert models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = Console()
ModelPath = Annotated[Path, typer.Argument(help="A model: .onnx, .om1, .om or .safetensors.")]
Mode = Annotated[str, typer.Option(help="fast or exact.")]
Threads = Annotated[int | None, typer.Option(help="Threads; all that are free without it.")]
Size = Annotated[list[str] | None, typer.Option("--size", help="A symbol's size: NAME=NUMBER.")]
Seed = Annotated[int, typer.Option(help="Seed of inputs that no file gives.")]
Inputs = Annotated[
    list[Path] | None, typer.Option("--input", "-i", help="Inputs: .npz, .npy or .png files.")
]


@app.command()
def inspect(
    model: ModelPath, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """Inputs, outputs, symbols, operators, weights, and what stands in the way of running it."""
    report = inspect_model(model)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
        return
    console.print(f"[bold]{model.name}[/bold]: graph {report.name!r}, opset {report.opset}")
    values = Table("", "name", "dtype", "shape", box=None)
    for kind, listed in (("input", report.inputs), ("output", report.outputs)):
        for name, dtype, shape in listed:
            shown = "?" if shape is None else ", ".join("?" if e is None else str(e) for e in shape)
            values.add_row(kind, name, dtype or "?", f"[{shown}]".replace("[", "\\["))
    console.print(values)
    operators = Table("operator", "nodes", box=None)
    for name, count in report.operators.items():
        operators.add_row(name, str(count))
    console.print(operators)
    console.print(
        f"{report.weights} weights, {report.parameters:,} parameters, {report.weight_bytes / 1e6:.2f} MB"
    )
    if report.symbols:
        console.print(f"symbols: {', '.join(report.symbols)}")
    for guard in report.guards:
        console.print(f"holds only where {guard}")
    console.print("exact mode: yes" if report.exact else "exact mode: no")
    for label in report.not_exact:
        console.print(f"  no exact kernel: {label}", markup=False)
    for warning in report.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False)


def _feeds(
    session: Session, files: list[Path] | None, size: list[str] | None, seed: int
) -> dict[str, Any]:
    given = read_inputs(list(files or []), session.inputs)
    missing = tuple(value for value in session.inputs if value.name not in given)
    return {**drawn(missing, sizes_of(list(size or [])), seed), **given}


@app.command()
def run(
    model: ModelPath,
    inputs: Inputs = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write .npz.")
    ] = None,
    mode: Mode = "fast",
    threads: Threads = None,
    size: Size = None,
    seed: Seed = 0,
    profile: Annotated[bool, typer.Option(help="Time by operator.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Where to write a Chrome trace.")] = None,
) -> None:
    """Runs a model once and shows (or writes) its outputs."""
    session = Session(model, mode, threads)
    feeds = _feeds(session, inputs, size, seed)
    outputs = session.run(feeds)
    if profile or trace is not None:
        measured = session.profile(feeds)
        if profile:
            typer.echo(measured.table())
        if trace is not None:
            write_atomically(trace, [measured.chrome_trace().encode()])
    table = Table("output", "dtype", "shape", "least", "mean", "greatest", box=None)
    pairs = zip(session.outputs, outputs, strict=True)
    named = dict(leaf for value, made in pairs for leaf in leaves(value.name, made))
    for name, array in named.items():
        table.add_row(name, str(array.dtype), str(array.shape), *numbers_of(array))
    console.print(table)
    if output is not None:
        np.savez(output, **named)
        console.print(f"wrote {output}")


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


@app.command()
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
    feeds = _feeds(session, inputs, size, seed)
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


@app.command()
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
    feeds = _feeds(session, inputs, size, seed)
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


@app.command()
def convert(
    model: ModelPath,
    target: Annotated[Path, typer.Argument(help="Where to: .onnx, .om1, .om or .safetensors.")],
) -> None:
    """Writes a model in another form."""
    ModelFormat.of(target)
    save(load(model), target)
    console.print(f"wrote {target} ({target.stat().st_size / 1e6:.2f} MB)")


@app.command()
def optimize(
    model: ModelPath,
    target: Annotated[Path, typer.Argument(help="Where to: .onnx, .om1, .om or .safetensors.")],
    mode: Annotated[str, typer.Option(help="exact: no pass may change a bit.")] = "exact",
) -> None:
    """Writes a model after the passes that a session runs."""
    ModelFormat.of(target)
    if mode not in ("fast", "exact"):
        raise AttributeValueError(f"optimize: mode must be 'fast' or 'exact', got {mode!r}")
    loaded = load(model)
    before = len(loaded.graph.nodes)
    loaded.graph = optimise(loaded.graph, mode)
    save(loaded, target)
    console.print(f"{before} nodes became {len(loaded.graph.nodes)}; wrote {target}")


@app.command()
def view(model: ModelPath) -> None:
    """Opens a model in Netron, when it is installed."""
    try:
        import netron  # type: ignore[import-not-found]
    except ImportError:
        raise AttributeValueError("view: it needs Netron: pip install netron") from None
    netron.start(str(model))


def main() -> None:
    """Runs the command line; an error is one line on standard error and status 1."""
    try:
        app()
    except OneModelError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from None
