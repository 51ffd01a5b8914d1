"""A process killed at any step of a save leaves the old content or the new one, and can save again."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import onemodel_tensors as om
from onemodel_graph import load, save_onnx, save_v1
from onemodel_graph.ir import Graph
from onemodel_training import CheckpointStore, load_checkpoint, save_checkpoint
from onemodel_training.history import History
from onemodel_training.safetensors_io import save_safetensors

STEPS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
"""Audit events of what changes a folder; opening a file for writing and flushing are added."""


@dataclass(frozen=True)
class Kind:
    """One way of saving: ``save(folder, version)`` for versions 1 and 2, and what is there now."""

    name: str
    save: Callable[[Path, int], object]
    content: Callable[[Path], object]


def weights(version: int) -> dict[str, om.Tensor]:
    return {"a": om.arange(1000) + version, "b": om.full((3,), float(version))}


def history(version: int) -> History:
    found = History()
    for epoch in range(3):
        found.append({"epoch": epoch, "train_loss": 1.0 / (epoch + version)})
    return found


def onnx_with_data(graphs: tuple[Graph, Graph]) -> Kind:
    def content(folder: Path) -> object:
        # Loading checks that the model finds the data that it was saved with.
        graph = load(folder / "model.onnx").graph
        return {name: array.tolist() for name, array in graph.initializers.items()}

    def save(folder: Path, version: int) -> None:
        save_onnx(graphs[version - 1], folder / "model.onnx", limit=4)

    return Kind("onnx with data beside it", save, content)


def store(folder: Path) -> CheckpointStore:
    return CheckpointStore(folder / "store", keep=2)


def store_content(folder: Path) -> object:
    kept = store(folder)
    if not kept.steps():
        return None
    return {step: kept.load(step)["w"]["b"].tolist() for step in kept.steps()}


def save_new(folder: Path, version: int) -> None:
    """Checkpoints are not overwritten: the first version is none, and a second save does nothing."""
    if version == 2 and not (folder / "new").exists():
        save_checkpoint(folder / "new", {"w": weights(2)})


def file_kind(name: str, save: Callable[[Path, int], Any]) -> Kind:
    return Kind(
        name,
        lambda folder, version: save(folder / "file", version),
        lambda folder: (folder / "file").read_bytes(),
    )


def kinds(graphs: tuple[Graph, Graph]) -> list[Kind]:
    return [
        file_kind("onnx", lambda path, version: save_onnx(graphs[version - 1], path)),
        file_kind("v1", lambda path, version: save_v1(graphs[version - 1], path)),
        file_kind("safetensors", lambda path, version: save_safetensors(weights(version), path)),
        file_kind("csv", lambda path, version: history(version).write_csv(path)),
        file_kind("png", lambda path, version: history(version).write_png(path)),
        onnx_with_data(graphs),
        Kind(
            "checkpoint under a new name",
            save_new,
            lambda folder: (
                load_checkpoint(folder / "new")["w"]["b"].tolist()
                if (folder / "new").exists()
                else None
            ),
        ),
        Kind(
            "checkpoint of the same step",
            lambda folder, version: store(folder).save(5, {"w": weights(version)}),
            store_content,
        ),
    ]


def killing_itself(number: int, save: Callable[[], object]) -> Callable[[], None]:
    """The save, killed before the step of that number (from 0)."""

    def work() -> None:
        left = number

        def step() -> None:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            flags = arguments[2] if event == "open" else 0
            if event in STEPS or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                step()

        real = os.fsync

        def fsync(descriptor: int) -> None:
            step()
            real(descriptor)

        os.fsync = fsync
        sys.addaudithook(hook)
        save()

    return work


@pytest.mark.parametrize("number", range(8))
def test_every_kind_of_save(
    tmp_path: Path,
    graphs: tuple[Graph, Graph],
    forked: Callable[[Callable[[], None]], int],
    number: int,
) -> None:
    kind = kinds(graphs)[number]
    (tmp_path / "other").mkdir()
    kind.save(tmp_path / "other", 1)
    old = kind.content(tmp_path / "other")
    kind.save(tmp_path / "other", 2)
    new = kind.content(tmp_path / "other")
    assert old != new
    seen = []
    for step in range(100):
        folder = tmp_path / str(step)
        folder.mkdir()
        kind.save(folder, 1)
        code = forked(killing_itself(step, lambda at=folder: kind.save(at, 2)))
        seen.append(kind.content(folder))
        assert seen[-1] in (old, new), f"{kind.name}, killed before step {step}"
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kind.save(folder, 2)
        assert kind.content(folder) == new, f"{kind.name}, saved again after step {step}"
    assert code == 0
    # At least opening, flushing and renaming: the hook saw the save, and the last kill came late.
    assert len(seen) >= 4
    assert seen[0] == old
    assert seen[-1] == new
