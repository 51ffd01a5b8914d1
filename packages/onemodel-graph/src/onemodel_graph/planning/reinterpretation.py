"""Operators that look at the elements of an array one by one, between programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.node_planning import Host
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import SIZES, Known, count
from onemodel_graph.planning.steps import Step, handler
from onemodel_kernels import Array
from onemodel_kernels.errors import BoundsError, DtypeError, ShapeError


@handler("BitCast", "input", "to:dtype!")
def _bit_cast(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    to = step.node.attributes["to"]

    def run(arguments: list[Any]) -> Sequence[Any]:
        (x,) = arguments
        if SIZES.get(to) != x.itemsize:
            raise DtypeError(f"BitCast: {x.dtype} and {to} must have the same number of bits")
        return [Array.from_buffer(x.contiguous().tobytes(), to, x.shape)]

    raise Host(run, inputs)


def _determinant(rows: list[list[float]]) -> float:
    """Gaussian elimination with the largest pivot of each column, in double precision."""
    rows = [list(row) for row in rows]
    result = 1.0
    for column in range(len(rows)):
        best = max(range(column, len(rows)), key=lambda i: abs(rows[i][column]))
        pivot = rows[best][column]
        if pivot == 0:
            return 0.0
        if best != column:
            rows[best], rows[column] = rows[column], rows[best]
            result = -result
        result *= pivot
        for row in rows[column + 1 :]:
            factor = row[column] / pivot
            for index in range(column + 1, len(rows)):
                row[index] -= factor * rows[column][index]
    return result


@handler("Det", "X")
def _det(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    def run(arguments: list[Any]) -> Sequence[Any]:
        (x,) = arguments
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ShapeError(f"Det: expected square matrices, got shape {x.shape}")
        lead = x.shape[:-2]
        stack = x.contiguous().reshape((count(lead), *x.shape[-2:])).tolist()
        found = [_determinant(matrix) for matrix in stack]
        return [tensor(found, x.dtype).reshape(lead)]

    raise Host(run, inputs)


WIDEST = 1 << 28
"""Columns that a table of n-grams may have."""


@handler(
    "TfIdfVectorizer",
    "X",
    "min_gram_length:int! max_gram_length:int! max_skip_count:int! ngram_counts:ints! "
    "ngram_indexes:ints! weights:floats pool_int64s:ints mode:string!",
)
def _tf_idf(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    attributes = step.node.attributes
    shortest, longest = attributes["min_gram_length"], attributes["max_gram_length"]
    skips = attributes["max_skip_count"]
    starts = attributes["ngram_counts"]
    places = attributes["ngram_indexes"]
    weights = attributes.get("weights")
    pool = attributes.get("pool_int64s", ())
    if places and not 0 <= min(places) <= max(places) < WIDEST:
        raise BoundsError(
            f"TfIdfVectorizer: expected ngram_indexes from 0 to {WIDEST - 1}, got {max(places)}"
        )
    known: dict[tuple[int, ...], int] = {}
    number = 0
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        if not 0 <= start <= end <= len(pool):
            raise BoundsError(
                f"TfIdfVectorizer: ngram_counts {starts} do not fit a pool of {len(pool)}"
            )
        for at in range(start, end, length):
            known.setdefault(tuple(pool[at : at + length]), number)
            number += 1

    def row(items: list[int]) -> list[float]:
        counts = [0.0] * (max(places) + 1 if places else 0)
        numbers = [0.0] * len(places)
        for length in range(max(shortest, 1), min(longest, len(items)) + 1):
            for skip in range(1, (1 if length == 1 else min(skips, len(items)) + 1) + 1):
                for start in range(len(items) - (length - 1) * skip):
                    gram = tuple(items[start : start + (length - 1) * skip + 1 : skip])
                    index = known.get(gram)
                    if index is not None:
                        numbers[index] += 1.0
        for index, found in enumerate(numbers):
            weight = 1.0 if weights is None else weights[index]
            if attributes["mode"] == "TF":
                value = found
            elif attributes["mode"] == "IDF":
                value = weight if found else 0.0
            else:
                value = found * weight
            counts[places[index]] = value
        return counts

    def run(arguments: list[Any]) -> Sequence[Any]:
        (x,) = arguments
        listed = x.tolist()
        result = [row(part) for part in listed] if x.ndim == 2 else row(listed)
        return [tensor(result, "float32")]

    raise Host(run, inputs)
