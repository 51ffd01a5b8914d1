"""What the file system refuses is an error that names the file, and what was there stays as it was."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import onemodel_tensors as om
from onemodel_graph import Session, load, save_onnx, save_v1
from onemodel_kernels.errors import OneModelError
from onemodel_training import CheckpointError, load_checkpoint, save_checkpoint
from onemodel_training.safetensors_io import load_safetensors, save_safetensors

NOBODY = 65534
ROOT = os.geteuid() == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the unprivileged user, below no private one."""
    path = Path(tempfile.mkdtemp())
    if ROOT:
        os.chown(path, NOBODY, -1)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """The test runs as a user whom permissions bind, also where it was started by root."""
    if not ROOT:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def fails_and_changes_nothing(save: Callable[[], object], folder: Path, errno: str) -> None:
    before = everything_in(folder)
    with pytest.raises(OSError, match=errno):
        save()
    assert everything_in(folder) == before


def test_a_file_size_limit(
    tmp_path: Path, kind: Any, forked: Callable[[Callable[[], None]], int]
) -> None:
    """As on a disk that fills up in the middle of a write."""
    kind.save(tmp_path, 1)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
        fails_and_changes_nothing(lambda: kind.save(tmp_path, 2), tmp_path, "File too large")

    assert forked(work) == 0
    kind.save(tmp_path, 2)


@pytest.mark.skipif(not ROOT or shutil.which("mount") is None, reason="mounting needs root")
def test_a_full_disk(tmp_path: Path, kind: Any) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mounted)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        kind.save(mounted, 1)
        filler = mounted / "filler"
        with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))
        fails_and_changes_nothing(lambda: kind.save(mounted, 2), mounted, "No space left")
        filler.unlink()
        kind.save(mounted, 2)
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_read_only_folder(folder: Path, kind: Any, unprivileged: None) -> None:
    kind.save(folder, 1)
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        fails_and_changes_nothing(lambda: kind.save(folder, 2), folder, "Permission denied")
    finally:
        for path in folders:
            path.chmod(0o755)


LOADERS: dict[str, Callable[[Path], object]] = {
    "load": load,
    "Session": Session,
    "load_safetensors": load_safetensors,
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_file_that_may_not_be_read(folder: Path, name: str, unprivileged: None) -> None:
    path = folder / "model.onnx"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises((OSError, OneModelError), match="Permission denied") as caught:
        LOADERS[name](path)
    assert "model.onnx" in str(caught.value)


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("what", ["missing", "folder", "empty", "loop"])
def test_a_path_without_a_file_behind_it(tmp_path: Path, name: str, what: str) -> None:
    path = tmp_path / "model.onnx"
    if what == "folder":
        path.mkdir()
    elif what == "empty":
        path.touch()
    elif what == "loop":
        path.symlink_to(path)
    with pytest.raises((OSError, OneModelError), match=r"model\.onnx"):
        LOADERS[name](path)


def test_a_checkpoint_that_may_not_be_read(folder: Path, unprivileged: None) -> None:
    path = save_checkpoint(folder / "one", {"w": om.ones(2)})
    (path / "tensors.safetensors").chmod(0)
    with pytest.raises(CheckpointError, match=r"no readable checkpoint.*Permission denied"):
        load_checkpoint(path)


NAMES = {
    "unicode": "модель 模型 ümläut 🙂 'quoted' \"twice\" #%&;",
    "line break": "two\nlines\tand a tab",
    "longest name": "n" * 255,
    "longest name in two bytes": "ü" * 127,
    "not UTF-8": os.fsdecode(b"latin-\xfc"),
    "hidden": ".model",
    "looks like an option": "--model",
}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow other names")
@pytest.mark.parametrize("name", NAMES)
def test_any_name_that_the_system_allows(tmp_path: Path, graphs: Any, name: str) -> None:
    path = tmp_path / NAMES[name]
    x = om.rand(3, 4).numpy()
    expected = Session(graphs[0]).run(x)[0].tobytes()
    for save in (save_onnx, save_v1):
        save(graphs[0], path)
        assert Session(path).run(x)[0].tobytes() == expected
        assert Session(str(path)).run(x)[0].tobytes() == expected
    save_safetensors({"a": om.ones(2)}, path)
    assert load_safetensors(path)["a"].tolist() == [1.0, 1.0]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    path.unlink()
    save_checkpoint(path, {"a": om.ones(2)})
    assert load_checkpoint(path)["a"].tolist() == [1.0, 1.0]


def test_a_very_long_path(tmp_path: Path, graphs: Any) -> None:
    path = tmp_path
    while len(str(path)) < 3500:
        path = path / ("d" * 200)
    path.mkdir(parents=True)
    x = om.rand(3, 4).numpy()
    expected = Session(graphs[0]).run(x)[0].tobytes()
    for save in (save_onnx, save_v1):
        save(graphs[0], path / "model")
        assert Session(path / "model").run(x)[0].tobytes() == expected
    with pytest.raises(OSError, match="File name too long"):
        save_onnx(graphs[0], path / ("m" * 700))
