"""A training run takes no more memory after a thousand steps than after a hundred."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import AdamW, DataLoader, TensorDataset, clip_grad_norm_, manual_seed, nn


def resident() -> int:
    """Bytes of this process in memory."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


class Reader(nn.Module):
    """Convolution, norm, recurrence, attention."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.lstm = nn.LSTM(32, 16, batch_first=True)
        self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
        self.classify = nn.Linear(16, 5)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """(N, 1, 8, T) to scores (N, 5)."""
        steps, _ = self.lstm(self.features(x).flatten(1, 2).transpose(1, 2))
        return self.classify(self.attend(steps, steps, steps)[0].mean(1))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_is_flat_over_a_thousand_steps_of_training() -> None:
    manual_seed(1)
    model = Reader()
    optimizer = AdamW(model.parameters())
    table = TensorDataset(om.randn(32, 1, 8, 12), om.randint(0, 5, (32,)))
    loader = DataLoader(table, batch_size=8, shuffle=True)

    def train(steps: int) -> None:
        for _ in range(steps // len(loader)):
            for images, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(images), labels).backward()
                clip_grad_norm_(model.parameters(), 1e6)
                optimizer.step()

    train(100)
    gc.collect()
    objects, bytes_before = len(gc.get_objects()), resident()
    train(1000)
    gc.collect()
    # The loader's and the allocator's own lists settle; a leak of one object a step would show as 1,000.
    assert len(gc.get_objects()) - objects < 100
    # The activations of one step take about 100 KiB: leaked, a thousand would take 100 MiB.
    assert resident() - bytes_before < 8 * 2**20
