"""A variational autoencoder of scanned digits.

python examples/ports/vae.py [--epochs 10]
"""

from __future__ import annotations

import argparse

from sklearn.datasets import load_digits

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    AdamW,
    DataLoader,
    Linear,
    NnModule,
    Ratio,
    ReLU,
    Sequential,
    TensorDataset,
    Trainer,
    manual_seed,
)


class VAE(NnModule):
    """A Gaussian code of a few numbers. Source: Kingma & Welling 2013.

    The noise is an input: the model is a function, and its trace has no hidden sample.
    """

    def __init__(self, pixels: int = 64, hidden: int = 128, code: int = 8) -> None:
        super().__init__()
        self.code = code
        self.encoder = Sequential(Linear(pixels, hidden), ReLU())
        self.mean = Linear(hidden, code)
        self.log_variance = Linear(hidden, code)
        self.decoder = Sequential(Linear(code, hidden), ReLU(), Linear(hidden, pixels))

    def forward(self, image: om.Tensor, noise: om.Tensor) -> tuple[om.Tensor, ...]:
        """(N, pixels) and (N, code) to logits (N, pixels), mean and log-variance (N, code)."""
        hidden = self.encoder(image)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        sample = mean + noise * (0.5 * log_variance).exp()
        return self.decoder(sample), mean, log_variance


def terms(model: VAE, image: om.Tensor, noise: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
    """Reconstruction error and divergence from the prior, per image, in nats."""
    logits, mean, log_variance = model(image, noise)
    error = F.binary_cross_entropy_with_logits(logits, image, reduction="none").sum(1).mean()
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(1).mean()
    return error, divergence


def step(model: VAE, batch: tuple[om.Tensor]) -> tuple[om.Tensor, dict[str, Ratio]]:
    """The negative evidence bound, and its parts."""
    (image,) = batch
    error, divergence = terms(model, image, om.randn(image.shape[0], model.code))
    figures = {"error": Ratio(error.item(), 1.0), "divergence": Ratio(divergence.item(), 1.0)}
    return error + divergence, figures


def evaluate(model: VAE, batch: tuple[om.Tensor]) -> dict[str, Ratio]:
    """The bound at the mean code."""
    (image,) = batch
    error, divergence = terms(model, image, om.zeros(image.shape[0], model.code))
    return {"loss": Ratio(len(image) * (error + divergence).item(), len(image))}


def main(epochs: int = 10) -> float:
    """Trains, draws, traces and verifies; returns the loss on held-out digits."""
    manual_seed(1)
    images = om.from_numpy(load_digits().data).float() / 16.0
    train = DataLoader(TensorDataset(images[:-360]), 64, shuffle=True, seed=1)
    test = DataLoader(TensorDataset(images[-360:]), 90)
    model = VAE()
    trainer = Trainer(model, AdamW(model.parameters(), lr=3e-3), step, evaluate=evaluate)
    history = trainer.fit(train, test, epochs=epochs)
    with om.no_grad():
        drawn = model.decoder(om.randn(4, model.code)).sigmoid().reshape(4, 8, 8)
    for row in range(8):
        print("  ".join("".join(" .:*#"[int(v * 4.99)] for v in d[row].tolist()) for d in drawn))
    traced = model.eval().trace(
        images[:3],
        om.zeros(3, model.code),
        output_names=["logits", "mean", "log_variance"],
        axis_names=[("batch", None), ("batch", None)],
    )
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other batch sizes")
    return history.rows[-1]["val_loss"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    main(parser.parse_args().epochs)
