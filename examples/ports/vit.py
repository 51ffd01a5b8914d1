"""A vision transformer that reads scanned digits.

python examples/ports/vit.py [--epochs 8]
"""

from __future__ import annotations

import argparse

from sklearn.datasets import load_digits

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    AdamW,
    Conv2d,
    DataLoader,
    LayerNorm,
    Linear,
    NnModule,
    Parameter,
    Ratio,
    TensorDataset,
    Trainer,
    TransformerEncoder,
    TransformerEncoderLayer,
    WarmupCosineLR,
    accuracy,
    init,
    manual_seed,
)


class ViT(NnModule):
    """Patches, a class token, places, an encoder. Source: Dosovitskiy et al. 2020."""

    def __init__(self, size: int = 8, patch: int = 2, width: int = 48, layers: int = 3) -> None:
        super().__init__()
        self.patches = Conv2d(1, width, patch, stride=patch)
        self.class_token = Parameter(om.zeros(1, 1, width))
        self.places = Parameter(om.empty(1, 1 + (size // patch) ** 2, width))
        init.trunc_normal_(self.places, std=0.2, a=-0.4, b=0.4)
        layer = TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = TransformerEncoder(layer, layers, LayerNorm(width))
        self.head = Linear(width, 10)

    def forward(self, image: om.Tensor) -> om.Tensor:
        """(N, 1, 8, 8) to (N, 10)."""
        x = self.patches(image).flatten(2).transpose(1, 2)
        token = self.class_token.expand(x.shape[0], -1, -1)
        x = om.cat([token, x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


def step(model: NnModule, batch: tuple[om.Tensor, om.Tensor]) -> om.Tensor:
    """The training loss."""
    image, label = batch
    return F.cross_entropy(model(image), label)


def evaluate(model: NnModule, batch: tuple[om.Tensor, om.Tensor]) -> dict[str, Ratio]:
    """Accuracy on a batch."""
    image, label = batch
    return {"accuracy": accuracy(model(image), label)}


def main(epochs: int = 8) -> float:
    """Trains, traces and verifies; returns the accuracy on held-out digits."""
    manual_seed(1)
    digits = load_digits()
    images = om.from_numpy(digits.images).float().unsqueeze(1) / 16.0
    labels = om.from_numpy(digits.target).long()
    train = DataLoader(TensorDataset(images[:-360], labels[:-360]), 32, shuffle=True, seed=1)
    test = DataLoader(TensorDataset(images[-360:], labels[-360:]), 90)
    model = ViT()
    optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    total = epochs * len(train)
    schedule = WarmupCosineLR(optimizer, warmup_steps=total // 10, total_steps=total)
    trainer = Trainer(model, optimizer, step, evaluate=evaluate, scheduler=schedule, clip_norm=1.0)
    history = trainer.fit(train, test, epochs=epochs)
    traced = model.eval().trace(images[:3], axis_names=[("batch", None, None, None)])
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other batch sizes")
    return history.rows[-1]["val_accuracy"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    main(parser.parse_args().epochs)
