import contextlib
import json
import struct

import numpy as np
import pytest
from models import model, node
from onnx import TensorProto, helper

import onemodel_graph as og
from onemodel_graph.format.v1 import VERSION, read_v1, save_v1, to_bytes
from onemodel_graph.onnx_io import import_model
from onemodel_kernels.errors import OneModelError, UnsupportedError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def loaded():
    branch = helper.make_graph(
        [node("Add", ["t", "c"], ["inner"])],
        "then",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)],
        [helper.make_tensor("c", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])],
    )
    other = helper.make_graph(
        [node("Identity", ["t"], ["same"])],
        "else",
        [],
        [helper.make_tensor_value_info("same", TensorProto.FLOAT, None)],
    )
    return import_model(
        model(
            [
                node("Mul", ["x", "w"], ["t"], name="scale"),
                node("If", ["flag"], ["y"], then_branch=branch, else_branch=other),
            ],
            {"x": (np.float32, ("N", 3))},
            ["y"],
            {"w": np.array([1, 2, 4], np.float32), "flag": np.array(True)},
        )
    )


def test_round_trip_gives_the_same_bits(loaded, tmp_path):
    path = tmp_path / "model.om"
    save_v1(loaded, path)
    again = og.load(path)
    assert to_bytes(again) == path.read_bytes()
    want = og.Session(loaded).run(X)[0]
    np.testing.assert_array_equal(og.Session(path).run(X)[0], want)
    np.testing.assert_array_equal(og.Session(path.read_bytes()).run(X)[0], want)


def test_safetensors_reads_the_weights(loaded, tmp_path):
    path = tmp_path / "model.safetensors"
    save_v1(loaded, path)
    safetensors = pytest.importorskip("safetensors.numpy")
    weights = safetensors.load_file(path)
    np.testing.assert_array_equal(weights["w"], np.array([1, 2, 4], np.float32))


def test_equal_models_give_equal_bytes(loaded):
    assert to_bytes(loaded) == to_bytes(loaded)
    assert b"/home" not in to_bytes(loaded)


def test_a_newer_version_is_refused(loaded, tmp_path):
    data = to_bytes(loaded)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"]["version"] = str(VERSION + 1)
    packed = json.dumps(header).encode()
    changed = struct.pack("<Q", len(packed)) + packed + data[8 + length :]
    with pytest.raises(UnsupportedError, match=rf"version {VERSION + 1}.*up to {VERSION}"):
        read_v1(changed)


def test_damage_is_found(loaded):
    data = bytearray(to_bytes(loaded))
    data[-3] ^= 1
    with pytest.raises(OneModelError, match="weights are damaged"):
        read_v1(bytes(data))


@pytest.mark.parametrize("length", [0, 4, 8, 9, 40, 300])
def test_truncated_files_are_refused(loaded, length):
    with pytest.raises(OneModelError):
        read_v1(to_bytes(loaded)[:length])


def test_random_damage_never_escapes(loaded):
    data = to_bytes(loaded)
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            changed[rng.integers(len(changed))] = rng.integers(256)
        with contextlib.suppress(OneModelError):
            read_v1(bytes(changed))


def test_a_failed_save_leaves_the_old_file(loaded, tmp_path, monkeypatch):
    path = tmp_path / "model.om"
    save_v1(loaded, path)
    before = path.read_bytes()
    loaded.graph.nodes[0].attributes["bad"] = object()
    with pytest.raises(OneModelError, match="cannot hold"):
        save_v1(loaded, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.om"]
