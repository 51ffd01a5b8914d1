"""Architectures of sound and of lines of writing."""

# ruff: noqa: D102 (a forward does what its class says)
from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    GELU,
    LSTM,
    BatchNorm2d,
    Conv1d,
    Conv2d,
    Embedding,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool2d,
    ModuleList,
    NnModule,
    ReLU,
    Sequential,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from reference_models import Reference


class Whisper(NnModule):
    """Two convolutions and an encoder over frames, a decoder over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Conv1d(8, 24, 3, padding=1), Conv1d(24, 24, 3, 2, 1)
        self.places, self.tokens = Embedding(64, 24), Embedding(10, 24)
        self.encoder = TransformerEncoder(
            TransformerEncoderLayer(
                24, 4, 48, activation="gelu", batch_first=True, norm_first=True
            ),
            1,
        )
        self.decoder = TransformerDecoder(
            TransformerDecoderLayer(
                24, 4, 48, activation="gelu", batch_first=True, norm_first=True
            ),
            1,
        )

    def forward(self, frames: om.Tensor, tokens: om.Tensor) -> om.Tensor:
        x = F.gelu(self.second(F.gelu(self.first(frames)))).transpose(1, 2)
        x = self.encoder(x + self.places(om.arange(x.shape[1])))
        t = tokens.shape[1]
        mask = om.full((t, t), float("-inf")).triu(1)
        y = self.tokens(tokens) + self.places(om.arange(t))
        return F.linear(self.decoder(y, x, tgt_mask=mask), self.tokens.weight)


class Wav2Vec(NnModule):
    """Strided convolutions over samples, grouped positions, an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = Conv1d(1, 12, 10, 5, bias=False), GroupNorm(12, 12)
        self.rest = Sequential(
            Conv1d(12, 12, 3, 2, bias=False), GELU(), Conv1d(12, 24, 2, 2), GELU()
        )
        self.places = Conv1d(24, 24, 8, padding=4, groups=4)
        self.encoder = TransformerEncoder(TransformerEncoderLayer(24, 4, 48, batch_first=True), 1)
        self.after = LayerNorm(24)

    def forward(self, samples: om.Tensor) -> om.Tensor:
        x = self.rest(F.gelu(self.norm(self.first(samples.unsqueeze(1)))))
        x = x + F.gelu(self.places(x)[:, :, :-1])
        return self.encoder(self.after(x.transpose(1, 2)))


class Causal(NnModule):
    """A dilated convolution that sees only the past."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.conv = Conv1d(inputs, outputs, 2, dilation=dilation)
        self.dilation = dilation

    def forward(self, x: om.Tensor) -> om.Tensor:
        return self.conv(F.pad(x, (self.dilation, 0)))


class Temporal(NnModule):
    """Residual blocks of causal convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = Conv1d(4, 8, 1)
        self.layers = ModuleList([Causal(8, 8, 2**n) for n in range(3)])
        self.head = Conv1d(8, 3, 1)

    def forward(self, signal: om.Tensor) -> om.Tensor:
        x = self.expand(signal)
        for layer in self.layers:
            x = F.relu(x + F.relu(layer(x)))
        return self.head(x)


class WaveNet(NnModule):
    """Gated dilated convolutions with summed skips."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = Conv1d(4, 8, 1)
        self.gates = ModuleList([Causal(8, 16, 2**n) for n in range(3)])
        self.skips = ModuleList([Conv1d(8, 6, 1) for _ in range(3)])
        self.mixes = ModuleList([Conv1d(8, 8, 1) for _ in range(3)])
        self.head = Conv1d(6, 5, 1)

    def forward(self, signal: om.Tensor) -> om.Tensor:
        x = self.expand(signal)
        total = None
        for gate, skip, mix in zip(self.gates, self.skips, self.mixes):
            filtered, opened = gate(x).chunk(2, 1)
            y = filtered.tanh() * opened.sigmoid()
            total = skip(y) if total is None else total + skip(y)
            x = x + mix(y)
        return self.head(F.relu(total))


class Reader(NnModule):
    """Convolutions over a line of writing, two bidirectional LSTM layers, classes."""

    def __init__(self) -> None:
        super().__init__()
        self.features = Sequential(
            Conv2d(1, 8, 3, padding=1), BatchNorm2d(8), ReLU(), MaxPool2d(2),
            Conv2d(8, 12, 3, padding=1), BatchNorm2d(12), ReLU(), MaxPool2d((2, 1)),
        )  # fmt: skip
        self.lstm = LSTM(48, 16, 2, bidirectional=True)
        self.head = Linear(32, 11)

    def forward(self, image: om.Tensor) -> om.Tensor:
        x = self.features(image)
        b, c, h, w = x.shape
        x, _ = self.lstm(x.permute(3, 0, 1, 2).reshape(w, b, c * h))
        return F.log_softmax(self.head(x), -1)


SIGNAL = {"signal": ("batch", 4, "time")}
TIMES = ({"batch": 2, "time": 17}, {"batch": 1, "time": 1}, {"batch": 3, "time": 40})
REFERENCES = [
    Reference(
        "Whisper",
        Whisper,
        {"frames": ("batch", 8, "time"), "tokens": ("batch", "steps", "int64")},
        (
            {"batch": 2, "time": 21, "steps": 5},
            {"batch": 1, "time": 1, "steps": 1},
            {"batch": 3, "time": 40, "steps": 9},
        ),
    ),
    Reference(
        "wav2vec",
        Wav2Vec,
        {"samples": ("batch", "time")},
        ({"batch": 2, "time": 200}, {"batch": 1, "time": 64}, {"batch": 3, "time": 333}),
    ),
    Reference("TCN", Temporal, SIGNAL, TIMES),
    Reference("WaveNet", WaveNet, SIGNAL, TIMES),
    Reference(
        "CRNN",
        Reader,
        {"image": ("batch", 1, 16, "width")},
        ({"batch": 3, "width": 37}, {"batch": 1, "width": 2}, {"batch": 8, "width": 64}),
    ),
]
