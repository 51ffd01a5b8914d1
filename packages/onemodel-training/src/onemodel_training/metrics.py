"""Figures that people read: accuracy, edit distance, error rates of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from onemodel_kernels.errors import ShapeError
from onemodel_tensors import Tensor

__all__ = ["Ratio", "accuracy", "character_error_rate", "ctc_greedy_decode", "edit_distance"]


class Ratio(NamedTuple):
    """A figure as a sum and what it is divided by, so that batches add up exactly."""

    amount: float
    of: float

    @property
    def value(self) -> float:
        """amount / of; NaN when there was nothing to count."""
        return self.amount / self.of if self.of else float("nan")

    def __add__(self, other: object) -> Ratio:
        if not isinstance(other, Ratio):
            return NotImplemented
        return Ratio(self.amount + other.amount, self.of + other.of)


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """The least number of insertions, deletions and substitutions between two sequences.

    Source: Levenshtein 1966, by the row-wise recurrence of Wagner & Fischer 1974.
    """
    if len(first) < len(second):
        first, second = second, first
    row = list(range(len(second) + 1))
    for line, symbol in enumerate(first, 1):
        diagonal, row[0] = row[0], line
        for column, other in enumerate(second, 1):
            substituted = diagonal + (symbol != other)
            diagonal = row[column]
            row[column] = min(substituted, diagonal + 1, row[column - 1] + 1)
    return row[-1]


def character_error_rate(read: Sequence[Sequence[Any]], truth: Sequence[Sequence[Any]]) -> Ratio:
    """Edit distances of all pairs over the lengths of the truth."""
    if len(read) != len(truth):
        raise ShapeError(
            f"character_error_rate: expected as many readings as truths, got {len(read)} and "
            f"{len(truth)}"
        )
    errors = sum(edit_distance(one, other) for one, other in zip(read, truth, strict=True))
    return Ratio(errors, sum(len(other) for other in truth))


def accuracy(scores: Tensor, target: Tensor) -> Ratio:
    """How many rows of (N, C, …) have their largest score at the target class (N, …)."""
    hits = scores.detach().argmax(1) == target
    return Ratio(float(hits.to("int64").sum().item()), float(target.numel()))


def ctc_greedy_decode(
    scores: Tensor, lengths: Sequence[int] | None = None, blank: int = 0
) -> list[list[int]]:
    """The likeliest class at each step, repeats merged, blanks dropped.

    Args:
        scores: (T, N, C), any monotone scores.
        lengths: the steps of each sequence that count.
        blank: the class that stands for no symbol.

    Returns:
        One list of classes for each of the N sequences. Source: Graves et al. 2006.
    """
    if scores.ndim != 3:
        raise ShapeError(f"ctc_greedy_decode: expected scores (T, N, C), got {tuple(scores.shape)}")
    columns: list[list[int]] = scores.detach().argmax(2).transpose(0, 1).tolist()
    ends = [len(column) for column in columns] if lengths is None else list(lengths)
    return [
        [symbol for symbol, _ in groupby(column[:end]) if symbol != blank]
        for column, end in zip(columns, ends, strict=True)
    ]
