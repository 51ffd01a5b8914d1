"""What loading costs: no part of the onnx package but its messages, no copy beyond the weights."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model, raw_data
from onemodel_kernels.errors import OneModelError

WIDE = np.random.default_rng(0).standard_normal((700, 700)).astype(np.float32)
NARROW = np.arange(700, dtype=np.float32)


def heavy():
    return model(
        [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["y"])],
        {"x": (np.float32, ("N", 700))},
        ["y"],
        {"w": WIDE, "b": NARROW, "unused": WIDE.astype(np.float64)},
    )


def test_reading_imports_the_messages_only(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(heavy().SerializeToString())
    code = (
        "import sys, onemodel_graph as og\n"
        f"session = og.Session({str(path)!r})\n"
        "print('onnx' in sys.modules, 'onnx.checker' in sys.modules)\n"
        "import onnx\n"
        "from onemodel_graph.onnx_io import messages\n"
        "print(messages.ModelProto is onnx.ModelProto)\n"
        f"og.load(onnx.load({str(path)!r}).SerializeToString())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]


def test_large_weights_are_read_past_protobuf(tmp_path):
    path = tmp_path / "m.onnx"
    data = heavy().SerializeToString()
    path.write_bytes(data)
    raw = raw_data.RawData(path)
    assert len(raw.message) < 6000 < len(data)
    assert raw.read(0) == WIDE.tobytes() and raw.read(1) is None
    assert raw.read(2) == WIDE.astype(np.float64).tobytes() and raw.read(3) is None
    raw.close()
    once, whole = import_model(path), import_model(data)
    for name, array in whole.graph.initializers.items():
        assert once.graph.initializers[name].tobytes() == array.tobytes()
    x = np.ones((2, 700), np.float32)
    np.testing.assert_array_equal(og.Session(path).run(x)[0], og.Session(data).run(x)[0])


@pytest.mark.parametrize("cut", [1, 100, 5000, 2_000_000, 3_000_000])
def test_truncated_large_files_are_refused(tmp_path, cut):
    path = tmp_path / "m.onnx"
    path.write_bytes(heavy().SerializeToString()[:-cut])
    with pytest.raises(OneModelError):
        og.load(path)


def test_damaged_large_files_are_refused_or_read(tmp_path):
    data = heavy().SerializeToString()
    rng = np.random.default_rng(1)
    path = tmp_path / "m.onnx"
    for _ in range(60):
        changed = bytearray(data)
        for place in rng.integers(0, 400, 2):
            changed[-int(place) - 1 if rng.random() < 0.5 else int(place)] = rng.integers(256)
        path.write_bytes(changed)
        try:
            og.load(path)
        except OneModelError:
            continue
        # What is read is what protobuf reads.
        og.load(onnx.load_from_string(bytes(changed)).SerializeToString())


def test_a_graph_in_two_pieces_is_left_to_protobuf(tmp_path):
    first, second = heavy(), onnx.ModelProto()
    second.graph.doc_string = "more"
    path = tmp_path / "m.onnx"
    path.write_bytes(first.SerializeToString() + second.SerializeToString())
    raw = raw_data.RawData(path)
    raw.close()
    assert len(raw.message) > WIDE.nbytes
    assert set(og.load(path).graph.initializers) == {"w", "b", "unused"}


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64", "uint8",
     "uint16", "uint32", "uint64"],
)  # fmt: skip
def test_numbers_that_are_not_raw_data(dtype):
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    numbers = [0, 1, 1, 0, 1, 0] if dtype == "bool" else [0, 1, 2, 100, 7, 3]
    if dtype.startswith(("int", "float", "bfloat")):
        numbers[4] = -7
    proto = model([node("Identity", ["w"], ["y"])], {"x": (np.float32, (1,))}, ["y"])
    proto.graph.initializer.append(onnx.helper.make_tensor("w", kind, [2, 3], numbers))
    assert not proto.graph.initializer[0].HasField("raw_data")
    (array,) = import_model(proto).graph.initializers.values()
    assert array.dtype == dtype and array.shape == (2, 3)
    want = onnx.numpy_helper.to_array(proto.graph.initializer[0])
    assert array.tobytes() == want.tobytes()
    del proto.graph.initializer[0].dims[1:]
    with pytest.raises(OneModelError, match=r"'w': 6 numbers.*needs 2"):
        import_model(proto)
