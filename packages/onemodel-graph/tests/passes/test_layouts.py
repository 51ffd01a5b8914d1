"""Regions between convolutions, as exporters of networks with channels last write them."""

import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise
from onemodel_kernels.errors import OneModelError

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 6, 5, 4)).astype(np.float32)
FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
CONSTANTS = {
    "w": RANDOM.standard_normal((4, 4, 3, 3)).astype(np.float32),
    "channels": RANDOM.standard_normal(4).astype(np.float32),
    "whole": RANDOM.standard_normal((1, 6, 5, 4)).astype(np.float32),
    "half": np.array(0.5, np.float32),
    "pads": np.array([0, 1, 2, 0, 0, 0, 1, 0]),
    "two_pads": np.array([1, 0, 0, 2]),
    "rows_columns": np.array([1, 2]),
    "channel_axis": np.array([3]),
    "last": np.array([-1]),
    "one": np.array([1]),
    "four": np.array([4]),
    "far": np.array([100]),
    "scales": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
    "points": np.array([3, 1, 2, 0], np.uint8),
    "scale": np.array(0.05, np.float32),
}


def convolution(source, result):
    """A convolution between two Transposes: channels last outside, first inside."""
    return [
        node("Transpose", [source], [f"{result}_in"], perm=FIRST),
        node("Conv", [f"{result}_in", "w"], [f"{result}_out"], pads=[1, 1, 1, 1]),
        node("Transpose", [f"{result}_out"], [result], perm=LAST),
    ]


def left_of(nodes, outputs=("y",), inputs=("x",)):
    """The operators that the passes leave, after a check that they change no bit."""
    proto = model(
        nodes,
        dict.fromkeys(inputs, (np.float32, ("N", "H", "W", 4))),
        list(outputs),
        {name: array for name, array in CONSTANTS.items() if any(name in n.input for n in nodes)},
    )
    feeds = {name: np.roll(X, i) for i, name in enumerate(inputs)}
    graph = import_model(proto).graph
    plain = og.Session(graph, "exact", optimise=False).run(feeds)
    for got, want in zip(og.Session(graph, "exact").run(feeds), plain, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert got.tobytes() == want.tobytes()
    return [n.operator for n in optimise(graph, "exact").nodes]


BETWEEN = {
    "elementwise": [
        node("Add", ["a", "channels"], ["b"]),
        node("Clip", ["b", "", "half"], ["c"]),
        node("Mul", ["whole", "c"], ["m"]),
    ],
    "parametric": [
        node("PRelu", ["a", "channels"], ["c"]),
        node("Greater", ["c", "channels"], ["g"]),
        node("Where", ["g", "c", "half"], ["m"]),
    ],
    "pad": [node("Pad", ["a", "pads", "half"], ["m"])],
    "pad of axes": [node("Pad", ["a", "two_pads", "", "rows_columns"], ["m"], mode="reflect")],
    "concat": [
        node("Relu", ["a"], ["b"]),
        node("Concat", ["b", "a"], ["c"], axis=-1),
        node("Slice", ["c", "four", "far", "last"], ["m"]),
    ],
    "split": [
        node("Split", ["a"], ["b", "c"], axis=3, num_outputs=2),
        node("Concat", ["c", "b"], ["m"], axis=3),
    ],
    "residual": [
        node("Relu", ["a"], ["r"]),
        *convolution("r", "b"),
        node("Add", ["r", "b"], ["c"]),
        node("Sigmoid", ["c"], ["s"]),
        node("Mul", ["c", "s"], ["m"]),
    ],
    "gate": [
        node("ReduceMean", ["a", "rows_columns"], ["b"], keepdims=1),
        node("HardSigmoid", ["b"], ["c"]),
        node("Mul", ["a", "c"], ["m"]),
    ],
    "quantised": [
        node("QuantizeLinear", ["a", "scales", "points"], ["b"], axis=3),
        node("DequantizeLinear", ["b", "scales", "points"], ["c"], axis=-1),
        node("QuantizeLinear", ["c", "scale"], ["d"]),
        node("DequantizeLinear", ["d", "scale"], ["m"]),
    ],
    "new axes": [
        node("Unsqueeze", ["a", "one"], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("Squeeze", ["c", "one"], ["m"]),
    ],
}


@pytest.mark.parametrize("name", BETWEEN)
def test_pairs_between_convolutions_vanish(name):
    nodes = [*convolution("x", "a"), *BETWEEN[name], *convolution("m", "y")]
    assert left_of(nodes).count("Transpose") == 2


def test_a_reduction_takes_the_transpose_away():
    """Only the channels are left behind the mean over both other axes."""
    mean = node("ReduceMean", ["r", "rows_columns"], ["y"], keepdims=0)
    nodes = [*convolution("x", "a"), node("Relu", ["a"], ["r"]), mean]
    assert left_of(nodes) == ["Transpose", "Conv", "Relu", "ReduceMean"]


def test_a_reduction_that_would_sum_in_another_order_stays():
    """The mean over rows and columns of a transposed image adds up its columns first."""
    nodes = [
        node("Transpose", ["x"], ["a"], perm=[0, 2, 1, 3]),
        node("Relu", ["a"], ["r"]),
        node("ReduceMean", ["r", "rows_columns"], ["y"], keepdims=0),
    ]
    assert left_of(nodes).count("Transpose") == 1


def test_branches_are_transposed_once_behind_the_smallest_tensor():
    nodes = [node("Transpose", ["x"], ["t"], perm=FIRST)]
    for name in "abc":
        nodes += [
            node("Conv", ["t", "w"], [f"{name}_o"], pads=[1, 1, 1, 1]),
            node("Transpose", [f"{name}_o"], [name], perm=LAST),
            node("Unsqueeze", [name, "channel_axis"], [f"{name}_u"]),
        ]
    nodes += [
        node("Concat", ["a_u", "b_u", "c_u"], ["j"], axis=3),
        node("ReduceMax", ["j", "channel_axis"], ["y"], keepdims=0),
    ]
    left = left_of(nodes)
    assert left.count("Transpose") == 2
    assert left[-1] == "Transpose"


def test_shapes_and_outputs_keep_the_written_order():
    nodes = [
        *convolution("x", "a"),
        node("Relu", ["a"], ["b"]),
        node("Shape", ["b"], ["shape"]),
        node("Neg", ["b"], ["c"]),
        *convolution("c", "y"),
    ]
    assert left_of(nodes, ["y", "shape"]).count("Transpose") == 2
    assert left_of(nodes, ["y", "b"]).count("Transpose") == 3


def test_the_written_order_stays_where_another_gains_nothing():
    nodes = [
        *convolution("x", "a"),
        node("Add", ["a", "z"], ["b"]),
        node("Softmax", ["b"], ["y"], axis=-1),
    ]
    assert left_of(nodes, inputs=("x", "z")) == ["Transpose", "Conv", "Transpose", "Add", "Softmax"]


AXES_OF = {
    "ReduceSum": ["t", "axes"],
    "Squeeze": ["t", "axes"],
    "Unsqueeze": ["t", "axes"],
    "Slice": ["t", "zero", "end", "axes"],
    "Pad": ["t", "two", "", "axes"],
}


@pytest.mark.parametrize("axes", [np.float32([1.0]), np.float32([np.nan]), np.array([True])])
@pytest.mark.parametrize("operator", AXES_OF)
def test_axes_that_are_no_integers_are_refused_behind_a_transpose(operator, axes):
    """The pass that looks at them before they are planned leaves them to the refusal."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=FIRST),
        node(operator, AXES_OF[operator], ["s"], name="it"),
        node("Transpose", ["s"], ["y"]),
    ]
    given = {"axes": axes, "zero": np.array([0]), "end": np.array([1]), "two": np.array([1, 1])}
    constants = {name: array for name, array in given.items() if name in AXES_OF[operator]}
    proto = model(nodes, {"x": (np.float32, (2, 6, 5, 4))}, ["y"], constants)
    for mode in ("fast", "exact"):
        with pytest.raises(OneModelError, match=r"'it'.*'axes' to hold integers"):
            og.Session(proto.SerializeToString(), mode).run(X)
