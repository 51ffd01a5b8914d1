"""From log-probabilities to digits, and how many of them are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from digit_lines.lines import BLANK

Digits = tuple[int, ...]


def read_digits(log_probs: NDArray[np.float32]) -> list[Digits]:
    """What each line of the batch says: the best class of each step, repeats and blanks dropped.

    Args:
        log_probs: (steps, batch, classes).
    """
    best = log_probs.argmax(axis=-1)
    keep = best != BLANK
    keep[1:] &= best[1:] != best[:-1]
    return [
        tuple(int(label) - 1 for label in best[keep[:, row], row]) for row in range(best.shape[1])
    ]


def edit_distance(read: Sequence[int], written: Sequence[int]) -> int:
    """The least number of insertions, deletions and replacements between the two."""
    row = list(range(len(written) + 1))
    for i, left in enumerate(read, start=1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(written, start=1):
            change = diagonal + (left != right)
            diagonal, row[j] = row[j], min(change, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def character_error(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> float:
    """The edit distances of all (read, written) pairs over the number of digits written."""
    wrong = total = 0
    for read, written in pairs:
        wrong += edit_distance(read, written)
        total += len(written)
    return wrong / total if total else 0.0
