import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise

X = np.random.default_rng(0).standard_normal((2, 3, 16)).astype(np.float32)
SCALE = np.random.default_rng(1).standard_normal(16).astype(np.float32)


def norm(square, inverse, after=()):
    initializers = {
        "last": np.array([-1]),
        "two": np.array(2, np.float32),
        "one": np.array(1, np.float32),
        "eps": np.array(1e-6, np.float32),
        "g": SCALE,
    }
    nodes = [
        square,
        node("ReduceMean", ["q", "last"], ["m"], keepdims=1),
        node("Add", ["m", "eps"], ["e"]),
        node("Sqrt", ["e"], ["r"]),
        inverse,
        node("Mul", ["x", "i"], ["n"]),
        node("Mul", ["g", "n"], ["y"]),
        *after,
    ]
    outputs = after[-1].output if after else ["y"]
    return import_model(model(nodes, {"x": (np.float32, ("N", "T", 16))}, outputs, initializers))


SQUARES = [node("Pow", ["x", "two"], ["q"]), node("Mul", ["x", "x"], ["q"])]
INVERSES = [node("Div", ["one", "r"], ["i"]), node("Reciprocal", ["r"], ["i"])]


@pytest.mark.parametrize("square", SQUARES, ids=["power", "product"])
@pytest.mark.parametrize("inverse", INVERSES, ids=["division", "reciprocal"])
def test_it_becomes_one_node(square, inverse):
    graph = norm(square, inverse).graph
    assert [n.operator for n in optimise(graph, "fast").nodes] == ["RMSNormalization"]
    assert [n.operator for n in optimise(graph, "exact").nodes][-1] == "Mul"
    wide = X.astype(np.float64)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * SCALE
    # A handful of roundings of single precision.
    np.testing.assert_allclose(og.Session(graph).run(X)[0], want, rtol=1e-6)


def test_before_a_quantisation_it_is_rounded_once():
    """One last place decides on which side of a tie a number is, and so a whole step of 8 bits."""
    graph = norm(
        SQUARES[0], INVERSES[0], [node("DynamicQuantizeLinear", ["y"], ["a", "b", "c"])]
    ).graph
    first = optimise(graph, "fast").nodes[0]
    assert first.operator == "RMSNormalization" and first.attributes["stash_type"] == 11
    graph.outputs.append(first.outputs[0])
    wide = X.astype(np.float64)
    spread = np.sqrt((wide**2).mean(-1, keepdims=True) + np.float64(np.float32(1e-6)))
    want = wide / spread * SCALE.astype(np.float64)
    got = og.Session(graph).run(X)[-1]
    # Correct rounding, up to the rounding errors of double precision at a tie.
    assert (got == want.astype(np.float32)).mean() > 0.99


def test_a_norm_that_others_read_stays():
    nodes = [node("Add", ["n", "y"], ["z"])]
    graph = norm(SQUARES[0], INVERSES[0], nodes).graph
    assert "RMSNormalization" not in [n.operator for n in optimise(graph, "fast").nodes]
