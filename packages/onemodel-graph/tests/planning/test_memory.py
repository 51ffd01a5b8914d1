import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.memory import build
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Slot, constant
from onemodel_kernels import Array, cached_bytes, release_cached


def chain(length, size=1000):
    """x + x + … in a chain."""
    planner = Planner(Context())
    x = Slot("float32", (size,))
    value = x
    for _ in range(length):
        value = planner.emit("Add", value, x)
    return planner, x, value


def test_a_chain_needs_no_more_than_two_buffers():
    planner, x, y = chain(50)
    program, labels = build(planner.calls, [x], [y])
    assert len(labels) == 50
    assert program.arena_bytes <= 2 * (4000 + 64)
    data = np.arange(1000, dtype=np.float32)
    (got,) = program.run([Array.from_numpy(data)])
    np.testing.assert_array_equal(np.asarray(got), data * 51)


def test_calls_that_nothing_needs_are_left_out():
    planner, x, y = chain(3)
    planner.emit("Mul", y, x)
    _, labels = build(planner.calls, [x], [y])
    assert len(labels) == 3


def test_views_keep_their_base_alive():
    planner = Planner(Context())
    x = Slot("float32", (2, 6))
    a = planner.emit("Add", x, x)
    view = planner.emit("Reshape", a, shape=(3, 4))
    b = planner.emit("Mul", x, x)
    c = planner.emit("Sub", b, x)
    d = planner.emit("Reshape", c, shape=(3, 4))
    y = planner.emit("Add", view, d)
    program, _ = build(planner.calls, [x], [y])
    data = np.arange(12, dtype=np.float32).reshape(2, 6)
    (got,) = program.run([Array.from_numpy(data)])
    want = (data + data).reshape(3, 4) + (data * data - data).reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(got), want)


def test_results_that_share_memory_do_not_alias():
    planner = Planner(Context())
    x = Slot("float32", (4,))
    a = planner.emit("Add", x, x)
    view = planner.emit("Reshape", a, shape=(2, 2))
    program, _ = build(planner.calls, [x], [a, view])
    first, second = program.run([Array.from_numpy(np.ones(4, np.float32))])
    assert not first.overlaps(second)


def test_shape_chains_become_constants():
    planner = Planner(Context())
    x = Slot("float32", (2, 3, 4))
    shape = planner.emit("Shape", x, start=0, end=2)
    both = planner.emit("Mul", shape, planner.constant([1, 5], "int64"))
    assert both.array is not None and both.array.tolist() == [2, 15]
    assert planner.calls == []


@pytest.mark.parametrize(
    ("shape", "operator", "attributes"),
    [
        ((1, 6, 4), "Slice", {"starts": (2,), "ends": (5,), "axes": (1,)}),
        ((6, 4), "Slice", {"starts": (-2,), "ends": (99,), "axes": (0,)}),
        ((6, 4), "Slice", {"starts": (0,), "ends": (4,), "axes": (1,), "steps": (1,)}),
        ((1, 6, 4), "Split", {"axis": 1, "split": (1, 5)}),
        ((5, 1, 3), "Transpose", {"perm": (1, 0, 2)}),
        ((5, 1, 3), "Transpose", {"perm": (0, 2, 1)}),
        ((2, 3), "Expand", {"shape": (1, 2, 3)}),
        ((2, 3), "Expand", {"shape": (1, 1)}),
        ((2, 3), "Tile", {"repeats": (1, 1)}),
        ((2, 3), "Cast", {"to": "float32"}),
        ((2, 3), "Pad", {"pads": (0, 0, 0, 0)}),
    ],
)
def test_what_moves_nothing_is_a_view(shape, operator, attributes):
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    planner = Planner(Context())
    x = Slot("float32", shape)
    y = planner.emit("Add", x, x)
    before = len(planner.calls)
    shown = planner.emit(operator, y, **attributes)
    assert len(planner.calls) == before
    parts = list(shown) if isinstance(shown, tuple) else [shown]
    program, _ = build(planner.calls, [x], parts)
    known = Planner(Context())
    folded = known.emit(operator, constant(Array.from_numpy(data + data)), **attributes)
    wanted = list(folded) if isinstance(folded, tuple) else [folded]
    for got, want in zip(program.run([Array.from_numpy(data)]), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want.array))


def test_plans_of_other_shapes_keep_no_working_memory():
    nodes = [node("Exp", ["x"], ["a"]), node("Neg", ["a"], ["b"]), node("Add", ["b", "x"], ["y"])]
    session = og.Session(
        model(nodes, {"x": (np.float32, ("N",))}, ["y"]).SerializeToString(), "exact"
    )
    sizes = [1 << 19, 3 << 18, 5 << 17]
    xs = [np.linspace(0, 1, size, dtype=np.float32) for size in sizes]
    want = [session.run({"x": x})[0].tobytes() for x in xs]
    release_cached()
    # The outputs stay; what is kept of freed memory is the arenas of the first two plans.
    outputs = [session.run({"x": x})[0] for x in xs]
    assert cached_bytes() >= 4 * (sizes[0] + sizes[1])
    assert [y.tobytes() for y in outputs] == want
