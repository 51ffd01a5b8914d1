"""What a person sees while a model trains."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from onemodel_kernels.errors import OneModelError

__all__ = ["LineProgress", "Progress", "RichProgress", "SilentProgress", "default_progress"]


class Progress(Protocol):
    """Told by the trainer what happens."""

    def start_epoch(self, epoch: int, epochs: int, batches: int, done: int) -> None:
        """An epoch begins; ``done`` of its batches were trained before."""

    def advance(self, figures: Mapping[str, float]) -> None:
        """One batch was trained; ``figures`` are means over the epoch so far."""

    def end_epoch(self, figures: Mapping[str, float]) -> None:
        """An epoch ended with these figures."""

    def close(self) -> None:
        """Training ended."""


def text_of(figures: Mapping[str, float]) -> str:
    """Figures in a line: ``loss 0.1234  val_error 0.0120``."""
    return "  ".join(
        f"{name} {value:.3e}" if name == "lr" else f"{name} {value:.4f}"
        for name, value in figures.items()
        if name not in ("epoch", "step", "seconds")
    )


class SilentProgress:
    """Shows nothing."""

    def start_epoch(self, epoch: int, epochs: int, batches: int, done: int) -> None:
        """Nothing."""

    def advance(self, figures: Mapping[str, float]) -> None:
        """Nothing."""

    def end_epoch(self, figures: Mapping[str, float]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LineProgress:
    """One line for each epoch on standard error: for logs."""

    def __init__(self) -> None:
        self._label = ""

    def start_epoch(self, epoch: int, epochs: int, batches: int, done: int) -> None:
        """Keeps the epoch's label."""
        self._label = f"epoch {epoch}/{epochs}"

    def advance(self, figures: Mapping[str, float]) -> None:
        """Nothing."""

    def end_epoch(self, figures: Mapping[str, float]) -> None:
        """Writes the line."""
        sys.stderr.write(
            f"{self._label}  {text_of(figures)}  {figures.get('seconds', 0.0):.1f} s\n"
        )
        sys.stderr.flush()

    def close(self) -> None:
        """Nothing."""


class RichProgress:
    """A bar for each epoch, with its figures.

    Raises:
        OneModelError: when the package rich is not installed.
    """

    def __init__(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bars
        except ImportError as error:
            raise OneModelError(
                "RichProgress: expected rich, which is not installed; "
                "pip install 'onemodel-training[progress]'"
            ) from error

        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
        )
        self._bars.start()
        self._task: Any = None

    def start_epoch(self, epoch: int, epochs: int, batches: int, done: int) -> None:
        """Adds a bar."""
        self._task = self._bars.add_task(
            f"epoch {epoch}/{epochs}", total=batches, completed=done, figures=""
        )

    def advance(self, figures: Mapping[str, float]) -> None:
        """Moves the bar."""
        self._bars.update(self._task, advance=1, figures=text_of(figures))

    def end_epoch(self, figures: Mapping[str, float]) -> None:
        """Shows the epoch's final figures."""
        self._bars.update(self._task, figures=text_of(figures))

    def close(self) -> None:
        """Leaves the bars on the screen."""
        self._bars.stop()


def default_progress() -> Progress:
    """A bar where standard error is a terminal and rich is installed, else lines."""
    if sys.stderr.isatty():
        try:
            return RichProgress()
        except OneModelError:
            return LineProgress()
    return LineProgress()
