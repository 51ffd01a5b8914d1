"""The reshape rule: the one possible reading is taken, several are refused."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onemodel_kernels.errors import ShapeError
from onemodel_kernels.ops import extents
from onemodel_trace.extents import Axis, ExtentScope, SymbolicExtent, SymbolicShapeError

SIZES = {"B": 2, "T": 7, "W": 37, "N": 9, "P": 6}


def symbols_of(**sizes):
    scope = ExtentScope()
    return [SymbolicExtent(scope.declare(Axis(n), s), scope) for n, s in sizes.items()]


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (lambda B, T: (B, T, 24), lambda B, T: (B, T, 4, 6), "(B, T, 4, 6)"),
        (lambda B, T: (B, 3, 8), lambda B, T: (B, -1), "(B, 24)"),
        (lambda B, T: (B, T, 24), lambda B, T: (B * T, 24), "(B*T, 24)"),
        (lambda B, T: (B * T, 24), lambda B, T: (B, T, -1), "(B, T, 24)"),
        (lambda B, T: (B, T, 24), lambda B, T: (-1, 24), "(B*T, 24)"),
        (lambda B, T: (B * T, 24), lambda B, T: (B, -1, 24), "(B, T, 24)"),
        (lambda B, T: (B, T, 24), lambda B, T: (B, T, 2, 12), "(B, T, 2, 12)"),
        (lambda B, T: (B, 5, 8), lambda B, T: (2, 40), "(B, 40)"),
        (lambda B, T: (B, 4, T), lambda B, T: (B, -1), "(B, 4*T)"),
        (lambda B, T: (B, 4 * T), lambda B, T: (B, T, 4), "(B, T, 4)"),
        (lambda B, T: (B, T, 24), lambda B, T: (-1,), "(24*B*T)"),
        (lambda B, T: (B, T + 1, 24), lambda B, T: (B, -1, 4, 6), "(B, T + 1, 4, 6)"),
        (lambda B, T: (B, 2 * T, 24), lambda B, T: (B, 2, T, 24), "(B, 2, T, 24)"),
        (lambda B, T: (T, B, 8, 6), lambda B, T: (T, B, -1), "(T, B, 48)"),
        (lambda B, T: (B, 12, 6, 8), lambda B, T: (B * 6, 4, 24), "(6*B, 4, 24)"),
    ],
)
def test_readings(shape, target, expected):
    B, T = symbols_of(B=2, T=7)
    result = extents.reshape(shape(B, T), target(B, T))
    assert f"({', '.join(map(repr, result))})" == expected


@pytest.mark.parametrize(
    ("sizes", "shape", "target", "text"),
    [
        ({"B": 2}, lambda B: (B, 3, 8), (2, -1), "ambiguous"),
        ({"B": 2}, lambda B: (B, 3, 8), (2, 24), None),
        ({"B": 4}, lambda B: (B, 4, 16), (4, 4, 4, 4), "(B, 4, 4, 4)"),
        ({"T": 5, "B": 2}, lambda T, B: (T, B, 32), (5, 8, 8), "ambiguous"),
        ({"B": 6}, lambda B: (B, 4), (3, 8), "mixes"),
        ({"N": 9}, lambda N: (N, 6, 4), (-1, 3, 6, 4), "mixes"),
        ({"B": 5}, lambda B: (B, 3, 8), (5, -1), "mixes"),
        ({"B": 5}, lambda B: (B, 3, 8), (5, 24), "(B, 24)"),
    ],
)
def test_plain_numbers_are_read_or_refused(sizes, shape, target, text):
    symbols = symbols_of(**sizes)
    if text in ("ambiguous", "mixes"):
        with pytest.raises(SymbolicShapeError, match=text):
            extents.reshape(shape(*symbols), target)
        return
    result = extents.reshape(shape(*symbols), target)
    if text:
        assert f"({', '.join(map(repr, result))})" == text


def test_element_counts_must_agree():
    (B,) = symbols_of(B=2)
    with pytest.raises(ShapeError, match="do not fit"):
        extents.reshape((B, 3), (B, 4))
    with pytest.raises(ShapeError, match="more than one -1"):
        extents.reshape((B, 3), (-1, -1))


@st.composite
def programs(draw):
    """A hidden program of merges and splits of neighbouring axes, in extents that are known."""
    names = draw(st.lists(st.sampled_from(list(SIZES)), min_size=1, max_size=2, unique=True))
    symbols = symbols_of(**{name: SIZES[name] for name in names})
    shape = [*symbols]
    for number in draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)):
        shape.insert(draw(st.integers(0, len(shape))), number)
    moves = draw(
        st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(2, 6)), max_size=4)
    )
    target = [(extent,) for extent in shape]
    for merge, place, number in moves:
        place %= len(target)
        if merge and place + 1 < len(target):
            target[place : place + 2] = [target[place] + target[place + 1]]
        elif len(target[place]) > 1:
            cut = 1 + number % (len(target[place]) - 1)
            target[place : place + 1] = [target[place][:cut], target[place][cut:]]
        elif type(target[place][0]) is int and target[place][0] % number == 0:
            target[place : place + 1] = [(number,), (target[place][0] // number,)]
    return tuple(shape), tuple(extents.product(group) for group in target)


def same(left, right):
    return all(a == b for a, b in zip(left, right, strict=True))


@settings(max_examples=1500, deadline=None)
@given(programs(), st.data())
def test_a_program_in_extents_is_read_as_it_was_written(program, data):
    shape, target = program
    asked = list(target)
    if data.draw(st.booleans()):
        asked[data.draw(st.integers(0, len(asked) - 1))] = -1
    try:
        result = extents.reshape(shape, tuple(asked))
    except SymbolicShapeError:
        assert -1 in asked, "a target given in extents only has one reading"
        return
    assert same(result, target)


@settings(max_examples=3000, deadline=None)
@given(programs(), st.data())
def test_a_program_in_plain_numbers_is_never_read_wrongly(program, data):
    shape, target = program
    examples = [t if type(t) is int else t.example for t in target]
    asked = list(examples)
    if data.draw(st.booleans()):
        asked[data.draw(st.integers(0, len(asked) - 1))] = -1
    assume(any(type(extent) is not int for extent in shape))
    try:
        result = extents.reshape(shape, tuple(asked))
    except SymbolicShapeError:
        return
    assert prod(r if type(r) is int else r.example for r in result) == prod(examples)
    assert same(result, target)
