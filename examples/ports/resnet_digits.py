"""A ResNet that reads scanned digits.

python examples/ports/resnet_digits.py [--epochs 4]
"""

from __future__ import annotations

import argparse

from sklearn.datasets import load_digits

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    SGD,
    BatchNorm2d,
    Conv2d,
    DataLoader,
    Linear,
    NnModule,
    OneCycleLR,
    Ratio,
    ReLU,
    Sequential,
    TensorDataset,
    Trainer,
    accuracy,
    init,
    manual_seed,
)


class BasicBlock(NnModule):
    """Two convolutions and a shortcut. Source: He et al. 2015."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(outputs)
        self.conv2 = Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(outputs)
        self.relu = ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = Sequential(
                Conv2d(inputs, outputs, 1, stride, bias=False), BatchNorm2d(outputs)
            )

    def forward(self, x: om.Tensor) -> om.Tensor:
        """(N, inputs, H, W) to (N, outputs, H / stride, W / stride)."""
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(NnModule):
    """A stem, three stages and a linear classifier."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64), classes: int = 10) -> None:
        super().__init__()
        self.conv1 = Conv2d(1, widths[0], 3, padding=1, bias=False)
        self.bn1 = BatchNorm2d(widths[0])
        self.layer1 = BasicBlock(widths[0], widths[0])
        self.layer2 = BasicBlock(widths[0], widths[1], stride=2)
        self.layer3 = BasicBlock(widths[1], widths[2], stride=2)
        self.fc = Linear(widths[2], classes)
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, image: om.Tensor) -> om.Tensor:
        """(N, 1, 8, 8) to (N, classes)."""
        x = F.relu(self.bn1(self.conv1(image)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def step(model: NnModule, batch: tuple[om.Tensor, om.Tensor]) -> om.Tensor:
    """The training loss."""
    image, label = batch
    return F.cross_entropy(model(image), label, label_smoothing=0.05)


def evaluate(model: NnModule, batch: tuple[om.Tensor, om.Tensor]) -> dict[str, Ratio]:
    """Accuracy on a batch."""
    image, label = batch
    return {"accuracy": accuracy(model(image), label)}


def main(epochs: int = 4) -> float:
    """Trains, traces and verifies; returns the accuracy on held-out digits."""
    manual_seed(1)
    digits = load_digits()
    images = om.from_numpy(digits.images).float().unsqueeze(1) / 16.0
    labels = om.from_numpy(digits.target).long()
    train = DataLoader(TensorDataset(images[:-360], labels[:-360]), 64, shuffle=True, seed=1)
    test = DataLoader(TensorDataset(images[-360:], labels[-360:]), 90)
    model = ResNet()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs * len(train))
    trainer = Trainer(model, optimizer, step, evaluate=evaluate, scheduler=schedule)
    history = trainer.fit(train, test, epochs=epochs)
    traced = model.eval().trace(images[:3], axis_names=[("batch", None, None, None)])
    print(f"traced: {len(traced.graph.nodes)} nodes, verified at other batch sizes")
    return history.rows[-1]["val_accuracy"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    main(parser.parse_args().epochs)
