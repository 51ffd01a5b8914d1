"""Files made to harm: each is refused by an error that names the place."""

import numpy as np
import pytest
from models import model, node
from onnx import TensorProto, helper

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_kernels.errors import OneModelError

X = np.ones((2, 3), np.float32)


def plain(nodes=None, initializers=None, outputs=("y",), **more):
    nodes = nodes or [node("Add", ["x", "w"], ["y"], name="sum")]
    return model(
        nodes,
        {"x": (np.float32, ("N", 3))},
        list(outputs),
        {"w": np.ones(3, np.float32)} if initializers is None else initializers,
        **more,
    )


def external(location, **more):
    proto = plain()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(value))
    return proto


@pytest.mark.parametrize(
    "location",
    ["../secret", "/etc/passwd", "a/../../secret", "", "..", "sub/../../secret", "\0x", "a" * 5000],
)
def test_external_data_stays_below_the_model(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(np.ones(3, np.float32).tobytes())
    path = folder / "m.onnx"
    path.write_bytes(external(location).SerializeToString())
    with pytest.raises(OneModelError, match="'w'"):
        og.load(path)


def test_a_link_does_not_lead_outside(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(np.ones(3, np.float32).tobytes())
    (folder / "data").symlink_to(tmp_path / "secret")
    path = folder / "m.onnx"
    path.write_bytes(external("data").SerializeToString())
    with pytest.raises(OneModelError, match=r"'w'.*leaves the model's folder"):
        og.load(path)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"offset": -4}, "-4"),
        ({"offset": 8}, "8 to 20 of 'data', which has 12"),
        ({"offset": 2**63}, "which has 12"),
        ({"length": 4}, "4 bytes of external data, 12 are needed"),
        ({"offset": "x"}, "'x'"),
        ({"length": "1e3"}, "'1e3'"),
    ],
)
def test_external_data_of_the_wrong_place_or_size(tmp_path, more, words):
    (tmp_path / "data").write_bytes(bytes(12))
    (tmp_path / "m.onnx").write_bytes(external("data", **more).SerializeToString())
    with pytest.raises(OneModelError, match=f"'w'.*{words}"):
        og.load(tmp_path / "m.onnx")


def test_external_data_needs_a_path(tmp_path):
    with pytest.raises(OneModelError, match=r"'w'.*load the model by its path"):
        og.load(external("data").SerializeToString())
    (tmp_path / "m.onnx").write_bytes(external("gone").SerializeToString())
    with pytest.raises(OneModelError, match=r"'w'.*cannot read 'gone'"):
        og.load(tmp_path / "m.onnx")


@pytest.mark.parametrize("dims", [[2**40], [2**62, 4], [-1], [2**32, 2**32], [0, -5]])
def test_sizes_that_the_data_does_not_have(dims):
    proto = plain()
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend(dims)
    with pytest.raises(OneModelError, match="initializer 'w'"):
        og.load(proto.SerializeToString())


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "initializers"),
    [
        ("ConstantOfShape", ["n"], {}, {"n": np.array([2**40, 2**20])}),
        ("Expand", ["x", "n"], {}, {"n": np.array([2**40, 2, 3])}),
        ("Tile", ["x", "n"], {}, {"n": np.array([2**40, 2**20])}),
        ("Range", ["a", "b", "c"], {}, {k: np.array(v) for k, v in (("a", 0), ("b", 2**60), ("c", 1))}),
        ("Pad", ["x", "n"], {}, {"n": np.array([2**61, 2**61, 0, 0])}),
        ("OneHot", ["i", "n", "v"], {}, {"i": np.array([1]), "n": np.array(2**50), "v": np.ones(2)}),
        ("Resize", ["x", "", "", "n"], {}, {"n": np.array([2**40, 2**21])}),
        ("EyeLike", ["x"], {"k": 2**62}, None),
        ("CumSum", ["x", "n"], {}, {"n": np.array(2**62)}),
        ("DepthToSpace", ["x"], {"blocksize": 2**40}, None),
        ("Concat", ["x", "x"], {"axis": 2**40}, None),
        ("Split", ["x", "n"], {"axis": 0}, {"n": np.array([2**62, -(2**62) + 2])}),
    ],
)  # fmt: skip
def test_hostile_numbers_are_refused_or_harmless(operator, inputs, attributes, initializers):
    proto = plain([node(operator, inputs, ["y"], name="big", **attributes)], initializers or {})
    try:
        og.Session(proto.SerializeToString()).run(X)
    except OneModelError as error:
        assert "big" in str(error)


def test_cycles_are_refused():
    nodes = [node("Add", ["x", "b"], ["a"], name="first"), node("Neg", ["a"], ["b"])]
    with pytest.raises(OneModelError, match=r"'first'.*'b'"):
        import_model(plain(nodes, outputs=["b"]))


def test_a_node_that_reads_itself_is_refused():
    with pytest.raises(OneModelError, match=r"'self'.*'y'"):
        import_model(plain([node("Add", ["x", "y"], ["y"], name="self")]))


def test_a_value_that_is_written_twice_is_refused():
    nodes = [node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"], name="again")]
    with pytest.raises(OneModelError, match="'y'"):
        og.Session(plain(nodes).SerializeToString())


def test_a_missing_output_is_refused():
    with pytest.raises(OneModelError, match="output 'z': nothing writes"):
        import_model(plain(outputs=["z"]))


def test_functions_that_call_each_other_end():
    proto = plain([node("F", ["x"], ["y"], domain="d")])
    for name, other in (("F", "G"), ("G", "F")):
        proto.functions.append(
            helper.make_function(
                "d", name, ["a"], ["b"], [node(other, ["a"], ["b"], domain="d")],
                [helper.make_opsetid("", 20), helper.make_opsetid("d", 1)],
            )
        )  # fmt: skip
    proto.opset_import.append(helper.make_opsetid("d", 1))
    with pytest.raises(OneModelError, match="without end"):
        import_model(proto)


def test_functions_that_multiply_are_refused(monkeypatch):
    """Each level calls the next one eight times: eight to the twentieth nodes if written out."""
    proto = plain([node("F0", ["x"], ["y"], domain="d")])
    for level in range(20):
        body = [node(f"F{level + 1}", ["a"], [f"b{i}"], domain="d") for i in range(8)]
        if level == 19:
            body = [node("Neg", ["a"], [f"b{i}"]) for i in range(8)]
        proto.functions.append(
            helper.make_function(
                "d", f"F{level}", ["a"], ["b0"], body,
                [helper.make_opsetid("", 20), helper.make_opsetid("d", 1)],
            )
        )  # fmt: skip
    proto.opset_import.append(helper.make_opsetid("d", 1))
    monkeypatch.setattr("onemodel_graph.onnx_io.importer.NODES", 5000)
    with pytest.raises(OneModelError, match="more than 5000 nodes"):
        import_model(proto)


@pytest.mark.parametrize("length", [0, 1, 5, 20, 60, -20, -1])
def test_truncated_files_are_refused(length):
    data = plain().SerializeToString()
    with pytest.raises(OneModelError):
        og.Session(data[:length])


def test_wrong_types_are_refused_before_a_run():
    proto = plain()
    proto.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(OneModelError, match="99"):
        og.load(proto.SerializeToString())
    twisted = node("Concat", ["x", "x"], ["y"], name="joined", axis=0)
    twisted.attribute[0].CopyFrom(helper.make_attribute("axis", "zero"))
    with pytest.raises(OneModelError, match=r"'joined'.*'axis'.*integer.*'zero'"):
        og.Session(plain([twisted]).SerializeToString())
    nested = node("Transpose", ["x"], ["y"], name="turned", perm=[1, 0])
    nested.attribute[0].CopyFrom(helper.make_attribute("perm", [1.5, 0.5]))
    with pytest.raises(OneModelError, match=r"'turned'.*'perm'"):
        og.Session(plain([nested]).SerializeToString())


def test_text_that_is_not_utf8_is_refused():
    data = plain().SerializeToString().replace(b"sum", b"\xff\xfe\xfd")
    with pytest.raises(OneModelError):
        og.Session(data).run(X)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_without_end_are_refused(operator):
    pool = node(operator, ["x"], ["y"], name="pool", auto_pad="SAME_LOWER", kernel_shape=[2**53, 2])
    proto = model([pool], {"x": (np.float32, (1, 1, 4, 4))}, ["y"])
    with pytest.raises(OneModelError, match=r"'pool'.*covers more than"):
        og.Session(proto.SerializeToString()).run(np.ones((1, 1, 4, 4), np.float32))


@pytest.mark.parametrize("axis", [-(2**40), 2**40, 3])
def test_an_axis_outside_of_an_old_broadcast_is_refused(axis):
    add = helper.make_node("Add", ["x", "w"], ["y"], axis=axis, broadcast=1, name="it")
    inputs = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [2, 3]), ("w", [2]))]
    outputs = [helper.make_tensor_value_info("y", 1, [2, 3])]
    graph = helper.make_graph([add], "old", inputs, outputs)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)])
    with pytest.raises(OneModelError, match=r"'it'.*'axis' to be one of the 2 axes"):
        og.Session(proto.SerializeToString())


HUGE = np.array(2**31)
WRITTEN = {
    "HannWindow": {"size": HUGE},
    "DFT": {"x": np.ones((1, 4, 1), np.float32), "dft_length": np.array(2**15)},
    "MelWeightMatrix": {
        "num_mel_bins": HUGE, "dft_length": np.array(16), "sample_rate": np.array(8000),
        "low": np.array(0.0, np.float32), "high": np.array(4000.0, np.float32),
    },
    "AffineGrid": {"theta": np.ones((1, 2, 3), np.float32), "size": np.array([1, 1, 2**31, 2])},
    "Col2Im": {
        "x": np.ones((1, 2**14, 1), np.float32), "image": np.array([128, 128]),
        "block": np.array([128, 128]),
    },
}  # fmt: skip


@pytest.mark.parametrize("operator", WRITTEN)
def test_constants_that_a_few_numbers_make_huge_are_refused(operator):
    """They are written number by number while planning: gigabytes of a file of some bytes."""
    constants = WRITTEN[operator]
    proto = model([node(operator, list(constants), ["y"], name="it")], {}, ["y"], constants)
    with pytest.raises(OneModelError, match=r"'it'.*expected at most 33554432 numbers, got"):
        og.Session(proto.SerializeToString()).run()


def test_neighbours_beyond_the_channels_are_not_added():
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    alpha = 0.5

    def normalised(size):
        lrn = node("LRN", ["x"], ["y"], name="it", size=size, alpha=alpha * size, beta=0.5)
        proto = model([lrn], {"x": (np.float32, x.shape)}, ["y"])
        return og.Session(proto.SerializeToString()).run(x)[0]

    want = x / np.sqrt(1 + alpha * np.square(x.astype(np.float64)).sum(1, keepdims=True))
    # One rounding for each of ten operations.
    np.testing.assert_allclose(normalised(2**31), want, rtol=1e-6)
    np.testing.assert_array_equal(normalised(2**31), normalised(9))


def test_neighbours_of_too_many_channels_are_refused():
    lrn = node("LRN", ["x"], ["y"], name="it", size=2**31)
    proto = model([lrn], {"x": (np.float32, (1, 5000, 1))}, ["y"])
    with pytest.raises(OneModelError, match=r"'it'.*size 2147483648 covers more than 1024"):
        og.Session(proto.SerializeToString()).run(np.ones((1, 5000, 1), np.float32))
