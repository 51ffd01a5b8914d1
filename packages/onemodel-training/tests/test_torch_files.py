"""PyTorch's files: both forms, and that nothing in them runs."""

from __future__ import annotations

import collections
import contextlib
import pickle
import struct
import sys
import types
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onemodel_training import Linear
from onemodel_training.pickled import Opaque, PickleError, read_pickle
from onemodel_training.torch_files import TorchFileError, load_torch_file

VALUES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


class Storage:
    def __init__(self, key: str, kind: type, count: int) -> None:
        self.key, self.kind, self.count = key, kind, count


class Tensor:
    def __init__(
        self, storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        self.arguments = (storage, offset, shape, strides, False, collections.OrderedDict())

    def __reduce__(self) -> Any:
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


class Pickler(pickle.Pickler):
    def persistent_id(self, thing: object) -> object:
        if isinstance(thing, Storage):
            return ("storage", thing.kind, thing.key, "cpu", thing.count)
        return None


@pytest.fixture(autouse=True)
def names_of_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2() -> None:
        raise AssertionError

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2  # type: ignore[attr-defined]
    for name in ("FloatStorage", "LongStorage"):
        kind = type(name, (), {"__module__": "torch"})
        setattr(torch, name, kind)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    yield


def pickled(value: object) -> bytes:
    stream = BytesIO()
    Pickler(stream, protocol=2).dump(value)
    return stream.getvalue()


def state() -> dict[str, Any]:
    floats = Storage("0", sys.modules["torch"].FloatStorage, 6)
    longs = Storage("1", sys.modules["torch"].LongStorage, 1)
    return collections.OrderedDict(
        weight=Tensor(floats, 0, (2, 3), (3, 1)),
        turned=Tensor(floats, 0, (3, 2), (1, 3)),
        tail=Tensor(floats, 4, (2,), (1,)),
        count=Tensor(longs, 0, (), ()),
        extra={"list": [1, 2.5, None, True, "text", (3,)]},
    )


def write_zip(path: Path, value: object, **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("archive/data.pkl", pickled(value))
        archive.writestr("archive/data/0", struct.pack("<6f", *VALUES))
        archive.writestr("archive/data/1", struct.pack("<q", 7))
        archive.writestr("archive/byteorder", "little")
    return path


def write_legacy(path: Path, value: object) -> Path:
    parts = [
        pickle.dumps(0x1950A86A20F9469CFC6C, 2),
        pickle.dumps(1001, 2),
        pickle.dumps({"little_endian": True, "protocol_version": 1001}, 2),
        pickled(value),
        pickle.dumps(["0", "1"], 2),
        struct.pack("<q6f", 6, *VALUES),
        struct.pack("<qq", 1, 7),
    ]
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.parametrize("write", [write_zip, write_legacy])
def test_both_forms_give_the_state(tmp_path: Path, write: Any) -> None:
    loaded = load_torch_file(write(tmp_path / "weights.pt", state()))
    assert list(loaded) == ["weight", "turned", "tail", "count", "extra"]
    assert loaded["weight"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert loaded["turned"].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert loaded["tail"].tolist() == [5, 6]
    assert loaded["count"].item() == 7
    assert loaded["count"].dtype == "int64"
    assert loaded["extra"] == {"list": [1, 2.5, None, True, "text", (3,)]}
    layer = Linear(3, 2, bias=False)
    layer.load_state_dict({"weight": loaded["weight"]})


class Evil:
    def __reduce__(self) -> Any:
        return print, ("this ran",)


def test_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load_torch_file(write_zip(tmp_path / "evil.pt", {"x": Evil()}))
    assert isinstance(loaded["x"], Opaque)
    assert loaded["x"].kind == "__builtin__.print"
    assert loaded["x"].arguments == ("this ran",)
    assert capsys.readouterr().out == ""


def test_what_is_malformed_is_named(tmp_path: Path) -> None:
    floats = Storage("0", sys.modules["torch"].FloatStorage, 6)
    for shape, strides, message in (
        ((3, 3), (3, 1), "reaches past its storage"),
        ((2, 2), (3, 1), "leave gaps"),
        ((-1,), (1,), "sizes and strides of 0 or more"),
    ):
        path = write_zip(tmp_path / "bad.pt", {"x": Tensor(floats, 0, shape, strides)})
        with pytest.raises(TorchFileError, match=message):
            load_torch_file(path)
    wrong = Storage("0", sys.modules["torch"].FloatStorage, 9)
    path = write_zip(tmp_path / "bad.pt", {"x": Tensor(wrong, 0, (9,), (1,))})
    with pytest.raises(TorchFileError, match="expected 36 plain bytes, got 24"):
        load_torch_file(path)
    path.write_bytes(pickle.dumps(5))
    with pytest.raises(TorchFileError, match=r"not written by torch\.save"):
        load_torch_file(path)
    path.write_bytes(b"GIF89a")
    with pytest.raises(PickleError):
        load_torch_file(path)


@settings(max_examples=300)
@given(st.binary(max_size=80))
def test_no_bytes_do_anything_but_raise(noise: bytes) -> None:
    with contextlib.suppress(PickleError):
        read_pickle(BytesIO(noise), {})


@settings(max_examples=200)
@given(st.integers(0, 400), st.integers(0, 255))
def test_changed_files_only_fail(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    content = bytearray(pickle.dumps({"a": [1, 2, (3, "x")], "b": {4: None}}, 4))
    content[at % len(content)] = value
    with contextlib.suppress(PickleError):
        read_pickle(BytesIO(bytes(content)), {})
