"""The dense, recurrent and attention workloads, built from the layers of onemodel_training."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    GELU,
    LSTM,
    Conv2d,
    Embedding,
    LayerNorm,
    Linear,
    NnModule,
    Parameter,
    ReLU,
    Sequential,
)


class Add(NnModule):
    """One addition: what remains is the cost of a run."""

    def forward(self, a: om.Tensor, b: om.Tensor) -> om.Tensor:
        """The sum."""
        return a + b


def mlp() -> NnModule:
    """Three dense layers for (N, 784)."""
    return Sequential(Linear(784, 256), ReLU(), Linear(256, 128), ReLU(), Linear(128, 10))


class Lstm(NnModule):
    """A two-layer LSTM and a classifier for (T, N, 64)."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = LSTM(64, 128, num_layers=2)
        self.classify = Linear(128, 10)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """Logits at each step."""
        steps, _ = self.lstm(x)
        return self.classify(steps)


class _Block(NnModule):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal, self.head_width = heads, causal, width // heads
        self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)
        self.qkv, self.project = Linear(width, 3 * width), Linear(width, width)
        self.mlp = Sequential(Linear(width, 4 * width), GELU(), Linear(4 * width, width))

    def forward(self, x: om.Tensor) -> om.Tensor:
        batch, length, width = x.shape
        packed = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, self.head_width)
        query, key, value = packed.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Transformer(NnModule):
    """Embedding, position table, six pre-norm blocks, for token ids (N, T)."""

    def __init__(self, width: int, heads: int, words: int, causal: bool) -> None:
        super().__init__()
        self.tokens = Embedding(words, width)
        self.positions = Parameter(0.02 * om.randn(1, 512, width))
        self.blocks = Sequential(*(_Block(width, heads, causal) for _ in range(6)))
        self.norm = LayerNorm(width)
        self.classify = Linear(width, words if causal else 2)

    def forward(self, ids: om.Tensor) -> om.Tensor:
        """Logits: of the next word at each position when causal, else of two classes."""
        x = self.tokens(ids) + self.positions[:, : ids.shape[1]]
        return self.classify(self.norm(self.blocks(x)))


def encoder6() -> NnModule:
    """An encoder of six layers, width 384."""
    return Transformer(384, 6, 8192, causal=False)


def gpt6() -> NnModule:
    """A decoder of six layers, width 768."""
    return Transformer(768, 12, 8192, causal=True)


class VisionTransformer(NnModule):
    """ViT-Tiny with patches of 16 pixels for (N, 3, 224, 224). Source: Dosovitskiy et al., 2020."""

    def __init__(self, width: int = 192, heads: int = 3, depth: int = 12) -> None:
        super().__init__()
        self.patches = Conv2d(3, width, 16, stride=16)
        self.token = Parameter(0.02 * om.randn(1, 1, width))
        self.positions = Parameter(0.02 * om.randn(1, 197, width))
        self.blocks = Sequential(*(_Block(width, heads, causal=False) for _ in range(depth)))
        self.norm = LayerNorm(width)
        self.classify = Linear(width, 1000)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """Logits of 1,000 classes."""
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = om.cat([self.token.expand(y.shape[0], -1, -1), y], 1) + self.positions
        return self.classify(self.norm(self.blocks(y))[:, 0])
