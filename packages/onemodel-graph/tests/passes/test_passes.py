import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise
from onemodel_graph.passes.pipeline import PASSES
from onemodel_kernels import Kernel

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def graph_of(nodes, outputs, initializers=None):
    proto = model(nodes, {"x": (np.float32, ("N", 3))}, outputs, initializers)
    return import_model(proto).graph


CASES = {
    "identity": (
        [node("Identity", ["x"], ["a"]), node("Add", ["a", "a"], ["y"])],
        ["y"],
        {},
        ["Add"],
    ),
    "output identity stays": ([node("Identity", ["x"], ["y"])], ["y"], {}, ["Identity"]),
    "dead": (
        [node("Mul", ["x", "x"], ["unused"]), node("Add", ["x", "x"], ["y"])],
        ["y"],
        {},
        ["Add"],
    ),
    "folded": (
        [
            node("Add", ["w", "w"], ["a"]),
            node("Mul", ["a", "w"], ["b"]),
            node("Add", ["x", "b"], ["y"]),
        ],
        ["y"],
        {"w": np.array([1, 2, 3], np.float32)},
        ["Add"],
    ),
    "constant node": (
        [node("Constant", [], ["c"], value_float=2.0), node("Mul", ["x", "c"], ["y"])],
        ["y"],
        {},
        ["Mul"],
    ),
    "common": (
        [
            node("Add", ["x", "w"], ["a"]),
            node("Add", ["x", "v"], ["b"]),
            node("Mul", ["a", "b"], ["y"]),
        ],
        ["y"],
        {"w": np.ones(3, np.float32), "v": np.ones(3, np.float32)},
        ["Add", "Mul"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_pass(name):
    nodes, outputs, initializers, left = CASES[name]
    graph = graph_of(nodes, outputs, initializers)
    before = [n.operator for n in graph.nodes]
    result = optimise(graph, "exact")
    assert [n.operator for n in result.nodes] == left
    assert [n.operator for n in graph.nodes] == before, "the graph itself must stay as it is"
    plain = og.Session(graph, optimise=False).run(X)
    for got, want in zip(og.Session(graph).run(X), plain, strict=True):
        assert got.tobytes() == want.tobytes()


needs = pytest.mark.skipif(
    not {"Conv", "ReduceMean", "BatchNormalization", "LayerNormalization"} <= set(Kernel.names()),
    reason="the kernels are not in this build",
)


def both(proto, feeds):
    """Outputs in fast mode with and without passes, and the operators that are left."""
    graph = import_model(proto).graph
    left = [n.operator for n in optimise(graph, "fast").nodes]
    got = og.Session(graph).run(feeds)
    want = og.Session(graph, optimise=False).run(feeds)
    for a, b in zip(got, want, strict=True):
        # The passes of fast mode change roundings only.
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return left


def rand(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@needs
def test_batch_norm_and_bias_fold_into_the_convolution():
    proto = model(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            node("Add", ["a", "c"], ["b"]),
            node("BatchNormalization", ["b", "s", "h", "m", "v"], ["d"]),
            node("Relu", ["d"], ["y"]),
        ],
        {"x": (np.float32, ("N", 3, "H", "W"))},
        ["y"],
        {
            "w": rand(4, 3, 3, 3),
            "c": rand(1, 4, 1, 1, seed=1),
            "s": rand(4, seed=2),
            "h": rand(4, seed=3),
            "m": rand(4, seed=4),
            "v": np.abs(rand(4, seed=5)) + 1,
        },
    )
    assert both(proto, {"x": rand(2, 3, 5, 6)}) == ["Conv", "Relu"]


@needs
def test_layer_norm_and_gelu_are_recognised():
    proto = model(
        [
            node("ReduceMean", ["x", "last"], ["m"], keepdims=1),
            node("Sub", ["x", "m"], ["d"]),
            node("Pow", ["d", "two"], ["q"]),
            node("ReduceMean", ["q", "last"], ["v"], keepdims=1),
            node("Add", ["v", "eps"], ["e"]),
            node("Sqrt", ["e"], ["r"]),
            node("Div", ["d", "r"], ["n"]),
            node("Mul", ["n", "g"], ["t"]),
            node("Add", ["t", "b"], ["l"]),
            node("MatMul", ["l", "w"], ["p"]),
            node("Add", ["p", "c"], ["h"]),
            node("Div", ["h", "root"], ["i"]),
            node("Erf", ["i"], ["f"]),
            node("Add", ["f", "one"], ["k"]),
            node("Mul", ["h", "k"], ["o"]),
            node("Mul", ["o", "half"], ["y"]),
        ],
        {"x": (np.float32, ("N", "T", 8))},
        ["y"],
        {
            "last": np.array([-1]),
            "two": np.array(2, np.float32),
            "eps": np.array(1e-5, np.float32),
            "g": rand(8, seed=1),
            "b": rand(8, seed=2),
            "w": rand(8, 6, seed=3),
            "c": rand(6, seed=4),
            "root": np.array(2**0.5, np.float32),
            "one": np.array(1, np.float32),
            "half": np.array(0.5, np.float32),
        },
    )
    assert both(proto, {"x": rand(2, 3, 8)}) == ["LayerNormalization", "MatMul", "Add", "Gelu"]


def test_transposes_cancel():
    proto = model(
        [
            node("Transpose", ["x"], ["a"], perm=[1, 0]),
            node("Transpose", ["a"], ["b"], perm=[1, 0]),
            node("Add", ["b", "b"], ["y"]),
        ],
        {"x": (np.float32, ("N", 3))},
        ["y"],
    )
    graph = import_model(proto).graph
    assert [n.operator for n in optimise(graph, "exact").nodes] == ["Add"]


def test_passes_say_what_they_do():
    names = {entry.name: entry for entry in PASSES}
    assert all(names[entry.name] is entry for entry in PASSES)
    for entry in PASSES:
        assert entry.ensures and entry.bit_rule
        assert "fast" in entry.modes
        assert set(entry.requires) <= set(names)
