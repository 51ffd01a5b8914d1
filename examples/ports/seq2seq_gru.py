"""A GRU encoder and decoder with attention that learns to reverse sequences.

python examples/ports/seq2seq_gru.py [--steps 250]
"""

from __future__ import annotations

import argparse

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    GRU,
    Adam,
    Embedding,
    Linear,
    NnModule,
    accuracy,
    clip_grad_norm_,
    manual_seed,
)

SYMBOLS = 12
START = 0


class Seq2Seq(NnModule):
    """Dot-product attention over a bidirectional encoder. Source: Luong et al. 2015."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed = Embedding(SYMBOLS, width)
        self.encoder = GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.bridge = Linear(width, width)
        self.decoder = GRU(width, width, batch_first=True)
        self.mix = Linear(2 * width, width)
        self.out = Linear(width, SYMBOLS)

    def forward(self, source: om.Tensor, target: om.Tensor) -> om.Tensor:
        """Ids (N, S) and the ids so far (N, T) to scores of the next ones (N, T, symbols)."""
        memory, last = self.encoder(self.embed(source))
        state = self.bridge(om.cat([last[0], last[1]], -1)).tanh()
        steps, _ = self.decoder(self.embed(target), state.unsqueeze(0))
        weights = (steps @ memory.transpose(1, 2)).softmax(-1)
        return self.out(self.mix(om.cat([steps, weights @ memory], -1)).tanh())


def batch(generator: om.Generator, count: int, length: int) -> tuple[om.Tensor, om.Tensor]:
    """Random sequences and their reverses."""
    source = om.randint(1, SYMBOLS, (count, length), generator=generator)
    return source, source.flip(1)


def shifted(target: om.Tensor) -> om.Tensor:
    """What the decoder has seen at each step."""
    start = om.full((target.shape[0], 1), START, dtype="int64")
    return om.cat([start, target[:, :-1]], 1)


def main(steps: int = 250) -> float:
    """Trains, traces and verifies; returns the accuracy on new sequences."""
    manual_seed(1)
    model = Seq2Seq()
    optimizer = Adam(model.parameters(), lr=4e-3)
    generator = om.Generator(5)
    for step in range(steps):
        source, target = batch(generator, 32, 4 + step % 5)
        scores = model(source, shifted(target))
        loss = F.cross_entropy(scores.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    model.eval()
    source, target = batch(om.Generator(6), 64, 8)
    with om.no_grad():
        hits = accuracy(model(source, shifted(target)).flatten(0, 1), target.flatten())
    print(f"accuracy on new sequences {hits.value:.3f}")
    traced = model.trace(
        source[:2, :5],
        shifted(target[:2, :7]),
        axis_names=[("batch", "source_length"), ("batch", "target_length")],
    )
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other batches and lengths")
    return hits.value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=250)
    main(parser.parse_args().steps)
