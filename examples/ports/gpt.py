"""A small GPT that learns the text of Python's own documentation, character by character.

python examples/ports/gpt.py [--steps 250]
"""

from __future__ import annotations

import argparse
from pydoc_data.topics import topics

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import Axis
from onemodel_training import (
    AdamW,
    Embedding,
    LayerNorm,
    Linear,
    ModuleList,
    NnModule,
    WarmupCosineLR,
    clip_grad_norm_,
    init,
    manual_seed,
)


class Attention(NnModule):
    """Causal self-attention in several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """(batch, length, width) to the same."""
        batch, length, width = x.shape
        split = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(NnModule):
    """Attention and a feed-forward net, each after a norm and with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = LayerNorm(width)
        self.up = Linear(width, 4 * width)
        self.down = Linear(4 * width, width)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """(batch, length, width) to the same."""
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(NnModule):
    """Scores of the next character at every place. Source: Radford et al. 2019."""

    def __init__(self, symbols: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.tokens = Embedding(symbols, width)
        self.places = Embedding(context, width)
        self.blocks = ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = LayerNorm(width)
        self.head = Linear(width, symbols, bias=False)
        self.head.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                init.normal_(parameter, std=0.1 / (2 * layers) ** (0.5 if "down" in name else 0))

    def forward(self, ids: om.Tensor) -> om.Tensor:
        """(batch, length) ids to (batch, length, symbols)."""
        x = self.tokens(ids) + self.places(om.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def complete(model: GPT, ids: list[int], count: int) -> list[int]:
    """The likeliest continuation."""
    with om.no_grad():
        for _ in range(count):
            scores = model(om.tensor([ids[-model.context :]]))
            ids = [*ids, scores[0, -1].argmax().item()]
    return ids


def main(steps: int = 250) -> float:
    """Trains, completes a sentence, traces and verifies; returns the last loss."""
    manual_seed(1)
    text = "\n".join(topics[name] for name in sorted(topics))[:200_000]
    symbols = sorted(set(text))
    number = {symbol: i for i, symbol in enumerate(symbols)}
    ids = om.tensor([number[symbol] for symbol in text])
    model = GPT(len(symbols), context=64, width=64, heads=4, layers=2)
    optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = WarmupCosineLR(
        optimizer, warmup_steps=min(20, steps // 4), total_steps=steps, final=0.1
    )
    generator = om.Generator(2)
    value = float("nan")
    for step in range(steps):
        starts = om.randint(0, len(text) - 65, (16, 1), generator=generator)
        batch = ids[starts + om.arange(65)]
        scores = model(batch[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        value = loss.item()
        if step % 25 == 0 or step == steps - 1:
            print(f"step {step + 1}: loss {value:.3f}")
    model.eval()
    start = [number[symbol] for symbol in "The statement "]
    print("".join(symbols[i] for i in complete(model, start, 40)))
    traced = model.trace(
        om.tensor([start[:9], start[1:10]]),
        axis_names=[{0: "batch", 1: Axis("length", maximum=64)}],
    )
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other batches and lengths")
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=250)
    main(parser.parse_args().steps)
