"""Operators of other domains than ONNX's own, against ONNX Runtime."""

import numpy as np
import onnxruntime as ort
import pytest
from models import model, node
from onnx import TensorProto, helper

import onemodel_graph as og
from onemodel_kernels.errors import UnsupportedError

CLASSICAL, CONTRIBUTED = "ai.onnx.ml", "com.microsoft"
ROWS = np.random.default_rng(7).normal(size=(40, 3)).astype(np.float32)


def both(proto, *inputs):
    """(ours, ONNX Runtime's) outputs."""
    for domain in (CLASSICAL, CONTRIBUTED):
        proto.opset_import.append(helper.make_opsetid(domain, 1))
    data = proto.SerializeToString()
    options = ort.SessionOptions()
    # With more threads, ONNX Runtime's quantised LSTM takes a range for each thread's rows.
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    expected = session.run(None, dict(zip(names, inputs, strict=True)))
    return og.Session(data).run(*inputs), expected


def test_scaler():
    scaler = node(
        "Scaler", ["x"], ["y"], domain=CLASSICAL, offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, 0.1]
    )
    ours, theirs = both(model([scaler], {"x": (np.float32, ("n", 3))}, ["y"]), ROWS)
    np.testing.assert_array_equal(ours[0], theirs[0])


#: Two trees: one of depth 2 that asks for features 0 and 2, one of a single leaf.
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0],
    "nodes_featureids": [0, 0, 2, 0, 0, 0],
    "nodes_values": [0.1, 0.0, -0.2, 0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0, 0],
}


def leaves(kind, ids, weights):
    return {
        f"{kind}_treeids": [0, 0, 0, 1],
        f"{kind}_nodeids": [1, 3, 4, 0],
        f"{kind}_ids": ids,
        f"{kind}_weights": weights,
    }


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    stored = leaves("target", [0, 0, 0, 0], [1.5, -2.0, 4.0, 0.25])
    trees = node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain=CLASSICAL, n_targets=1, base_values=[0.5],
        aggregate_function=aggregate, **NODES, **stored,
    )  # fmt: skip
    ours, theirs = both(model([trees], {"x": (np.float32, ("n", 3))}, ["y"]), ROWS)
    np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.parametrize(
    ("ids", "weights", "labels"),
    [
        ([0, 1, 2, 1], [1.0, 0.75, 2.0, 0.5], [3, 5, 8]),
        ([0, 0, 0, 0], [0.2, 0.6, 0.4, 0.1], [0, 1]),
        ([0, 0, 0, 0], [-0.2, 0.6, -0.4, 0.1], [0, 1]),
    ],
    ids=["three", "share", "logit"],
)
@pytest.mark.parametrize("after", ["NONE", "LOGISTIC"])
def test_tree_classifier(ids, weights, labels, after):
    if after == "LOGISTIC" and labels == [0, 1] and min(weights) >= 0:
        pytest.skip("shares are not logits")
    trees = node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain=CLASSICAL,
        classlabels_int64s=labels, post_transform=after, **NODES, **leaves("class", ids, weights),
    )  # fmt: skip
    proto = model([trees], {"x": (np.float32, ("n", 3))}, ["label", "scores"])
    ours, theirs = both(proto, ROWS)
    np.testing.assert_array_equal(ours[0], theirs[0])
    # ONNX Runtime approximates the exponential.
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_column", [False, True], ids=["one scale", "scales"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("hidden", [4, 40])
def test_lstm_with_stored_weights(direction, per_column, dtype, hidden):
    rng = np.random.default_rng(3)
    both_ways = 2 if direction == "bidirectional" else 1
    size, low = 5, np.iinfo(dtype).min
    scales = (both_ways, 4 * hidden) if per_column else (both_ways,)
    stored = {
        "w": rng.integers(low, low + 256, (both_ways, size, 4 * hidden)).astype(dtype),
        "r": rng.integers(low, low + 256, (both_ways, hidden, 4 * hidden)).astype(dtype),
        "b": rng.normal(size=(both_ways, 8 * hidden)).astype(np.float32),
        "ws": rng.uniform(0.005, 0.02, scales).astype(np.float32),
        "wz": np.full(scales, low + 128, dtype),
        "rs": rng.uniform(0.005, 0.02, scales).astype(np.float32),
        "rz": np.full(scales, low + 128, dtype),
        "h0": rng.uniform(-1, 1, (both_ways, 3, hidden)).astype(np.float32),
        "c0": rng.normal(size=(both_ways, 3, hidden)).astype(np.float32),
    }
    names = ["x", "w", "r", "b", "", "h0", "c0", "", "ws", "wz", "rs", "rz"]
    lstm = node(
        "DynamicQuantizeLSTM", names, ["y", "h", "c"], domain=CONTRIBUTED,
        direction=direction, hidden_size=hidden,
    )  # fmt: skip
    proto = model([lstm], {"x": (np.float32, ("t", 3, size))}, ["y", "h", "c"], stored)
    for steps in (1, 25):
        x = rng.normal(size=(steps, 3, size)).astype(np.float32)
        ours, theirs = both(proto, x)
        for mine, other in zip(ours, theirs, strict=True):
            # The operator is defined by ONNX Runtime, and a state that is rounded to 8 bits at each
            # step forgives no difference.
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("change", [{"clip": 1.0}, {"input_forget": 1}])
def test_forms_of_the_stored_lstm_that_are_refused(change):
    lstm = node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"], ["y"],
        domain=CONTRIBUTED, hidden_size=2, name="layer", **change,
    )  # fmt: skip
    stored = {
        "w": np.zeros((1, 3, 8), np.int8),
        "r": np.zeros((1, 2, 8), np.int8),
        "s": np.ones(1, np.float32),
        "z": np.zeros(1, np.int8),
    }
    proto = model([lstm], {"x": (np.float32, ("t", 1, 3))}, ["y"], stored)
    with pytest.raises(UnsupportedError, match=rf"'layer'.*{next(iter(change))}"):
        og.Session(proto.SerializeToString()).run(np.zeros((4, 1, 3), np.float32))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("zeros", ["none", "one", "columns"])
@pytest.mark.parametrize("shape", [(3, 300), (2, 4, 33)])
def test_products_of_bytes(signed, zeros, shape):
    rng = np.random.default_rng(5)
    right = np.int8 if signed else np.uint8
    low = np.iinfo(right).min
    stored = {"b": rng.integers(low, low + 256, (shape[-1], 70)).astype(right)}
    names = ["a", "b"]
    if zeros != "none":
        stored["az"] = np.array(7, np.uint8)
        size = 70 if zeros == "columns" else ()
        stored["bz"] = rng.integers(low, low + 256, size).astype(right)
        names += ["az", "bz"]
    a = rng.integers(0, 256, shape).astype(np.uint8)
    proto = model([node("MatMulInteger", names, ["y"])], {"a": (np.uint8, shape)}, ["y"], stored)
    want = (a.astype(np.int64) - int(stored.get("az", 0))) @ (
        stored["b"].astype(np.int64) - stored.get("bz", np.int8(0)).astype(np.int64)
    )
    (got,) = og.Session(proto.SerializeToString()).run(a)
    np.testing.assert_array_equal(got, want)


def test_labels_of_trees_may_be_texts():
    stored = leaves("class", [0, 1, 2, 1], [1.0, 0.75, 2.0, 0.5])
    trees = node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain=CLASSICAL, name="forest",
        classlabels_strings=["no", "yes", "both"], **NODES, **stored,
    )  # fmt: skip
    proto = model([trees], {"x": (np.float32, ("n", 3))}, ["label", "scores"])
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    proto.opset_import.append(helper.make_opsetid(CLASSICAL, 1))
    label, scores = og.Session(proto.SerializeToString()).run(ROWS)
    peer = ort.InferenceSession(proto.SerializeToString())
    wanted, want = peer.run(None, {"x": ROWS})
    assert label.tolist() == list(wanted)
    np.testing.assert_array_equal(scores, want)
