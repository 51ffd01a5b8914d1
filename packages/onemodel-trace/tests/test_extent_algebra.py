"""The algebra agrees with plain integers: whatever it computes is right at every permitted size."""

from __future__ import annotations

import operator
from itertools import product as grid

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onemodel_kernels.errors import ShapeError
from onemodel_kernels.ops import extents
from onemodel_trace.extents import Axis, ExtentScope, SymbolicExtent, SymbolicShapeError
from onemodel_trace.extents.bounds import bounds

EXAMPLES = {"B": 2, "T": 7, "W": 37}
SIZES = (1, 2, 3, 7, 8, 37, 40)


def new_scope(**limits: dict[str, int]) -> tuple[ExtentScope, dict[str, SymbolicExtent]]:
    scope = ExtentScope()
    symbols = {}
    for name, example in EXAMPLES.items():
        axis = Axis(name, **limits.get(name, {}))
        symbols[name] = SymbolicExtent(scope.declare(axis, example), scope)
    return scope, symbols


def value_at(extent: object, sizes: dict[str, int]) -> int:
    return extent.expression.evaluate(sizes) if isinstance(extent, SymbolicExtent) else extent


def sizes_grid(names=tuple(EXAMPLES)):
    return [dict(zip(names, values)) for values in grid(SIZES, repeat=len(names))]


# An operation is a function on extents that works for ints and for symbols alike.
steps = st.one_of(
    st.tuples(st.sampled_from(["add", "sub", "mul"]), st.integers(0, 6)),
    st.tuples(st.just("floordiv"), st.integers(1, 6)),
    st.tuples(st.sampled_from(["add", "mul"]), st.sampled_from(list(EXAMPLES))),
    # A window may start in the padding only as far as it reaches, as in every pool.
    st.tuples(
        st.just("window"),
        st.tuples(
            st.integers(3, 4), st.integers(1, 3), st.integers(1, 2), st.integers(0, 1),
            st.integers(0, 2), st.booleans(),
        ),
    ),
    st.tuples(
        st.just("window"),
        st.tuples(
            st.integers(1, 2), st.integers(1, 3), st.just(1), st.just(0), st.just(0), st.booleans(),
        ),
    ),
    st.tuples(st.just("same_window"), st.integers(1, 3)),
    st.tuples(
        st.just("transposed_window"),
        st.tuples(st.integers(1, 4), st.integers(1, 3), st.just(1), st.integers(0, 1),
                  st.integers(0, 1), st.just(0)),
    ),
    st.tuples(
        st.just("slice"),
        st.tuples(
            st.sampled_from([0, 1, 2, -1, -3, 2**63 - 1]),
            st.sampled_from([2**63 - 1, -1, -2, -(2**63), 1]),
            st.sampled_from([1, 2, 3, -1, -2]),
        ),
    ),
    st.tuples(st.just("scaled"), st.sampled_from([2.0, 0.5, 1.5, 3.0])),
)  # fmt: skip


def apply_step(value, step, symbols):
    name, argument = step
    if name == "slice":
        return extents.slice_length(value, *argument)
    if name in ("window", "transposed_window"):
        return getattr(extents, name)(value, *argument)
    if isinstance(argument, str):
        argument = symbols[argument]
    return getattr(extents, name)(value, argument)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(list(EXAMPLES)), st.lists(steps, min_size=1, max_size=5))
def test_what_is_computed_symbolically_is_right_at_every_size(start, program):
    scope, symbols = new_scope()
    value = symbols[start]
    try:
        for step in program:
            value = apply_step(value, step, symbols)
    except (SymbolicShapeError, ShapeError):
        assume(False)
    checked = 0
    for sizes in sizes_grid():
        if not all(guard.holds(sizes) for guard in scope.guards):
            continue
        expected = sizes[start]
        try:
            for step in program:
                expected = apply_step(expected, step, sizes)
                # ONNX scales in float32, which holds every integer up to 2^24 only.
                if not 0 <= expected < 2**24:
                    break
            else:
                assert value_at(value, sizes) == expected
                checked += 1
        except ShapeError:
            continue
    if isinstance(value, SymbolicExtent):
        assert value.example == value_at(value, EXAMPLES)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(steps, max_size=3),
    st.lists(steps, max_size=3),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
)
def test_a_decision_holds_at_every_permitted_size(left_program, right_program, relation):
    scope, symbols = new_scope(T={"minimum": 3, "maximum": 40})
    values = []
    for program in (left_program, right_program):
        value = symbols["T"]
        try:
            for step in program:
                value = apply_step(value, step, symbols)
        except (SymbolicShapeError, ShapeError):
            assume(False)
        values.append(value)
    left, right = values
    assume(isinstance(left, SymbolicExtent))
    wanted = right.expression if isinstance(right, SymbolicExtent) else None
    if wanted is None:
        from onemodel_trace.extents import expression_of

        wanted = expression_of(right)
    answer = scope.decide(left.expression, relation, wanted)
    compare = {
        "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
        ">": operator.gt, ">=": operator.ge,
    }[relation]  # fmt: skip
    low, high = bounds(left.expression, scope.permitted)
    for sizes in sizes_grid():
        if not all(guard.holds(sizes) for guard in scope.guards) or not 3 <= sizes["T"] <= 40:
            continue
        number = value_at(left, sizes)
        assert low is None or low <= number
        assert high is None or number <= high
        if answer is not None:
            assert compare(number, value_at(right, sizes)) is answer


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda B, T, W: T + 1 - 1, "T"),
        (lambda B, T, W: (T * 4) // 2, "2*T"),
        (lambda B, T, W: extents.window(W, 3, 1, 1, 1, 1), "W"),
        (lambda B, T, W: extents.window(W, 3, 2, 1, 1, 1), "(W + 1)//2"),
        (
            lambda B, T, W: extents.window(extents.window(W, 3, 2, 1, 1, 1), 3, 2, 1, 1, 1),
            "(W + 3)//4",
        ),
        (lambda B, T, W: extents.window(W * 4, 4, 4, 1, 0, 0), "W"),
        (lambda B, T, W: extents.transposed_window(W, 4, 2, 1, 1, 1, 0), "2*W"),
        (lambda B, T, W: extents.window(W + 2, 3, 1, 1, 0, 0), "W"),
        (lambda B, T, W: B * T * 24 // (B * 24), "T"),
        (lambda B, T, W: extents.slice_length(T, 1, 2**63 - 1, 1), "T - 1"),
        (lambda B, T, W: extents.slice_length(T, 0, 2**63 - 1, 2), "(T + 1)//2"),
        (lambda B, T, W: extents.slice_length(T, 2**63 - 1, -(2**63), -1), "T"),
        (lambda B, T, W: extents.slice_length(T + B, 0, T, 1), "T"),
        (lambda B, T, W: extents.total([T, T]), "2*T"),
        (lambda B, T, W: (W // 4) // 2, "W//8"),
    ],
)
def test_normal_form(program, expected):
    _, symbols = new_scope()
    assert repr(program(*symbols.values())) == expected


def test_a_declared_multiple_divides_exactly():
    scope = ExtentScope()
    size = SymbolicExtent(scope.declare(Axis("H", multiple=8), 16), scope)
    assert repr(size // 4 * 4) == "H"
    assert repr(size // 8) == "H//8"
    assert size % 4 == 0
    assert extents.reshape((size, 3), (size // 4, 4, 3)) == (size // 4, 4, 3)
    assert [guard.text for guard in scope.guards] == ["H % 8 == 0"]


@pytest.mark.parametrize(
    ("limits", "example"),
    [
        ({"minimum": 5}, 4),
        ({"maximum": 3}, 4),
        ({"multiple": 3}, 4),
        ({"multiple": 0}, 4),
        ({"minimum": -1}, 4),
    ],
)
def test_limits_that_the_example_breaks_are_refused(limits, example):
    with pytest.raises(ValueError, match="axis 'H'"):
        ExtentScope().declare(Axis("H", **limits), example)


def test_broadcast_and_unify():
    scope, symbols = new_scope()
    T, B = symbols["T"], symbols["B"]
    assert extents.broadcast_shapes((B, T, 24), (T, 1)) == (B, T, 24)
    assert extents.broadcast(1, T) == T
    assert scope.guards == []
    with pytest.raises(SymbolicShapeError, match=r"fixed extent 7 and T \(= 7\)"):
        extents.broadcast(7, T)
    with pytest.raises(SymbolicShapeError, match="differ in the recorded run"):
        extents.broadcast(B, T)
    half, also = extents.window(T, 3, 2, 1, 1, 1), extents.window(T, 1, 2, 1, 0, 0)
    assert half == also
    other = extents.window(T, 2, 2, 1, 0, 0) + 1
    assert extents.unify(half, other, "two branches") == half
    assert [guard.text for guard in scope.guards] == ["(T + 1)//2 == T//2 + 1"]
    assert scope.guards[0].source() == "((T + 1)//(2)) == (T//2) + 1".replace(
        "(T//2)", "((T)//(2))"
    )


def test_guards_are_written_in_the_grammar_that_sessions_read():
    from onemodel_graph.guards import Guard as Read

    scope = ExtentScope()
    x = SymbolicExtent(scope.declare(Axis("batch of lines", multiple=4), 8), scope)
    y = SymbolicExtent(scope.declare(Axis("for"), 5), scope)
    left = x // 3 * y + 1 - y * y
    right = extents.slice_length(y, -3, 2**63 - 1, 1)
    scope.assume("<=", left.expression, right.expression, "a test")
    for sizes in ({"batch of lines": 8, "for": 5}, {"batch of lines": 4, "for": 1}):
        for guard in scope.guards:
            assert Read(guard.source()).holds(sizes) is guard.holds(sizes)


def test_fixed_slice_ends():
    _, symbols = new_scope()
    with pytest.raises(SymbolicShapeError, match="fixed end 3"):
        extents.slice_length(symbols["T"], 0, 3, 1)
    _, symbols = new_scope(T={"minimum": 3})
    assert extents.slice_length(symbols["T"], 0, 3, 1) == 3
    assert extents.slice_length(symbols["T"], -3, 2**63 - 1, 1) == 3


def test_example_sizes_are_what_the_user_declared():
    scope, _ = new_scope(T={"multiple": 7})
    assert scope.symbol_sizes() == EXAMPLES


def test_guards_of_declared_limits():
    scope = ExtentScope()
    scope.declare(Axis("T", minimum=4, maximum=16, multiple=4), 8)
    assert [guard.source() for guard in scope.guards] == ["T >= 4", "T <= 16", "(T) % 4 == 0"]
    holding = [size for size in range(24) if all(g.holds({"T": size}) for g in scope.guards)]
    assert holding == [4, 8, 12, 16]
