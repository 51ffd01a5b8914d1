"""The model: convolutions over the line, a recurrent network along it, then a class per step."""

from __future__ import annotations

import hashlib

import onemodel_tensors as om
from digit_lines.lines import CLASSES, HEIGHT
from onemodel_tensors import functional as F
from onemodel_training import (
    LSTM,
    BatchNorm2d,
    Conv2d,
    Dropout,
    Linear,
    MaxPool2d,
    NnModule,
    ReLU,
    Sequential,
)


class LineReader(NnModule):
    """A CRNN: (batch, 1, HEIGHT, width) pixels to (width / 4, batch, CLASSES) log-probabilities.

    Source: Shi, Bai, Yao, "An End-to-End Trainable Neural Network for Image-based Sequence
    Recognition", 2015.
    """

    def __init__(self, channels: tuple[int, int, int] = (32, 64, 96), hidden: int = 64) -> None:
        super().__init__()
        first, second, third = channels
        self.features = Sequential(
            *_block(1, first, pool=(2, 2)),
            *_block(first, second, pool=(2, 2)),
            *_block(second, third, pool=(2, 1)),
            Dropout(0.3),
        )
        self.lstm = LSTM(third * (HEIGHT // 8), hidden, num_layers=2, bidirectional=True)
        self.classify = Linear(2 * hidden, CLASSES)

    def forward(self, image: om.Tensor) -> om.Tensor:
        """Log-probabilities of the blank and the ten digits at each step."""
        columns = self.features(image).permute(3, 0, 1, 2).flatten(2)
        steps, _ = self.lstm(columns)
        return F.log_softmax(self.classify(steps), dim=-1)


def _block(inputs: int, outputs: int, pool: tuple[int, int]) -> tuple[NnModule, ...]:
    return (
        Conv2d(inputs, outputs, 3, padding=1, bias=False),
        BatchNorm2d(outputs),
        ReLU(),
        MaxPool2d(pool),
    )


def weights_hash(model: NnModule) -> str:
    """SHA-256 over the names and bytes of every parameter and buffer."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
