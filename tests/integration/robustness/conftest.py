"""Models, every way of saving, and child processes of the robustness tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import onemodel_tensors as om
from onemodel_graph import load, save_onnx, save_v1
from onemodel_graph.ir import Graph
from onemodel_training import (
    CheckpointStore,
    Linear,
    ReLU,
    Sequential,
    load_checkpoint,
    save_checkpoint,
)
from onemodel_training.history import History
from onemodel_training.safetensors_io import save_safetensors


def make_graph(seed: int, width: int = 8) -> Graph:
    """A small network, traced with a symbolic batch; another seed gives other weights."""
    om.manual_seed(seed)
    model = Sequential(Linear(4, width), ReLU(), Linear(width, 3)).eval()
    return model.trace(om.rand(2, 4), axis_names={"input": {0: "batch"}}).graph


def run_forked(work: Callable[[], None]) -> int:
    """Run the work in a forked child: its exit code, 0 if it returned, minus the killing signal."""
    with warnings.catch_warnings():
        # Python warns of threads of other libraries; the child only does what the test wants to see.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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


def every_kind(graphs: tuple[Graph, Graph]) -> list[Kind]:
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


@pytest.fixture(scope="session", name="make_graph")
def graph_maker() -> Callable[..., Graph]:
    """:func:`make_graph`."""
    return make_graph


@pytest.fixture(scope="session")
def forked() -> Callable[[Callable[[], None]], int]:
    """:func:`run_forked`."""
    return run_forked


@pytest.fixture(scope="session")
def graphs() -> tuple[Graph, Graph]:
    """Two models with the same graph and different weights."""
    return make_graph(1), make_graph(2)


@pytest.fixture(params=range(8))
def kind(request: pytest.FixtureRequest, graphs: tuple[Graph, Graph]) -> Kind:
    """Each way of saving in turn."""
    kinds = every_kind(graphs)
    assert len(kinds) == 8
    return kinds[request.param]
