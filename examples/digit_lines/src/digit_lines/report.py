"""The table of the comparison, and a picture of lines with what was read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image as Pictures
from PIL import ImageDraw, ImageFont
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from digit_lines.comparison import BATCH_SIZES, Comparison
from digit_lines.lines import HEIGHT, Line
from onemodel_kernels.saving import write_atomically

ZOOM = 4
MARGIN = 10
TEXT_WIDTH = 330


def print_comparison(comparison: Comparison, console: Console) -> None:
    """One table of the engines, then one line for each pair of results compared bit by bit."""
    narrowest, widest = comparison.widths
    table = Table(
        title=f"{comparison.lines} held-out lines, {narrowest} to {widest} pixels wide, "
        f"in batches of {', '.join(map(str, BATCH_SIZES))}",
        caption="largest difference: of log-probabilities, from the eager model",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    table.add_column("engine", no_wrap=True)
    table.add_column("character\nerror", justify="right", no_wrap=True)
    table.add_column("largest\ndifference", justify="right", no_wrap=True)
    for size in BATCH_SIZES:
        table.add_column(f"ms/line\nbatch {size}", justify="right", no_wrap=True)
    for engine in comparison.engines:
        table.add_row(
            engine.name,
            f"{100 * engine.error.value:.2f} %",
            f"{engine.largest_difference:.1e}" if engine.largest_difference else "0",
            *(f"{1000 * engine.seconds[size] / comparison.lines:.3f}" for size in BATCH_SIZES),
        )
    console.print(table)
    for name, equal in comparison.equal.items():
        console.print(f"{name}: bits {'equal' if equal else 'DIFFER'}")


def draw_readings(file: Path, lines: Sequence[Line], readings: Sequence[Sequence[int]]) -> None:
    """Write a PNG with each line and, beside it, what was read; red over the truth where wrong."""
    width = max(line.width for line in lines) * ZOOM + TEXT_WIDTH + 3 * MARGIN
    row_height = HEIGHT * ZOOM + MARGIN
    page = Pictures.new("RGB", (width, row_height * len(lines) + MARGIN), "white")
    draw = ImageDraw.Draw(page)
    large, small = ImageFont.load_default(size=34), ImageFont.load_default(size=22)
    left = width - TEXT_WIDTH - MARGIN
    for index, (line, reading) in enumerate(zip(lines, readings, strict=True)):
        top = MARGIN + index * row_height
        pixels = Pictures.fromarray(np.uint8(255 - np.round(line.image * 255)))
        page.paste(pixels.resize((line.width * ZOOM, HEIGHT * ZOOM)), (MARGIN, top))
        text = "".join(str(label - 1) for label in reading) or "(nothing)"
        if tuple(reading) == line.labels:
            draw.text((left, top + row_height // 2), text, "black", large, anchor="lm")
        else:
            draw.text((left, top), text, "red", large)
            draw.text((left, top + 40), "".join(map(str, line.digits)), "gray", small)
    picture = io.BytesIO()
    page.save(picture, format="png")
    write_atomically(file, [picture.getvalue()])
