import contextlib

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from models import model, node
from onnx import TensorProto, helper, numpy_helper

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model, save_onnx, to_onnx
from onemodel_kernels.errors import OneModelError, UnsupportedError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def small():
    return model(
        [node("Mul", ["x", "w"], ["t"], name="scale"), node("Add", ["t", "t"], ["y"])],
        {"x": (np.float32, ("N", 3))},
        ["y"],
        {"w": np.array([1, 2, 4], np.float32)},
    )


def typed():
    proto = small()
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ("N", 3)))
    return proto


def test_what_is_read_is_written():
    loaded = import_model(typed())
    written = to_onnx(loaded)
    onnx.checker.check_model(written, full_check=True)
    assert written.ir_version == 9 and written.opset_import[0].version == 20
    assert written.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    session = ort.InferenceSession(written.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], og.Session(loaded).run(X)[0])


def test_an_extent_that_is_not_known_names_no_common_size():
    proto = model([node("Neg", ["x"], ["y"])], {"x": (np.float32, ("?", "?"))}, ["y"])
    assert import_model(proto).graph.inputs[0].shape == (None, None)
    np.testing.assert_array_equal(og.Session(proto.SerializeToString()).run(X)[0], -X)


def test_opsets_after_the_newest_are_refused():
    with pytest.raises(UnsupportedError, match="opset 29"):
        import_model(model([node("Neg", ["x"], ["y"])], {"x": (np.float32, (2,))}, ["y"], opset=29))


def test_element_types_that_arrays_do_not_hold_are_refused():
    cast = node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, name="low")
    proto = model([cast], {"x": (np.float32, (2,))}, ["y"])
    with pytest.raises(UnsupportedError, match=r"'low'.*float8e8m0"):
        og.Session(proto.SerializeToString())


def test_equal_graphs_give_equal_bytes(tmp_path):
    for name in ("a.onnx", "b.onnx"):
        save_onnx(import_model(typed()), tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_external_data_is_written_and_read(tmp_path):
    path = tmp_path / "big.onnx"
    save_onnx(import_model(typed()), path, limit=4)
    (data,) = tmp_path.glob("big.onnx.*.data")
    assert data.stat().st_size == 12
    np.testing.assert_array_equal(og.Session(path).run(X)[0], X * [1, 2, 4] * 2)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * [1, 2, 4] * 2)
    with pytest.raises(OneModelError, match="load the model by its path"):
        og.load(path.read_bytes())


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../b", ""])
def test_external_data_outside_the_folder_is_refused(tmp_path, location):
    proto = typed()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(OneModelError, match="'w'"):
        og.load(path)


def test_external_data_beyond_the_file_is_refused(tmp_path):
    proto = typed()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    (tmp_path / "w.data").write_bytes(b"1234")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(OneModelError, match="'w'"):
        og.load(path)


def test_functions_are_written_out():
    function = helper.make_function(
        "own", "Twice", ["a"], ["b"],
        [node("Add", ["a", "a"], ["c"]), node("Mul", ["c", "c"], ["b"])],
        [helper.make_opsetid("", 20)],
    )  # fmt: skip
    proto = model(
        [
            node("Twice", ["x"], ["p"], domain="own"),
            node("Twice", ["p"], ["y"], domain="own"),
        ],
        {"x": (np.float32, ("N", 3))},
        ["y"],
        functions=[function],
    )
    proto.opset_import.add(domain="own", version=1)
    np.testing.assert_array_equal(
        og.Session(proto.SerializeToString()).run(X)[0], ((2 * X) ** 2 * 2) ** 2
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "no graph"), (b"\xff\xff\xff", "not an ONNX model"), (b"hello world", "ONNX")],
)
def test_what_is_no_model_is_refused(data, words):
    with pytest.raises(OneModelError, match=words):
        og.load(data)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(OneModelError, match=r"nothing\.onnx"):
        og.load(tmp_path / "nothing.onnx")


def test_a_newer_opset_is_refused():
    proto = small()
    proto.opset_import[0].version = 99
    with pytest.raises(UnsupportedError, match="opset 99"):
        import_model(proto)


def test_values_that_nothing_writes_are_named():
    proto = small()
    proto.graph.node[1].input[0] = "ghost"
    with pytest.raises(OneModelError, match="'ghost'"):
        import_model(proto)


def test_initializers_of_the_wrong_size_are_named():
    proto = small()
    proto.graph.initializer[0].raw_data = b"123"
    with pytest.raises(OneModelError, match=r"'w'.*3 bytes"):
        import_model(proto)


def test_recursive_functions_are_refused():
    function = helper.make_function(
        "own", "Loopy", ["a"], ["b"], [node("Loopy", ["a"], ["b"], domain="own")],
        [helper.make_opsetid("own", 1)],
    )  # fmt: skip
    proto = model(
        [node("Loopy", ["x"], ["y"], domain="own")],
        {"x": (np.float32, (1,))},
        ["y"],
        functions=[function],
    )
    with pytest.raises(OneModelError, match="without end"):
        import_model(proto)


def test_random_damage_never_escapes():
    data = typed().SerializeToString()
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            changed[rng.integers(len(changed))] = rng.integers(256)
        with contextlib.suppress(OneModelError):
            og.Session(bytes(changed)).run(X)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint16", "int64", "float64", "bool"])
def test_typed_fields_and_raw_data(dtype):
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    raw = numpy_helper.from_array(array, "w")
    fields = helper.make_tensor(
        "w", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.flatten()
    )
    for tensor in (raw, fields):
        proto = model([node("Identity", ["w"], ["y"])], {}, ["y"], {})
        proto.graph.initializer.append(tensor)
        np.testing.assert_array_equal(og.Session(proto.SerializeToString()).run()[0], array)
