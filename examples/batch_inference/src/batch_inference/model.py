"""A small convolutional classifier of scikit-learn's scanned digits, trained in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import onemodel_tensors as om
from onemodel_training import (
    AdamW,
    Conv2d,
    CrossEntropyLoss,
    Flatten,
    Linear,
    MaxPool2d,
    ReLU,
    Sequential,
)


def scans() -> tuple[np.ndarray, np.ndarray]:
    """All scans, float32 of shape (1797, 1, 8, 8) in 0 … 1, and the digits that they show."""
    found = load_digits()
    images = (found.images[:, None] / 16).astype(np.float32)
    return np.ascontiguousarray(images), found.target.astype(np.int64)


def train(path: Path, epochs: int = 4, seed: int = 7) -> None:
    """Train on three scans of four and save the traced model as ONNX with a symbolic batch."""
    om.manual_seed(seed)
    model = Sequential(
        Conv2d(1, 16, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(), Linear(16 * 16, 10)
    )
    optimiser, loss = AdamW(model.parameters(), lr=5e-3), CrossEntropyLoss()
    images, digits = scans()
    held_in = np.arange(len(images)) % 4 != 0
    images, digits = images[held_in], digits[held_in]
    for _ in range(epochs):
        for start in range(0, len(images), 64):
            part = slice(start, start + 64)
            optimiser.zero_grad()
            loss(model(om.tensor(images[part])), om.tensor(digits[part])).backward()
            optimiser.step()
    model.eval()
    traced = model.trace(om.tensor(images[:2]), axis_names={"input": {0: "batch"}})
    traced.save_onnx(path)
