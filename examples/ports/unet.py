"""A U-Net that finds scanned digits in noise.

python examples/ports/unet.py [--epochs 4]
"""

from __future__ import annotations

import argparse

from sklearn.datasets import load_digits

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import Axis
from onemodel_training import (
    AdamW,
    Conv2d,
    ConvTranspose2d,
    DataLoader,
    GroupNorm,
    MaxPool2d,
    NnModule,
    Ratio,
    Sequential,
    SiLU,
    Trainer,
    manual_seed,
)


def block(inputs: int, outputs: int) -> Sequential:
    """Two convolutions, each with a norm and an activation."""
    return Sequential(
        Conv2d(inputs, outputs, 3, padding=1), GroupNorm(4, outputs), SiLU(),
        Conv2d(outputs, outputs, 3, padding=1), GroupNorm(4, outputs), SiLU(),
    )  # fmt: skip


class UNet(NnModule):
    """Down twice, up twice, with the details carried across. Source: Ronneberger et al. 2015."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.down1 = block(1, width)
        self.down2 = block(width, 2 * width)
        self.middle = block(2 * width, 4 * width)
        self.up2 = ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.merge2 = block(4 * width, 2 * width)
        self.up1 = ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge1 = block(2 * width, width)
        self.out = Conv2d(width, 1, 1)
        self.pool = MaxPool2d(2)

    def forward(self, image: om.Tensor) -> om.Tensor:
        """(N, 1, H, W) to mask logits of the same shape; H and W multiples of 4."""
        fine = self.down1(image)
        coarse = self.down2(self.pool(fine))
        x = self.middle(self.pool(coarse))
        x = self.merge2(om.cat([coarse, self.up2(x)], 1))
        x = self.merge1(om.cat([fine, self.up1(x)], 1))
        return self.out(x)


class Scenes:
    """16×16 scenes with one digit somewhere under noise, and the digit's mask."""

    def __init__(self, digits: om.Tensor) -> None:
        self.digits = digits

    def __len__(self) -> int:
        return len(self.digits)

    def sample(self, index: int, generator: om.Generator) -> tuple[om.Tensor, om.Tensor]:
        """The scene at ``index``: place and noise come from the generator."""
        left, top = om.randint(0, 9, (2,), generator=generator).tolist()
        clean = F.pad(self.digits[index], (left, 8 - left, top, 8 - top)).unsqueeze(0)
        noise = 0.3 * om.randn(1, 16, 16, generator=generator)
        return clean + noise, (clean > 0.3).float()


def step(model: NnModule, batch: tuple[om.Tensor, om.Tensor]) -> om.Tensor:
    """Cross entropy of the mask's pixels."""
    image, mask = batch
    return F.binary_cross_entropy_with_logits(model(image), mask)


def evaluate(model: NnModule, batch: tuple[om.Tensor, om.Tensor]) -> dict[str, Ratio]:
    """Overlap of the masks, as intersection over union."""
    image, mask = batch
    found, wanted = model(image) > 0.0, mask > 0.5
    both = (found & wanted).sum().item()
    return {"overlap": Ratio(both, (found | wanted).sum().item())}


def main(epochs: int = 4) -> float:
    """Trains, traces and verifies; returns the overlap on held-out digits."""
    manual_seed(1)
    digits = om.from_numpy(load_digits().images).float() / 16.0
    train = DataLoader(Scenes(digits[:1024]), 64, shuffle=True, seed=1)
    test = DataLoader(Scenes(digits[-360:]), 90, seed=2)
    model = UNet()
    trainer = Trainer(model, AdamW(model.parameters(), lr=5e-3), step, evaluate=evaluate)
    history = trainer.fit(train, test, epochs=epochs)
    height, width = Axis("height", multiple=4), Axis("width", multiple=4)
    traced = model.eval().trace(
        om.zeros(2, 1, 16, 24), axis_names=[{0: "batch", 2: height, 3: width}]
    )
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other sizes")
    return history.rows[-1]["val_overlap"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    main(parser.parse_args().epochs)
