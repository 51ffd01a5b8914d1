"""A Pad of zeros before a convolution becomes the convolution's own padding, with the same bits."""

import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((2, 3, 9)).astype(np.float32)
W = DRAW.standard_normal((4, 3, 3)).astype(np.float32)
W[1, 2, 0] = np.inf


def left_of(pads, conv=None, value=None, axes=None, **pad):
    """The operators that exact passes leave, after a check that they change no bit."""
    inputs = ["x", "pads", "" if value is None else "value"] + (["axes"] if axes else [])
    constants = {"pads": np.array(pads, np.int64), "w": W}
    if axes:
        constants["axes"] = np.array(axes, np.int64)
    if value is not None:
        constants["value"] = np.array(value, np.float32)
    nodes = [node("Pad", inputs, ["a"], **pad), node("Conv", ["a", "w"], ["y"], **(conv or {}))]
    proto = model(nodes, {"x": (np.float32, ("N", 3, "L"))}, ["y"], constants)
    plain = og.Session(proto.SerializeToString(), "exact", optimise=False).run({"x": X})
    for mode in ("exact", "fast"):
        got = og.Session(proto.SerializeToString(), mode).run({"x": X})
        assert got[0].shape == plain[0].shape
        assert got[0].tobytes() == plain[0].tobytes()
    return [n.operator for n in optimise(import_model(proto).graph, "exact").nodes]


@pytest.mark.parametrize("value", [None, 0.0])
def test_zeros_along_spatial_axes_are_folded(value):
    assert left_of([0, 0, 4, 0, 0, 1], {"dilations": [2]}, value) == ["Conv"]


@pytest.mark.parametrize("axis", [2, -1])
def test_axes_may_be_listed(axis):
    assert left_of([2, 0], value=0.0, axes=[axis]) == ["Conv"]


def test_they_add_to_padding_of_the_convolution():
    assert left_of([0, 0, 1, 0, 0, 0], {"pads": [2, 1], "strides": [2]}) == ["Conv"]


@pytest.mark.parametrize(
    ("pads", "conv", "value", "mode"),
    [
        ([0, 0, 2, 0, 0, 0], {}, 1.0, "constant"),
        ([0, 0, 2, 0, 0, 0], {}, -0.0, "constant"),
        ([0, 0, 2, 0, 0, 0], {}, None, "edge"),
        ([0, 0, 2, 0, 0, -1], {}, None, "constant"),
        ([1, 0, 2, 0, 0, 0], {}, None, "constant"),
        ([0, 0, 2, 0, 0, 0], {"auto_pad": "SAME_UPPER"}, None, "constant"),
    ],
)
def test_other_padding_stays(pads, conv, value, mode):
    assert left_of(pads, conv, value, mode=mode) == ["Pad", "Conv"]
