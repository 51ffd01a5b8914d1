"""Architectures of text."""

# ruff: noqa: D102 (a forward does what its class says)
from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    GRU,
    LSTM,
    Embedding,
    LayerNorm,
    Linear,
    ModuleList,
    NnModule,
    Parameter,
    RMSNorm,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from reference_models import Reference

TOKENS = {"tokens": ("batch", "length", "int64")}
LENGTHS = (
    {"batch": 2, "length": 9},
    {"batch": 1, "length": 1},
    {"batch": 3, "length": 14},
)


class Bert(NnModule):
    """Tokens, positions and a mask through encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = Embedding(10, 24), Embedding(32, 24)
        self.norm = LayerNorm(24)
        layer = TransformerEncoderLayer(24, 4, 48, activation="gelu", batch_first=True)
        self.encoder = TransformerEncoder(layer, 2)
        self.pooler = Linear(24, 24)

    def forward(self, tokens: om.Tensor, mask: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
        positions = om.arange(tokens.shape[1])
        x = self.norm(self.tokens(tokens) + self.positions(positions))
        x = self.encoder(x, src_key_padding_mask=mask == 0)
        return x, self.pooler(x[:, 0]).tanh()


class CausalBlock(NnModule):
    """Causal attention and a product, each after its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = LayerNorm(24), LayerNorm(24)
        self.qkv, self.out = Linear(24, 72), Linear(24, 24)
        self.up, self.down = Linear(24, 96), Linear(96, 24)

    def forward(self, x: om.Tensor) -> om.Tensor:
        b, t, c = x.shape
        q, k, v = (p.view(b, t, 4, 6).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(24, 2))
        scores = (q @ k.transpose(-2, -1)) * 6**-0.5
        hidden = om.ones(t, t).tril() == 0
        y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(NnModule):
    """A decoder whose output weights are its token embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = Embedding(10, 24), Embedding(32, 24)
        self.blocks = ModuleList([CausalBlock() for _ in range(2)])
        self.norm = LayerNorm(24)

    def forward(self, tokens: om.Tensor) -> om.Tensor:
        x = self.tokens(tokens) + self.positions(om.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def rotated(x: om.Tensor) -> om.Tensor:
    """Rotary positions: pairs of channels turned by an angle that grows with the place."""
    half = x.shape[-1] // 2
    rates = om.tensor([10000.0 ** (-n / half) for n in range(half)])
    angles = om.arange(x.shape[-2]).float()[:, None] * rates[None]
    cos, sin = om.cos(angles), om.sin(angles)
    first, second = x[..., :half], x[..., half:]
    return om.cat([first * cos - second * sin, second * cos + first * sin], -1)


class LlamaBlock(NnModule):
    """Grouped queries, rotary positions, RMS norm, gated product."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(24), RMSNorm(24)
        self.q, self.k, self.v = (Linear(24, n, bias=False) for n in (24, 12, 12))
        self.out = Linear(24, 24, bias=False)
        self.gate, self.up, self.down = (
            Linear(24, 40, bias=False), Linear(24, 40, bias=False), Linear(40, 24, bias=False),
        )  # fmt: skip

    def forward(self, x: om.Tensor) -> om.Tensor:
        b, t, c = x.shape
        y = self.norm1(x)
        q = rotated(self.q(y).view(b, t, 4, 6).transpose(1, 2))
        k = rotated(self.k(y).view(b, t, 2, 6).transpose(1, 2)).repeat_interleave(2, 1)
        v = self.v(y).view(b, t, 2, 6).transpose(1, 2).repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(NnModule):
    """Blocks between an embedding and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = Embedding(10, 24)
        self.blocks = ModuleList([LlamaBlock() for _ in range(2)])
        self.norm, self.head = RMSNorm(24), Linear(24, 10, bias=False)

    def forward(self, tokens: om.Tensor) -> om.Tensor:
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class RelativeAttention(NnModule):
    """Attention with a bias for each distance, in buckets that widen."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (Linear(24, 24, bias=False) for _ in range(4))
        self.bias = Embedding(16, 4)

    def forward(self, x: om.Tensor, memory: om.Tensor) -> om.Tensor:
        b, t, c = x.shape
        s = memory.shape[1]
        q = self.q(x).view(b, t, 4, 6).transpose(1, 2)
        k = self.k(memory).view(b, s, 4, 6).transpose(1, 2)
        v = self.v(memory).view(b, s, 4, 6).transpose(1, 2)
        distance = om.arange(s)[None] - om.arange(t)[:, None]
        near = distance.abs().clamp(max=4)
        far = (om.log(distance.abs().float().clamp(min=1.0)) * 2).long().clamp(max=3)
        bucket = om.where(distance.abs() < 4, near, near + far) + (distance > 0).long() * 8
        bias = self.bias(bucket).permute(2, 0, 1)
        y = ((q @ k.transpose(-2, -1)) + bias).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class T5(NnModule):
    """An encoder and a decoder step with relative biases."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = Embedding(10, 24)
        self.norms = ModuleList([RMSNorm(24) for _ in range(4)])
        self.encoder, self.own, self.cross = (RelativeAttention() for _ in range(3))
        self.up, self.down = Linear(24, 48, bias=False), Linear(48, 24, bias=False)

    def forward(self, tokens: om.Tensor, target: om.Tensor) -> om.Tensor:
        x = self.tokens(tokens)
        y = self.norms[0](x)
        x = x + self.encoder(y, y)
        x = x + self.down(F.relu(self.up(self.norms[1](x))))
        z = self.tokens(target)
        y = self.norms[2](z)
        z = z + self.own(y, y)
        z = z + self.cross(self.norms[3](z), x)
        return F.linear(z, self.tokens.weight)


class Tagger(NnModule):
    """A class for each word from a two-layer bidirectional LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = Embedding(10, 12)
        self.lstm = LSTM(12, 8, 2, batch_first=True, bidirectional=True)
        self.head = Linear(16, 5)

    def forward(self, tokens: om.Tensor) -> om.Tensor:
        x, _ = self.lstm(self.tokens(tokens))
        return F.log_softmax(self.head(x), -1)


class Translator(NnModule):
    """A GRU encoder whose last state begins a GRU decoder with attention."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = Embedding(10, 12), Embedding(10, 12)
        self.encoder = GRU(12, 16, batch_first=True)
        self.decoder = GRU(12, 16, batch_first=True)
        self.head = Linear(32, 10)

    def forward(self, tokens: om.Tensor, target: om.Tensor) -> om.Tensor:
        memory, state = self.encoder(self.source(tokens))
        x, _ = self.decoder(self.target(target), state)
        weights = (x @ memory.transpose(1, 2)).softmax(-1)
        return self.head(om.cat([x, weights @ memory], -1))


class Experts(NnModule):
    """Each token goes to its two best of four experts, mixed by their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.router = Embedding(10, 16), Linear(16, 4)
        self.up = Parameter(om.randn(4, 16, 24) * 0.2)
        self.down = Parameter(om.randn(4, 24, 16) * 0.2)
        self.norm = LayerNorm(16)

    def forward(self, tokens: om.Tensor) -> om.Tensor:
        x = self.tokens(tokens)
        best, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = best / best.sum(-1, keepdim=True)
        routed = (F.one_hot(chosen, 4).float() * weights[..., None]).sum(-2)
        hidden = F.silu(om.einsum("btd,edh->bteh", x, self.up))
        each = om.einsum("bteh,ehd->bted", hidden, self.down)
        return self.norm(x + (each * routed[..., None]).sum(-2))


MASKED = {"tokens": ("batch", "length", "int64"), "mask": ("batch", "length", "int64")}
PAIRS = {"tokens": ("batch", "length", "int64"), "target": ("batch", "steps", "int64")}
TWO = (
    {"batch": 2, "length": 9, "steps": 5},
    {"batch": 1, "length": 1, "steps": 1},
    {"batch": 3, "length": 4, "steps": 11},
)
REFERENCES = [
    Reference("BERT", Bert, MASKED, LENGTHS),
    Reference("GPT-2", Gpt2, TOKENS, LENGTHS),
    Reference("Llama", Llama, TOKENS, LENGTHS),
    Reference("T5", T5, PAIRS, TWO),
    Reference("LSTM tagger", Tagger, TOKENS, LENGTHS),
    Reference("seq2seq GRU", Translator, PAIRS, TWO),
    Reference("mixture of experts", Experts, TOKENS, LENGTHS),
]
