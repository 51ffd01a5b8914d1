"""Models whose shapes depend on values, and control flow, against ONNX Runtime."""

import numpy as np
import onnxruntime as ort
import pytest
from models import model, node
from onnx import TensorProto, helper

import onemodel_graph as og
from onemodel_kernels.errors import OneModelError

RNG = np.random.default_rng(0)


def agree(proto, *feeds):
    data = proto.SerializeToString()
    session = og.Session(data)
    theirs = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    for feed in feeds:
        want = theirs.run(None, feed)
        for _ in range(2):
            got = session.run(feed)
            assert len(got) == len(want)
            for mine, other in zip(got, want, strict=True):
                assert mine.shape == other.shape and mine.dtype == other.dtype
                np.testing.assert_allclose(mine, other, rtol=1e-6)
    return session


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_an_operand_that_is_computed():
    proto = model(
        [
            node("Add", ["s", "s"], ["t"]),
            node("Add", ["x", "x"], ["y"]),
            node("Reshape", ["y", "t"], ["z"]),
            node("Mul", ["z", "z"], ["w"]),
        ],
        {"x": (np.float32, ("N",)), "s": (np.int64, (2,))},
        ["w"],
    )
    agree(
        proto,
        {"x": floats(24), "s": np.array([2, 3 - 0], np.int64) * np.array([1, 1])},
        {"x": floats(24), "s": np.array([6, 0], np.int64) + np.array([0, 1])},
        {"x": floats(16), "s": np.array([2, 2], np.int64)},
    )


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_loop(limit):
    body = helper.make_graph(
        [
            node("Add", ["state", "step"], ["next"]),
            node("Identity", ["next"], ["scan"]),
            node("Identity", ["going"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("going", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, (2,)),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, (2,)),
            helper.make_tensor_value_info("scan", TensorProto.FLOAT, (2,)),
        ],
    )
    proto = model(
        [
            node("Mul", ["x", "x"], ["step"]),
            node("Loop", ["limit", "", "x"], ["last", "all"], body=body),
        ],
        {"x": (np.float32, (2,)), "limit": (np.int64, ())},
        ["last", "all"],
    )
    agree(proto, {"x": floats(2), "limit": np.array(limit, np.int64)})


def test_if_takes_the_branch_of_the_run():
    def branch(name, operator):
        return helper.make_graph(
            [node(operator, ["a", "x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        )

    proto = model(
        [
            node("Add", ["x", "x"], ["a"]),
            node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch("t", "Mul"),
                else_branch=branch("e", "Sub"),
            ),
            node("Mul", ["y", "a"], ["z"]),
        ],
        {"x": (np.float32, ("N",)), "c": (np.bool_, ())},
        ["z"],
    )
    x = floats(3)
    agree(proto, {"x": x, "c": np.array(True)}, {"x": x, "c": np.array(False)})


def test_scan():
    body = helper.make_graph(
        [node("Add", ["s", "r"], ["n"]), node("Mul", ["n", "k"], ["o"])],
        "body",
        [
            helper.make_tensor_value_info("s", TensorProto.FLOAT, (2,)),
            helper.make_tensor_value_info("r", TensorProto.FLOAT, (2,)),
        ],
        [
            helper.make_tensor_value_info("n", TensorProto.FLOAT, (2,)),
            helper.make_tensor_value_info("o", TensorProto.FLOAT, (2,)),
        ],
    )
    for reverse in (0, 1):
        proto = model(
            [
                node(
                    "Scan",
                    ["s0", "x"],
                    ["last", "all"],
                    body=body,
                    num_scan_inputs=1,
                    scan_input_directions=[reverse],
                    scan_output_directions=[reverse],
                )
            ],
            {"s0": (np.float32, (2,)), "x": (np.float32, ("T", 2))},
            ["last", "all"],
            {"k": np.array([2, 3], np.float32)},
        )
        agree(proto, {"s0": floats(2), "x": floats(4, 2)}, {"s0": floats(2), "x": floats(1, 2)})


def test_sequences():
    proto = model(
        [
            node("SequenceConstruct", ["x", "y"], ["s"]),
            node("SequenceInsert", ["s", "x", "zero"], ["t"]),
            node("SequenceAt", ["t", "two"], ["a"]),
            node("SequenceLength", ["t"], ["n"]),
            node("ConcatFromSequence", ["t"], ["c"], axis=0),
        ],
        {"x": (np.float32, ("N",)), "y": (np.float32, ("M",))},
        ["a", "n", "c"],
        {"zero": np.array(0, np.int64), "two": np.array(2, np.int64)},
    )
    agree(proto, {"x": floats(3), "y": floats(2)})


@pytest.mark.parametrize(
    ("operator", "attributes"), [("NonZero", {}), ("MaxRoiPool", {"pooled_shape": [1, 1]})]
)
def test_more_outputs_than_an_operator_between_programs_has_are_refused(operator, attributes):
    names = ["x"] if operator == "NonZero" else ["x", "rois"]
    inputs = {"x": (np.float32, (1, 1, 2, 2)), "rois": (np.float32, (1, 5))}
    nodes = [node(operator, names, ["y", "z"], name="it", **attributes)]
    proto = model(nodes, {name: inputs[name] for name in names}, ["y", "z"])
    with pytest.raises(OneModelError, match=r"'it'.*: it has 1 outputs, 2 are asked for"):
        session = og.Session(proto.SerializeToString())
        session.run({name: np.zeros(inputs[name][1], np.float32) for name in names})
