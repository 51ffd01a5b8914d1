"""The figures of a training run: rows for each epoch, as CSV and as a picture."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from onemodel_kernels.errors import OneModelError
from onemodel_kernels.saving import write_atomically

__all__ = ["History"]


class History:
    """One row of named figures for each epoch."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def append(self, row: Mapping[str, float]) -> None:
        """Adds an epoch."""
        self.rows.append(dict(row))

    def column(self, name: str) -> list[float]:
        """One figure over all epochs; NaN where an epoch has none."""
        return [row.get(name, math.nan) for row in self.rows]

    def names(self) -> list[str]:
        """The figures in the order in which they first appear."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def write_csv(self, path: str | Path) -> None:
        """Writes a table with a header line; the file is replaced whole."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.names())
        writer.writeheader()
        writer.writerows(self.rows)
        _write(path, text.getvalue().encode())

    def write_png(self, path: str | Path) -> None:
        """Draws losses on the left and every other figure on the right, over epochs.

        Raises:
            OneModelError: when matplotlib is not installed.
        """
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise OneModelError(
                "History.write_png: expected matplotlib, which is not installed; "
                "pip install 'onemodel-training[plots]'"
            ) from error
        epochs = self.column("epoch")
        shown = [name for name in self.names() if name not in ("epoch", "step", "seconds", "lr")]
        losses = [name for name in shown if name.endswith("loss")]
        others = [name for name in shown if name not in losses]
        figure = Figure(figsize=(10.0, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        panels = [panel for panel in (losses, others) if panel]
        for place, names in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), place)
            for name in names:
                axes.plot(epochs, self.column(name), marker=".", label=name)
            axes.set_xlabel("epoch")
            axes.grid(alpha=0.3)
            axes.legend()
        picture = io.BytesIO()
        figure.savefig(picture, format="png", metadata={"Software": None})
        _write(path, picture.getvalue())


def _write(path: str | Path, content: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [content])
