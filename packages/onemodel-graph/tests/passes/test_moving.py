"""Passes that move or join nodes which move or convert elements."""

import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
HALF = np.array(0.5, np.float32)


def left_of(nodes, outputs=("y",), initializers=None, dtype=np.float32, inputs=("x",)):
    """The operators that exact passes leave, after a check that they change no bit."""
    proto = model(nodes, dict.fromkeys(inputs, (dtype, ("A", "B", 4))), list(outputs), initializers)
    graph = import_model(proto).graph
    shapes = [value.shape for node in graph.nodes for value in node.outputs]
    feeds = {name: X.astype(dtype) for name in inputs}
    plain = og.Session(graph, "exact", optimise=False).run(feeds)
    for got, want in zip(og.Session(graph, "exact").run(feeds), plain, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert got.tobytes() == want.tobytes()
    assert shapes == [value.shape for node in graph.nodes for value in node.outputs]
    return [n.operator for n in optimise(graph, "exact").nodes]


def turned(source, result, *perm):
    return node("Transpose", [source], [result], perm=list(perm))


def test_transposes_meet_across_elementwise_operators():
    nodes = [
        turned("x", "a", 0, 2, 1),
        node("Relu", ["a"], ["b"]),
        node("Mul", ["half", "b"], ["c"]),
        node("Clip", ["c", "", "half"], ["d"]),
        turned("d", "e", 0, 2, 1),
        node("Neg", ["e"], ["y"]),
    ]
    assert left_of(nodes, initializers={"half": HALF}) == ["Relu", "Mul", "Clip", "Neg"]


def test_transposes_that_do_not_cancel_become_one():
    nodes = [turned("x", "a", 2, 0, 1), node("Exp", ["a"], ["b"]), turned("b", "y", 1, 0, 2)]
    assert left_of(nodes) == ["Exp", "Transpose"]


def test_two_transposed_operands_are_transposed_once():
    nodes = [
        turned("x", "a", 1, 2, 0),
        turned("z", "b", 1, 2, 0),
        node("Add", ["a", "b"], ["c"]),
        node("Tanh", ["c"], ["y"]),
    ]
    assert left_of(nodes, inputs=("x", "z")) == ["Add", "Transpose", "Tanh"]


@pytest.mark.parametrize(
    ("middle", "left"),
    [
        ([node("Softmax", ["a"], ["b"], axis=-1)], 2),
        ([node("Mul", ["row", "a"], ["b"])], 0),
        ([node("Relu", ["a"], ["b"]), node("Neg", ["b"], ["other"])], 1),
        ([node("Relu", ["a"], ["b"]), node("Neg", ["a"], ["other"])], 1),
    ],
    ids=["not elementwise", "a vector", "another reader", "another reader above"],
)
def test_transposes_stay_where_another_reader_or_operator_needs_them(middle, left):
    nodes = [turned("x", "a", 0, 2, 1), *middle, turned("b", "y", 0, 2, 1)]
    outputs = ["y", "other"] if any("other" in n.output for n in middle) else ["y"]
    row = {"row": np.arange(1, dtype=np.float32)[:, None, None] + np.ones(3, np.float32)}
    assert left_of(nodes, outputs, row).count("Transpose") == left


def cast(source, result, to):
    return node("Cast", [source], [result], to=to)


FLOAT, INT8, INT32, INT64, BOOL, FLOAT16, DOUBLE = 1, 3, 6, 7, 9, 10, 11


@pytest.mark.parametrize(
    ("dtype", "casts", "left"),
    [
        (np.float32, [DOUBLE, FLOAT], 0),
        (np.float16, [FLOAT, FLOAT16], 0),
        (np.int32, [INT64, FLOAT], 1),
        (np.int32, [INT64, DOUBLE, INT32], 0),
        (np.bool_, [INT32, FLOAT, BOOL], 0),
        (np.float32, [FLOAT16, FLOAT], 2),
        (np.float32, [INT32, FLOAT], 2),
        (np.int64, [INT32, INT64], 2),
        (np.float64, [FLOAT, DOUBLE], 2),
        (np.int64, [DOUBLE, INT64], 2),
    ],
)
def test_casts_that_lose_nothing_are_joined(dtype, casts, left):
    names = ["x", *(f"c{i}" for i in range(len(casts)))]
    nodes = [cast(names[i], names[i + 1], to) for i, to in enumerate(casts)]
    nodes.append(node("Identity" if casts[-1] == BOOL else "Neg", [names[-1]], ["y"]))
    if casts[-1] == BOOL:
        nodes[-1] = node("Not", [names[-1]], ["y"])
    assert left_of(nodes, dtype=dtype).count("Cast") == left
