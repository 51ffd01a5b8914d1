"""Edit distance, error rates and decoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onemodel_tensors as om
from onemodel_kernels.errors import ShapeError
from onemodel_training.metrics import (
    Ratio,
    accuracy,
    character_error_rate,
    ctc_greedy_decode,
    edit_distance,
)

words = st.text("abc", max_size=6)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("ab", "ba", 2)],
)
def test_edit_distance_known(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


def slow_distance(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    return min(
        slow_distance(first[1:], second[1:]) + (first[0] != second[0]),
        slow_distance(first[1:], second) + 1,
        slow_distance(first, second[1:]) + 1,
    )


@given(words, words)
def test_edit_distance_is_the_recurrence(first: str, second: str) -> None:
    assert edit_distance(first, second) == slow_distance(first, second)


@given(words, words, words)
def test_edit_distance_is_a_metric(a: str, b: str, c: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


def test_ratios_add_up() -> None:
    total = character_error_rate(["ab"], ["abc"]) + character_error_rate(["x"], ["x"])
    assert total == Ratio(1, 4)
    assert total.value == 0.25
    assert Ratio(0, 0).value != Ratio(0, 0).value
    with pytest.raises(ShapeError, match="as many readings as truths"):
        character_error_rate(["a"], [])


def test_accuracy_counts_rows() -> None:
    scores = om.tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    assert accuracy(scores, om.tensor([1, 0, 0])) == Ratio(2.0, 3.0)


def test_greedy_decoding_merges_repeats_and_drops_blanks() -> None:
    path = [[1, 0], [1, 2], [0, 2], [1, 2], [1, 0]]
    scores = om.zeros(5, 2, 3)
    for step, classes in enumerate(path):
        for column, symbol in enumerate(classes):
            scores[step, column, symbol] = 1.0
    assert ctc_greedy_decode(scores) == [[1, 1], [2]]
    assert ctc_greedy_decode(scores, [2, 5]) == [[1], [2]]
