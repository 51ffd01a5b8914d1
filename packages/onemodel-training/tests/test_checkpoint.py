"""Safetensors files and checkpoints."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onemodel_tensors as om
from onemodel_training import (
    CheckpointError,
    CheckpointStore,
    Linear,
    SafetensorsError,
    load,
    load_checkpoint,
    load_safetensors,
    save,
    save_checkpoint,
    save_safetensors,
)
from onemodel_training import checkpoint as checkpoint_module

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


def test_safetensors_keep_every_dtype_shape_and_bit(tmp_path: Path) -> None:
    tensors = {f"t.{dtype}": om.tensor([[0, 1], [1, 0]]).to(dtype) for dtype in DTYPES}
    tensors["empty"] = om.zeros(0, 3)
    tensors["scalar"] = om.tensor(2.5)
    tensors["strided"] = om.arange(6).reshape(2, 3).T
    save_safetensors(tensors, tmp_path / "a", {"made": "here"})
    loaded = load_safetensors(tmp_path / "a")
    assert list(loaded) == list(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert loaded[name]._array.tobytes() == tensor._array.contiguous().tobytes(), name
    save_safetensors(loaded, tmp_path / "b", {"made": "here"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_safetensors_are_what_the_reference_package_reads(tmp_path: Path) -> None:
    numpy_io = pytest.importorskip("safetensors.numpy")
    save_safetensors({"x": om.arange(6).reshape(2, 3), "y": om.ones(2)}, tmp_path / "a")
    read = numpy_io.load_file(tmp_path / "a")
    assert read["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    numpy_io.save_file({"z": np.float32([1, 2])}, tmp_path / "b")
    assert load_safetensors(tmp_path / "b")["z"].tolist() == [1.0, 2.0]


def entry(**changes: object) -> bytes:
    fields = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}
    text = json.dumps({"x": fields}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "at least 8 bytes, got 0"),
        (b"\xff" * 8, "header inside the file"),
        (b"\x02" + bytes(7) + b"[]", "JSON object"),
        (b"\x02" + bytes(7) + b"{]", "not JSON"),
        (entry(dtype="F7"), "unknown dtype 'F7'"),
        (entry(shape=[-2]), "sizes of 0 or more"),
        (entry(shape=[3]), "do not fit shape"),
        (entry(data_offsets=[8, 16]), "do not fit shape"),
        (entry(data_offsets=None), "malformed header entry"),
        (entry(shape=[True, 2]), "sizes of 0 or more"),
    ],
)
def test_malformed_safetensors_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(SafetensorsError, match=message):
        load_safetensors(tmp_path / "bad")


@settings(max_examples=200)
@given(st.binary(max_size=64), st.integers(0, 80))
def test_no_bytes_do_anything_but_raise(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    whole = entry()
    path.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    with contextlib.suppress(SafetensorsError):
        load_safetensors(path)


STATE = {
    "weights": {"a.b": om.arange(3), "c": om.ones(2, 2)},
    "nested": [1, 2.5, None, True, "text", {"7": om.zeros(1)}],
    "state": {0: {"step": 3}, 5: {}},
    "lr": 0.1 + 0.2,
}


def test_checkpoints_give_back_what_they_were_given(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "one", STATE)
    state = load_checkpoint(tmp_path / "one")
    assert state["weights"]["a.b"].tolist() == [0, 1, 2]
    assert state["nested"][:5] == STATE["nested"][:5]
    assert state["nested"][5]["7"].tolist() == [0.0]
    assert state["state"] == {0: {"step": 3}, 5: {}}
    assert state["lr"] == 0.1 + 0.2
    with pytest.raises(CheckpointError, match="not overwritten"):
        save_checkpoint(tmp_path / "one", STATE)


def test_a_checkpoint_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint_module, "write_atomically", fail)
    with pytest.raises(OSError, match="no space left"):
        save_checkpoint(tmp_path / "one", STATE)
    assert list(tmp_path.iterdir()) == []


def test_damage_is_noticed(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "one", STATE)
    file = tmp_path / "one" / "tensors.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(tmp_path / "one")
    with pytest.raises(CheckpointError, match="no readable checkpoint"):
        load_checkpoint(tmp_path / "two")


def test_other_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"a/b: expected tensors.*got object"):
        save_checkpoint(tmp_path / "one", {"a": {"b": object()}})


def test_a_store_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "runs", keep=2)
    assert store.latest() is None
    assert store.best() is None
    for step in range(1, 6):
        store.save(step, {"step": step}, best=step == 2)
    assert store.steps() == [2, 4, 5]
    assert store.latest() == {"step": 5}
    assert store.best() == {"step": 2}
    store.save(6, {"step": 6}, best=True)
    assert store.steps() == [5, 6]


def test_one_file_holds_nested_values(tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    save({"old": om.zeros(1)}, file)
    save(STATE, file)
    found = load(file, map_location="cpu")
    assert found["weights"]["a.b"].tolist() == [0, 1, 2]
    assert found["nested"][:5] == STATE["nested"][:5]
    assert found["state"] == {0: {"step": 3}, 5: {}}
    save(STATE["weights"], file)
    assert {name: t.tolist() for name, t in load(file).items()} == {
        name: t.tolist() for name, t in STATE["weights"].items()
    }
    plain = tmp_path / "plain.safetensors"
    save_safetensors({"x": om.ones(2)}, plain)
    assert load(plain)["x"].tolist() == [1.0, 1.0]
    with pytest.raises(CheckpointError, match=r"got Linear; save its state_dict\(\)"):
        save(Linear(1, 1), file)
    with pytest.raises(CheckpointError, match="no file may run code"):
        load(file, weights_only=False)
