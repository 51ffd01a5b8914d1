"""Lines of handwritten digits, composed from the scans that scikit-learn ships.

``load_digits`` has 1,797 digits of 8×8 pixels, written by 43 people. The first 1,437 make the lines
for training, the last 360, other writers among them, those held out. A line has 3 to 12 digits;
size, slant, rotation, spacing, height on the line, ink and noise vary, so its width varies too.
Lines for training are distorted more than any that has to be read.
"""

from __future__ import annotations

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

SCAN = 8  # pixels of a scan, in both directions
GLYPH_WIDTH = 22  # wide enough for a scan at the largest scale, slant and rotation

Image = NDArray[np.float32]
Pixels = NDArray[np.float64]


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

    images: Pixels
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
    glyphs = _warp(scans.images[chosen], draws, variation)
    gap = draws.between(0.0, 4.0)
    starts, x = [], draws.between(1.0, 6.0)
    for glyph in glyphs:
        starts.append(round(x))
        x += glyph.shape[1] + gap + draws.between(-0.5, 1.5)
    width = _padded(starts[-1] + glyphs[-1].shape[1] + draws.integer(1, 6))
    page = np.zeros((HEIGHT, width))
    for start, glyph in zip(starts, glyphs, strict=True):
        window = page[:, start : start + glyph.shape[1]]
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


def _warp(scans: Pixels, draws: Draws, variation: Variation) -> list[Pixels]:
    """The scans (n, 8, 8) scaled, slanted, rotated and placed in the height of the line.

    Bilinear. Gives n glyphs (HEIGHT, width), each as wide as its ink.
    """

    def each(low: float, high: float) -> Pixels:
        return low + (high - low) * draws.uniforms(len(scans)).reshape(-1, 1, 1)

    size = draws.between(1.3, 1.75)
    scale_y = size * each(0.92, 1.08)
    scale_x = size * each(1.0 - variation.stretch, 1.0 + variation.stretch)
    angle = each(-variation.turn, variation.turn)
    slant = each(-variation.slant, variation.slant)
    weight = np.exp(each(-variation.ink, variation.ink))
    room = np.maximum(HEIGHT - 1 - SCAN * scale_y, 0.0) / 2
    y = np.arange(HEIGHT).reshape(1, -1, 1) - (HEIGHT - 1) / 2 - room * each(-1.0, 1.0)
    x = np.arange(GLYPH_WIDTH).reshape(1, 1, -1) - (GLYPH_WIDTH - 1) / 2
    cosine, sine = np.cos(angle), np.sin(angle)
    source_y = (cosine * y - sine * x) / scale_y
    source_x = (sine * y + cosine * x + slant * y) / scale_x
    glyphs = _sample(scans, source_y, source_x) ** weight
    return [_inked(glyph) for glyph in glyphs]


def _inked(glyph: Pixels) -> Pixels:
    columns = np.flatnonzero(glyph.max(axis=0) > 0.1)
    return glyph[:, columns[0] : columns[-1] + 1]


def _sample(scans: Pixels, y: Pixels, x: Pixels) -> Pixels:
    """Each scan at positions (n, rows, columns) measured from its middle; paper around it."""
    page = np.pad(scans, ((0, 0), (2, 2), (2, 2)))
    last = SCAN + 3 - 1e-3
    middle = (SCAN + 3) / 2
    y, x = np.clip(y + middle, 0.0, last), np.clip(x + middle, 0.0, last)
    top, left = y.astype(np.intp), x.astype(np.intp)
    down, right = y - top, x - left
    scan = np.arange(len(scans)).reshape(-1, 1, 1)
    upper = page[scan, top, left] * (1 - right) + page[scan, top, left + 1] * right
    lower = page[scan, top + 1, left] * (1 - right) + page[scan, top + 1, left + 1] * right
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
