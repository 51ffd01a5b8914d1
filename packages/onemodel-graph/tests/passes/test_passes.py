import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise
from onemodel_graph.passes.pipeline import PASSES

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


def test_passes_say_what_they_do():
    names = [entry.name for entry in PASSES]
    assert len(set(names)) == len(names)
    for entry in PASSES:
        assert entry.ensures and entry.bit_rule
        assert "fast" in entry.modes
        assert set(entry.requires) <= set(names)
