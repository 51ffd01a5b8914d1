"""The commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from onemodel_graph.cli.measuring import bench, compare
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
from onemodel_graph.cli.outputs import leaves, numbers_of
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
    feeds = feeds_of(session, inputs, size, seed)
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


app.command()(bench)
app.command()(compare)


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
