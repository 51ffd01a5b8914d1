"""Options that several commands take, and the inputs of a run that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from onemodel_graph.cli.inputs import drawn, read_inputs, sizes_of
from onemodel_graph.session import Session

console = Console()
ModelPath = Annotated[Path, typer.Argument(help="A model: .onnx, .om1, .om or .safetensors.")]
Mode = Annotated[str, typer.Option(help="fast or exact.")]
Threads = Annotated[int | None, typer.Option(help="Threads; all that are free without it.")]
Size = Annotated[list[str] | None, typer.Option("--size", help="A symbol's size: NAME=NUMBER.")]
Seed = Annotated[int, typer.Option(help="Seed of inputs that no file gives.")]
Inputs = Annotated[
    list[Path] | None, typer.Option("--input", "-i", help="Inputs: .npz, .npy or .png files.")
]


def feeds_of(
    session: Session, files: list[Path] | None, size: list[str] | None, seed: int
) -> dict[str, Any]:
    """The inputs of a run: those in the files, the others drawn from the seed."""
    given = read_inputs(list(files or []), session.inputs)
    missing = tuple(value for value in session.inputs if value.name not in given)
    return {**drawn(missing, sizes_of(list(size or [])), seed), **given}
