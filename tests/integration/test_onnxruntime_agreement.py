"""ONNX Runtime reads what is written and agrees, at the traced sizes and at others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_tensors import functional as F
from onemodel_training import (
    GELU,
    GRU,
    LSTM,
    BatchNorm1d,
    BatchNorm2d,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool2d,
    NnModule,
    ReLU,
    Sequential,
    SiLU,
    Softmax,
)

#: Both compute in float32 with sums of at most a few hundred terms in different orders.
RELATIVE, ABSOLUTE = 2e-5, 2e-6


class Attention(NnModule):
    """Self-attention with symbolic batch and length."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = Linear(12, 36)
        self.norm = LayerNorm(12)

    def forward(self, x: om.Tensor) -> om.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            self.qkv(self.norm(x)).view(batch, length, 3, 3, 4).permute(2, 0, 3, 1, 4).unbind(0)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + y.transpose(1, 2).reshape(batch, length, width)


class Recurrent(NnModule):
    """Two recurrent layers, the second over the first one's outputs and states."""

    def __init__(self) -> None:
        super().__init__()
        self.first = LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.second = GRU(12, 4, batch_first=True)

    def forward(self, x: om.Tensor) -> tuple[om.Tensor, om.Tensor, om.Tensor]:
        steps, (hidden, cell) = self.first(x)
        steps, last = self.second(steps)
        return steps, last, hidden + cell


class Moments(NnModule):
    """Reductions over symbolic axes, and a size used as a value."""

    def forward(self, x: om.Tensor) -> tuple[om.Tensor, ...]:
        mean = x.mean((0, 1), keepdim=True)
        spread = (x - mean).square().sum((0, 1)) / (x.shape[0] * x.shape[1])
        return mean, spread, x.amax(1), x.argmin(-1), F.softmax(x, dim=1).log()


class Shapes(NnModule):
    """Views, slices, joins and padding along symbolic axes."""

    def forward(self, x: om.Tensor) -> tuple[om.Tensor, ...]:
        batch, length, width = x.shape
        joined = om.cat([x, x.flip(1)], 1)
        padded = F.pad(x, (0, 0, 1, 2))
        return (
            joined.reshape(batch * length * 2, width),
            padded[:, 1:-1:2],
            x[:, -1].unsqueeze(1).expand(batch, length, width),
            om.stack([x, x * 2.0], 2).flatten(1, 2),
        )


@dataclass(frozen=True)
class Model:
    """A model, the shape of its example, its symbolic axes, and shapes to run it at."""

    build: Callable[[], NnModule]
    example: tuple[int, ...]
    axes: dict[int, str]
    others: tuple[tuple[int, ...], ...]
    vocabulary: int | None = None


MODELS = {
    "dense": Model(
        lambda: Sequential(Linear(7, 9), BatchNorm1d(9), SiLU(), Linear(9, 4), Softmax(-1)),
        (3, 7),
        {0: "batch"},
        ((1, 7), (8, 7)),
    ),
    "convolutional": Model(
        lambda: Sequential(
            Conv2d(3, 6, 3, stride=2, padding=1),
            BatchNorm2d(6),
            ReLU(),
            Conv2d(6, 6, 3, padding=2, dilation=2, groups=3),
            GroupNorm(2, 6),
            GELU(),
            MaxPool2d(3, stride=2, padding=1),
            ConvTranspose2d(6, 2, 4, stride=2, padding=1),
        ),
        (2, 3, 20, 23),
        {0: "batch", 2: "height", 3: "width"},
        ((1, 3, 20, 23), (3, 3, 9, 31), (1, 3, 5, 5)),
    ),
    "one axis": Model(
        lambda: Sequential(Conv1d(4, 8, 5, padding=2), ReLU(), Conv1d(8, 3, 1)),
        (2, 4, 17),
        {0: "batch", 2: "time"},
        ((1, 4, 1), (5, 4, 40)),
    ),
    "flatten": Model(
        lambda: Sequential(Conv2d(1, 2, 3), Flatten(), Linear(32, 5)),
        (3, 1, 6, 6),
        {0: "batch"},
        ((1, 1, 6, 6), (9, 1, 6, 6)),
    ),
    "attention": Model(Attention, (2, 5, 12), {0: "batch", 1: "length"}, ((1, 1, 12), (4, 19, 12))),
    "recurrent": Model(Recurrent, (2, 7, 5), {0: "batch", 1: "time"}, ((1, 1, 5), (3, 20, 5))),
    "moments": Model(Moments, (2, 5, 4), {0: "batch", 1: "time"}, ((1, 1, 4), (6, 9, 4))),
    "shapes": Model(Shapes, (2, 5, 4), {0: "batch", 1: "time"}, ((1, 1, 4), (6, 8, 4))),
    "embedding": Model(
        lambda: Sequential(Embedding(50, 8), LayerNorm(8), Linear(8, 50)),
        (2, 5),
        {0: "batch", 1: "length"},
        ((1, 1), (4, 9)),
        vocabulary=50,
    ),
}


def values(model: Model, shape: tuple[int, ...]) -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(sum(shape)))
    if model.vocabulary is not None:
        return generator.integers(0, model.vocabulary, shape)
    return generator.standard_normal(shape, np.float32)


@pytest.mark.parametrize("name", MODELS)
def test_agreement(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    om.manual_seed(0)
    module = model.build().eval()
    traced = module.trace(
        om.from_numpy(values(model, model.example)),
        input_names=["x"],
        axis_names={"x": model.axes},
    )
    file = tmp_path / "model.onnx"
    traced.save_onnx(file)
    onnx.checker.check_model(onnx.load(file), full_check=True)
    peer = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    exact = Session(file, mode=ArithmeticMode.EXACT)
    fast = Session(file, mode=ArithmeticMode.FAST)
    for shape in (model.example, *model.others):
        x = values(model, shape)
        with om.no_grad():
            eager = module(om.from_numpy(x))
        eager = eager if isinstance(eager, tuple) else (eager,)
        results = (exact.run({"x": x}), fast.run({"x": x}), peer.run(None, {"x": x}))
        for output, *others in zip(eager, *results, strict=True):
            expected = output.numpy()
            assert others[0].tobytes() == expected.tobytes(), shape
            for other in others[1:]:
                assert other.shape == expected.shape
                assert other.dtype == expected.dtype
                np.testing.assert_allclose(other, expected, rtol=RELATIVE, atol=ABSOLUTE)
