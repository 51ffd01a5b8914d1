"""Options that several commands take, and the inputs of a run that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from onemodel_graph.cli.inputs import FREE, drawn, read_inputs, sizes_of
from onemodel_graph.ir import Value
from onemodel_graph.session import Session
from onemodel_kernels.errors import AttributeValueError

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
    """The inputs of a run: those in the files, the others drawn from the seed.

    Standard error says which sizes nobody stated.
    """
    sizes = sizes_of(list(size or []))
    extents = extents_of(session.inputs)
    if unknown := sorted(set(sizes) - extents):
        known = ", ".join(sorted(extents)) or "no symbol at all"
        raise AttributeValueError(f"--size {unknown[0]}: the model's inputs have {known}")
    given = read_inputs(list(files or []), session.inputs)
    missing = tuple(value for value in session.inputs if value.name not in given)
    if free := sorted(extents_of(missing) - set(sizes)):
        chosen = ", ".join(f"{name}={FREE}" for name in free)
        typer.echo(f"drawn inputs have {chosen}; --size NAME=NUMBER sets another size", err=True)
    return {**drawn(missing, sizes, seed), **given}


def extents_of(inputs: tuple[Value, ...]) -> set[str]:
    """The symbols in the shapes of inputs."""
    return {extent for value in inputs for extent in value.shape or () if isinstance(extent, str)}
