"""The ports in examples/ learn, and their traces verify at other sizes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import onemodel_tensors as om
from onemodel_trace import Axis

PORTS = Path(__file__).resolve().parents[2] / "examples" / "ports"


def port(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"port_{name}", PORTS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_port_is_tested_and_short() -> None:
    names = {path.stem for path in PORTS.glob("*.py")}
    assert names == {"gpt", "llama", "resnet_digits", "seq2seq_gru", "unet", "vae", "vit"}
    for path in PORTS.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 150, path.name


@pytest.mark.parametrize(
    ("name", "amount", "least"),
    [
        ("resnet_digits", 3, 0.93),
        ("vit", 8, 0.85),
        ("seq2seq_gru", 200, 0.9),
        ("unet", 3, 0.6),
        ("llama", 250, 0.8),
    ],
)
def test_accuracy(name: str, amount: int, least: float) -> None:
    assert port(name).main(amount) >= least


@pytest.mark.parametrize(("name", "amount", "most"), [("gpt", 120, 2.9), ("vae", 8, 24.0)])
def test_loss(name: str, amount: int, most: float) -> None:
    assert port(name).main(amount) <= most


@pytest.mark.parametrize(("height", "width"), [(16, 24), (12, 16), (20, 28)])
def test_unet_traces_at_sizes_that_its_groups_divide(height: int, width: int) -> None:
    axes = {0: "batch", 2: Axis("height", multiple=4), 3: Axis("width", multiple=4)}
    model = port("unet").UNet().eval()
    traced = model.trace(om.zeros(2, 1, height, width), axis_names=[axes])
    assert [str(extent) for extent in traced.graph.outputs[0].shape] == [
        "batch", "1", "height", "width",
    ]  # fmt: skip
