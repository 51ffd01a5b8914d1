"""A Llama-style decoder (rotary places, RMS norms, grouped queries, SwiGLU) that learns to sort.

python examples/ports/llama.py [--steps 300]
"""

from __future__ import annotations

import argparse

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    AdamW,
    Embedding,
    Linear,
    ModuleList,
    NnModule,
    RMSNorm,
    WarmupCosineLR,
    accuracy,
    clip_grad_norm_,
    manual_seed,
)

SYMBOLS = 16
SEPARATOR = 0


def rotate(x: om.Tensor, cosine: om.Tensor, sine: om.Tensor) -> om.Tensor:
    """Rotary places: halves of each head as the two parts of complex numbers. Su et al. 2021."""
    first, second = x.chunk(2, -1)
    return x * cosine + om.cat([-second, first], -1) * sine


class Attention(NnModule):
    """Causal attention where several query heads share one key and value head."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.q_proj = Linear(width, width, bias=False)
        self.k_proj = Linear(width, groups * self.head, bias=False)
        self.v_proj = Linear(width, groups * self.head, bias=False)
        self.o_proj = Linear(width, width, bias=False)

    def forward(self, x: om.Tensor, cosine: om.Tensor, sine: om.Tensor) -> om.Tensor:
        """(batch, length, width) to the same."""
        batch, length, width = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.head).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.groups, self.head).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.groups, self.head).transpose(1, 2)
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(NnModule):
    """Attention and a gated feed-forward net, each after an RMS norm."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(width, eps=1e-5)
        self.self_attn = Attention(width, heads, groups)
        self.post_attention_layernorm = RMSNorm(width, eps=1e-5)
        self.gate_proj = Linear(width, 2 * width, bias=False)
        self.up_proj = Linear(width, 2 * width, bias=False)
        self.down_proj = Linear(2 * width, width, bias=False)

    def forward(self, x: om.Tensor, cosine: om.Tensor, sine: om.Tensor) -> om.Tensor:
        """(batch, length, width) to the same."""
        x = x + self.self_attn(self.input_layernorm(x), cosine, sine)
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(NnModule):
    """Scores of the next symbol at every place. Source: Touvron et al. 2023."""

    def __init__(self, width: int = 64, heads: int = 4, groups: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.embed_tokens = Embedding(SYMBOLS, width)
        self.layers = ModuleList([Layer(width, heads, groups) for _ in range(layers)])
        self.norm = RMSNorm(width, eps=1e-5)
        self.lm_head = Linear(width, SYMBOLS, bias=False)
        half = width // heads // 2
        rates = om.pow(10_000.0, -om.arange(half).float() / half)
        self.register_buffer("rates", om.cat([rates, rates]), persistent=False)

    def forward(self, ids: om.Tensor) -> om.Tensor:
        """(batch, length) ids to (batch, length, symbols)."""
        angles = om.arange(ids.shape[1]).float().unsqueeze(1) * self.rates
        cosine, sine = angles.cos(), angles.sin()
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return self.lm_head(self.norm(x))


def batch(generator: om.Generator, count: int, length: int) -> om.Tensor:
    """Symbols, a separator, the symbols sorted."""
    symbols = om.randint(1, SYMBOLS, (count, length), generator=generator)
    middle = om.full((count, 1), SEPARATOR, dtype="int64")
    return om.cat([symbols, middle, symbols.sort(1)[0]], 1)


def main(steps: int = 300) -> float:
    """Trains, traces and verifies; returns the accuracy on new sequences."""
    manual_seed(1)
    model = Llama()
    optimizer = AdamW(model.parameters(), lr=3e-3)
    schedule = WarmupCosineLR(optimizer, warmup_steps=min(20, steps // 4), total_steps=steps)
    generator = om.Generator(4)
    for step in range(steps):
        length = 4 + step % 4
        ids = batch(generator, 32, length)
        scores = model(ids[:, :-1])[:, length:]
        loss = F.cross_entropy(scores.flatten(0, 1), ids[:, length + 1 :].flatten())
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    ids = batch(om.Generator(9), 64, 6)
    with om.no_grad():
        scores = model.eval()(ids[:, :-1])[:, 6:]
    hits = accuracy(scores.flatten(0, 1), ids[:, 7:].flatten())
    print(f"accuracy on new sequences {hits.value:.3f}")
    traced = model.trace(ids[:2, :9], axis_names=[("batch", "length")])
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other batches and lengths")
    return hits.value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    main(parser.parse_args().steps)
