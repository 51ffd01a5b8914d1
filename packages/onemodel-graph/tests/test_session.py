import dataclasses
import json
import threading

import numpy as np
import onnxruntime as ort
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.planning.numbers import tensor
from onemodel_kernels import Array, ops
from onemodel_kernels.errors import (
    AttributeValueError,
    DtypeError,
    OneModelError,
    ShapeError,
    UnsupportedError,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def affine(shape=("N", 3)):
    return model(
        [node("Mul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["y"])],
        {"x": (np.float32, shape)},
        ["y"],
        {"w": np.full(3, 2, np.float32), "b": np.ones(3, np.float32)},
    ).SerializeToString()


def test_runs_by_name_by_position_and_from_a_list():
    session = og.Session(affine())
    want = X * 2 + 1
    for got in (session.run({"x": X}), session.run(X), session.run([X]), session.run(x=X)):
        assert len(got) == 1
        np.testing.assert_array_equal(got[0], want)


def test_accepts_arrays_lists_and_strided_inputs():
    session = og.Session(affine())
    want = X * 2 + 1
    np.testing.assert_array_equal(session.run(Array.from_numpy(X))[0], want)
    np.testing.assert_array_equal(session.run({"x": X.tolist()})[0], want)
    np.testing.assert_array_equal(session.run(np.asfortranarray(X))[0], want)
    wide = np.zeros((2, 6), np.float32)
    wide[:, ::2] = X
    np.testing.assert_array_equal(session.run(wide[:, ::2])[0], want)


def test_one_plan_for_each_input_shape():
    session = og.Session(affine(), plans=2)
    for rows in (1, 2, 3, 2, 1, 5):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(session.run(x)[0], x * 2 + 1)
        assert len(session._planned.plans) <= 2


def test_inputs_are_checked_before_anything_is_computed():
    session = og.Session(affine())
    with pytest.raises(
        ShapeError, match=r"input 'x': expected 3 at axis 1 of \[N, 3\], got \(2, 4\)"
    ):
        session.run(np.ones((2, 4), np.float32))
    with pytest.raises(DtypeError, match=r"input 'x': expected float32, got float64"):
        session.run(np.ones((2, 3)))
    with pytest.raises(AttributeValueError, match=r"no input 'z'.*x"):
        session.run({"z": X})
    with pytest.raises(AttributeValueError, match=r"'x' is missing"):
        og.Session(affine()).run({})
    with pytest.raises(AttributeValueError, match=r"expected 1 inputs"):
        session.run(X, X)


def test_a_symbol_has_one_size_in_a_run():
    proto = model(
        [node("Add", ["x", "y"], ["z"])],
        {"x": (np.float32, ("N",)), "y": (np.float32, ("N",))},
        ["z"],
    )
    session = og.Session(proto.SerializeToString())
    with pytest.raises(ShapeError, match="'N' is 3 at axis 0 of 'x', but 1"):
        session.run(np.ones(3, np.float32), np.ones(1, np.float32))


def test_guards_in_the_metadata_are_checked():
    builder = og.GraphBuilder("g")
    x = builder.add_input("x", "float32", ("T",))
    (y,) = builder.add_node("Add", [x, x], ["y"], types=[("float32", ("T",))])
    builder.add_output(y)
    builder.add_metadata("onemodel.guards", '["T > 4"]')
    session = og.Session(builder.build())
    session.run(np.ones(5, np.float32))
    with pytest.raises(ShapeError, match=r"only where T > 4, but T = 3"):
        session.run(np.ones(3, np.float32))


def test_outputs_belong_to_the_caller():
    session = og.Session(affine())
    first = session.run(X)[0]
    kept = first.copy()
    session.run(X + 100)
    np.testing.assert_array_equal(first, kept)


def test_an_output_may_be_an_input_or_a_constant():
    proto = model(
        [node("Identity", ["x"], ["y"]), node("Identity", ["w"], ["z"])],
        {"x": (np.float32, ("N",))},
        ["y", "z", "x"],
        {"w": np.ones(2, np.float32)},
    )
    session = og.Session(proto.SerializeToString())
    x = np.ones(3, np.float32)
    y, z, again = session.run(x)
    x[:] = 7
    np.testing.assert_array_equal(y, np.ones(3))
    np.testing.assert_array_equal(z, np.ones(2))
    np.testing.assert_array_equal(again, np.ones(3))


def test_all_unsupported_nodes_are_listed():
    proto = model(
        [
            node("Frobnicate", ["x"], ["a"], name="first"),
            node("Add", ["a", "x"], ["b"]),
            node("Twiddle", ["b"], ["y"], name="second", domain="some.where"),
        ],
        {"x": (np.float32, (2,))},
        ["y"],
    )
    with pytest.raises(
        UnsupportedError, match=r"(?s)2 node.*'first'.*some\.where::Twiddle.*'second'"
    ):
        og.Session(proto.SerializeToString())


def test_errors_name_the_node_the_operator_and_the_shapes():
    proto = model(
        [node("Add", ["x", "w"], ["y"], name="the_sum")],
        {"x": (np.float32, ("N",))},
        ["y"],
        {"w": np.ones(3, np.float32)},
    )
    with pytest.raises(
        OneModelError, match=r"(?s)Add.*'the_sum'.*x: float32\[4\].*w: float32\[3\]"
    ):
        og.Session(proto.SerializeToString()).run(np.ones(4, np.float32))


def test_modes():
    assert og.Session(affine()).mode is og.ArithmeticMode.FAST
    exact = og.Session(affine(), mode="exact")
    assert exact.mode is og.ArithmeticMode.EXACT
    np.testing.assert_array_equal(exact.run(X)[0], X * 2 + 1)
    with pytest.raises(AttributeValueError, match="mode must be one of 'fast', 'exact'"):
        og.Session(affine(), mode="quick")


def test_exact_mode_lists_operators_without_an_exact_kernel(monkeypatch):
    inexact = dataclasses.replace(ops.get("LpPool"), exact=False)
    monkeypatch.setitem(ops._seen, ("", "LpPool"), inexact)
    proto = model(
        [
            node("LpPool", ["x"], ["a"], kernel_shape=[2, 2], name="pool"),
            node("LpPool", ["a"], ["y"], kernel_shape=[2, 2], name="again"),
        ],
        {"x": (np.float32, (1, 1, 4, 4))},
        ["y"],
    )
    data = proto.SerializeToString()
    with pytest.raises(UnsupportedError, match=r"(?s)exact.*2 node.*LpPool.*'pool'.*'again'"):
        og.Session(data, mode="exact")
    assert og.Session(data).run(np.ones((1, 1, 4, 4), np.float32))[0].shape == (1, 1, 2, 2)


def test_many_threads_use_one_session():
    session = og.Session(affine())
    failures = []

    def work(seed):
        for turn in range(40):
            x = np.full((1 + (seed + turn) % 5, 3), seed, np.float32)
            if not np.array_equal(session.run(x)[0], x * 2 + 1):
                failures.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_profile():
    profile = og.Session(affine()).profile(X)
    assert [label.split()[0] for label, _ in profile.entries] == ["Mul", "Add"]
    assert "Mul" in profile.table() and profile.total > 0
    assert '"traceEvents"' in profile.chrome_trace()
    np.testing.assert_array_equal(np.asarray(profile.outputs[0]), X * 2 + 1)


def test_agrees_with_onnxruntime_at_several_shapes():
    data = affine()
    session = og.Session(data)
    theirs = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    for rows in (0, 1, 2, 17):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_array_equal(session.run(x)[0], theirs.run(None, {"x": x})[0])


def test_import_is_light():
    import subprocess
    import sys

    code = "import sys, onemodel_graph; print('onnx' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_0d_and_empty_constants():
    assert tensor(3, "int64").shape == ()
    assert tensor([], "float32").shape == (0,)


def test_memory_is_bounded_over_many_shapes():
    """What belongs to one shape is forgotten with its plan."""
    proto = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Expand", ["w", "s"], ["e"]),
            node("Add", ["x", "e"], ["y"]),
        ],
        {"x": (np.float32, ("N", 3))},
        ["y"],
        {"w": np.ones((1, 3), np.float32)},
    )
    session = og.Session(proto.SerializeToString(), plans=4)
    context = session._context
    for rows in range(1, 60):
        x = np.zeros((rows, 3), np.float32)
        np.testing.assert_array_equal(session.run(x)[0], np.ones((rows, 3)))
        if rows == 10:
            kept = len(context._folded) + len(context._bound) + len(context.views)
    assert len(context._folded) + len(context._bound) + len(context.views) == kept
    assert len(session._planned.plans) == 4


@pytest.mark.slow
def test_memory_is_flat_over_a_thousand_shapes():
    """Bytes of the process after many shapes, not only entries of caches."""
    resource = pytest.importorskip("resource")
    proto = model(
        [
            node("MatMul", ["x", "w"], ["a"]),
            node("Shape", ["a"], ["s"]),
            node("ConstantOfShape", ["s"], ["z"]),
            node("Concat", ["a", "z"], ["c"], axis=0),
            node("Softmax", ["c"], ["y"]),
        ],
        {"x": (np.float32, ("N", 64))},
        ["y"],
        {"w": np.ones((64, 96), np.float32)},
    )
    session = og.Session(proto.SerializeToString(), plans=8)

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def runs(rows):
        for count in rows:
            session.run(np.ones((count, 64), np.float32))

    # Freed blocks are kept for the next arrays up to a limit, which the first thousand shapes reach.
    runs(range(50, 1050))
    before = peak()
    runs(range(1050, 50, -1))
    grown = (peak() - before) / 1024
    assert grown < 30, f"{grown:.0f} MB more"
    assert len(session._planned.plans) == 8


def test_the_trace_of_a_run_is_that_of_chrome():
    profile = og.Session(affine()).profile(X)
    events = json.loads(profile.chrome_trace())["traceEvents"]
    assert [event["name"].split()[0] for event in events] == ["Mul", "Add"]
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    assert events[1]["ts"] >= ends[0] - 1e-6
    table = profile.table().splitlines()
    assert table[0].split() == ["operator", "calls", "ms", "share"]
    assert table[-1].split()[:2] == ["total", "2"]


def test_outputs_share_memory_with_nothing_that_lives_on():
    proto = model(
        [
            node("Reshape", ["x", "flat"], ["view"]),
            node("Add", ["x", "x"], ["sum"]),
            node("Reshape", ["sum", "flat"], ["of_sum"]),
        ],
        {"x": (np.float32, ("N", 3))},
        ["view", "sum", "of_sum"],
        {"flat": np.array([-1])},
    )
    session = og.Session(proto.SerializeToString())
    x = X.copy()
    first = session.run(x)
    kept = [array.copy() for array in first]
    x[:] = -1
    second = session.run(X + 5)
    for array, want in zip(first, kept, strict=True):
        np.testing.assert_array_equal(array, want)
    for array in second:
        assert not any(np.shares_memory(array, other) for other in [*first, x])
        assert not array.flags.writeable
