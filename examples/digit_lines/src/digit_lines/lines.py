"""Lines of handwritten digits, composed from the scans that scikit-learn ships.

``load_digits`` has 1,797 digits of 8×8 pixels, written by 43 people. The first 1,437 make the lines
for training, the last 360, other writers among them, those held out. A line has 3 to 12 digits;
size, slant, rotation, spacing, height on the line, ink and noise vary, so its width varies too.
Lines for training are distorted more than any that has to be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from digit_lines.draws import Draws

HEIGHT = 16
CLASSES = 11  # the CTC blank, then the ten digits
BLANK = 0
TRAINING_DIGITS = 1437
#: Widths are padded to a multiple of this, so that few different ones occur.
WIDTH_STEP = 8

Image = NDArray[np.float32]


@dataclass(frozen=True)
class Line:
    """One line: its pixels (HEIGHT, width) in 0..1, ink high, and what is written on it."""

    image: Image
    digits: tuple[int, ...]

    @property
    def labels(self) -> tuple[int, ...]:
        """Its digits as classes; class 0 is the blank."""
        return tuple(digit + 1 for digit in self.digits)

    @property
    def width(self) -> int:
        """Its width in pixels."""
        return self.image.shape[1]


@dataclass(frozen=True)
class Scans:
    """Scanned digits: pixels (n, 8, 8) in 0..1 and the digit of each."""

    images: NDArray[np.float64]
    digits: tuple[int, ...]


def load_scans() -> tuple[Scans, Scans]:
    """The scans for training and those held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = np.asarray(data.images, np.float64) / 16.0
    digits = tuple(int(digit) for digit in data.target)
    cut = TRAINING_DIGITS
    return Scans(images[:cut], digits[:cut]), Scans(images[cut:], digits[cut:])


@dataclass(frozen=True)
class Variation:
    """How much the digits of a line differ from their scans.

    Args:
        turn: the largest rotation, in radians.
        slant: the largest shift per row, in rows.
        stretch: how far width may be from its usual value, as a fraction.
        ink: the largest change of stroke weight: values are raised to exp(±ink).
        blots: the largest number of blots for each digit of the line.
    """

    turn: float
    slant: float
    stretch: float
    ink: float
    blots: float


FOR_TRAINING = Variation(turn=0.3, slant=0.3, stretch=0.2, ink=0.6, blots=0.6)
HELD_OUT = Variation(turn=0.1, slant=0.1, stretch=0.15, ink=0.2, blots=0.0)


def compose_lines(
    scans: Scans, count: int, seed: int, part: int, variation: Variation
) -> list[Line]:
    """Lines that use the scans about equally often.

    Args:
        scans: the digits to write with.
        count: the number of lines.
        seed: the same seed gives the same lines.
        part: keeps the streams of training and test apart.
        variation: how much the digits differ from their scans.
    """
    order = _endless_order(len(scans.digits), seed, part)
    return [
        _compose_line(scans, order, Draws(seed, part, 1, index), variation)
        for index in range(count)
    ]


def _endless_order(count: int, seed: int, part: int) -> Iterator[int]:
    rounds = Draws(seed, part, 0)
    while True:
        yield from rounds.order(count)


def _compose_line(scans: Scans, order: Iterator[int], draws: Draws, variation: Variation) -> Line:
    chosen = [next(order) for _ in range(draws.integer(3, 12))]
    size = draws.between(1.3, 1.75)
    gap = draws.between(-1.0, 4.0)
    glyphs = [_warp(scans.images[index], draws, size, variation) for index in chosen]
    starts, x = [], draws.between(1.0, 6.0)
    for glyph in glyphs:
        starts.append(round(x))
        x += glyph.shape[1] + gap + draws.between(-0.5, 1.5)
    width = _padded(starts[-1] + glyphs[-1].shape[1] + draws.integer(1, 6))
    page = np.zeros((HEIGHT, width))
    for start, glyph in zip(starts, glyphs, strict=True):
        top = draws.integer(0, HEIGHT - glyph.shape[0])
        window = page[top : top + glyph.shape[0], start : start + glyph.shape[1]]
        np.maximum(window, glyph, out=window)
    for _ in range(draws.integer(0, round(variation.blots * len(chosen)))):
        row, column = draws.integer(0, HEIGHT - 4), draws.integer(0, width - 4)
        page[row : row + 4, column : column + 4] = draws.between(0.0, 1.0)
    ink, noise = draws.between(0.7, 1.0), draws.between(0.0, 0.25)
    speckle = draws.uniforms(page.size).reshape(page.shape) - 0.5
    image = np.clip(page * ink + speckle * noise, 0.0, 1.0).astype(np.float32)
    return Line(image, tuple(scans.digits[index] for index in chosen))


def _padded(width: int) -> int:
    return -(-width // WIDTH_STEP) * WIDTH_STEP


def _warp(
    scan: NDArray[np.float64], draws: Draws, size: float, variation: Variation
) -> NDArray[np.float64]:
    """The scan scaled, slanted and rotated, without its empty columns; bilinear."""
    scale_y = size * draws.between(0.92, 1.08)
    scale_x = size * draws.between(1.0 - variation.stretch, 1.0 + variation.stretch)
    angle = draws.between(-variation.turn, variation.turn)
    slant = draws.between(-variation.slant, variation.slant)
    weight = math.exp(draws.between(-variation.ink, variation.ink))
    height = min(HEIGHT, math.ceil(8 * scale_y) + 1)
    width = math.ceil(8 * scale_x) + 3
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    y -= (height - 1) / 2
    x -= (width - 1) / 2
    cosine, sine = math.cos(angle), math.sin(angle)
    source_y = (cosine * y - sine * x) / scale_y + 3.5
    source_x = (sine * y + cosine * x + slant * y) / scale_x + 3.5
    glyph = _sample(scan, source_y, source_x) ** weight
    inked = np.flatnonzero(glyph.max(axis=0) > 0.1)
    return glyph[:, inked[0] : inked[-1] + 1]


def _sample(
    scan: NDArray[np.float64], y: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    page = np.zeros((scan.shape[0] + 4, scan.shape[1] + 4))
    page[2:-2, 2:-2] = scan
    y = np.clip(y + 2.0, 0.0, page.shape[0] - 1.001)
    x = np.clip(x + 2.0, 0.0, page.shape[1] - 1.001)
    top, left = y.astype(np.intp), x.astype(np.intp)
    down, right = y - top, x - left
    upper = page[top, left] * (1 - right) + page[top, left + 1] * right
    lower = page[top + 1, left] * (1 - right) + page[top + 1, left + 1] * right
    return upper * (1 - down) + lower * down


def stack(lines: Sequence[Line]) -> Image:
    """The lines as one batch (n, 1, HEIGHT, width of the widest), the others padded with paper."""
    width = max(line.width for line in lines)
    batch = np.zeros((len(lines), 1, HEIGHT, width), np.float32)
    for row, line in enumerate(lines):
        batch[row, 0, :, : line.width] = line.image
    return batch


def batches_of_similar_width(
    lines: Sequence[Line], size: int, draws: Draws | None = None
) -> list[list[int]]:
    """Batches of lines of about the same width, by index; in random order when draws are given."""
    by_width = sorted(range(len(lines)), key=lambda index: lines[index].width)
    if draws is not None:
        jitter = draws.uniforms(len(lines)) * 24.0
        by_width.sort(key=lambda index: lines[index].width + float(jitter[index]))
    batches = [by_width[start : start + size] for start in range(0, len(lines), size)]
    return batches if draws is None else [batches[index] for index in draws.order(len(batches))]
