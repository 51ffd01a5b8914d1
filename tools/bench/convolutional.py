"""The convolutional workloads, built from the layers of onemodel_training."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    GELU,
    LSTM,
    AdaptiveAvgPool2d,
    BatchNorm2d,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Flatten,
    LayerNorm,
    Linear,
    MaxPool2d,
    NnModule,
    Parameter,
    ReLU,
    ReLU6,
    Sequential,
)


def lenet() -> NnModule:
    """LeNet-5 with ReLU, for (N, 1, 28, 28)."""
    return Sequential(
        Conv2d(1, 6, 5, padding=2),
        ReLU(),
        MaxPool2d(2),
        Conv2d(6, 16, 5),
        ReLU(),
        MaxPool2d(2),
        Flatten(),
        Linear(400, 120),
        ReLU(),
        Linear(120, 84),
        ReLU(),
        Linear(84, 10),
    )


class _BasicBlock(NnModule):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(outputs)
        self.conv2 = Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(outputs)
        self.downsample = (
            Sequential(Conv2d(inputs, outputs, 1, stride=stride, bias=False), BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else Sequential()
        )

    def forward(self, x: om.Tensor) -> om.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


def resnet18() -> NnModule:
    """ResNet-18 for (N, 3, 224, 224). Source: He et al., 2015."""
    widths, blocks, inputs = (64, 128, 256, 512), [], 64
    for stage, width in enumerate(widths):
        blocks += [_BasicBlock(inputs, width, 1 if stage == 0 else 2), _BasicBlock(width, width, 1)]
        inputs = width
    stem = (Conv2d(3, 64, 7, stride=2, padding=3, bias=False), BatchNorm2d(64), ReLU())
    head = (AdaptiveAvgPool2d(1), Flatten(), Linear(512, 1000))
    return Sequential(*stem, MaxPool2d(3, stride=2, padding=1), *blocks, *head)


class _InvertedResidual(NnModule):
    def __init__(self, inputs: int, outputs: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = inputs * expand
        widen = (Conv2d(inputs, hidden, 1, bias=False), BatchNorm2d(hidden), ReLU6())
        self.layers = Sequential(
            *(widen if expand != 1 else ()),
            Conv2d(hidden, hidden, 3, stride=stride, padding=1, groups=hidden, bias=False),
            BatchNorm2d(hidden),
            ReLU6(),
            Conv2d(hidden, outputs, 1, bias=False),
            BatchNorm2d(outputs),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: om.Tensor) -> om.Tensor:
        y = self.layers(x)
        return x + y if self.residual else y


def mobilenetv2() -> NnModule:
    """MobileNetV2 for (N, 3, 224, 224). Source: Sandler et al., 2018."""
    rows = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    )  # fmt: skip
    blocks, inputs = [], 32
    for expand, outputs, repeats, stride in rows:
        for repeat in range(repeats):
            first = stride if repeat == 0 else 1
            blocks.append(_InvertedResidual(inputs, outputs, first, expand))
            inputs = outputs
    stem = (Conv2d(3, 32, 3, stride=2, padding=1, bias=False), BatchNorm2d(32), ReLU6())
    last = (Conv2d(320, 1280, 1, bias=False), BatchNorm2d(1280), ReLU6())
    head = (AdaptiveAvgPool2d(1), Flatten(), Linear(1280, 1000))
    return Sequential(*stem, *blocks, *last, *head)


class _ConvNextBlock(NnModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = LayerNorm(width, eps=1e-6)
        self.mlp = Sequential(Linear(width, 4 * width), GELU(), Linear(4 * width, width))
        self.scale = Parameter(om.full((width,), 1e-6))

    def forward(self, x: om.Tensor) -> om.Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.mlp(self.norm(y)) * self.scale
        return x + y.permute(0, 3, 1, 2)


class _ChannelNorm(NnModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = LayerNorm(width, eps=1e-6)

    def forward(self, x: om.Tensor) -> om.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext() -> NnModule:
    """ConvNeXt-Atto for (N, 3, 224, 224). Source: Liu et al., 2022."""
    layers: list[NnModule] = [Conv2d(3, 40, 4, stride=4), _ChannelNorm(40)]
    inputs = 40
    for width, depth in ((40, 2), (80, 2), (160, 6), (320, 2)):
        if width != inputs:
            layers += [_ChannelNorm(inputs), Conv2d(inputs, width, 2, stride=2)]
        layers += [_ConvNextBlock(width) for _ in range(depth)]
        inputs = width
    head = (AdaptiveAvgPool2d(1), Flatten(), LayerNorm(320, eps=1e-6), Linear(320, 1000))
    return Sequential(*layers, *head)


def _double(inputs: int, outputs: int) -> NnModule:
    return Sequential(
        Conv2d(inputs, outputs, 3, padding=1, bias=False),
        BatchNorm2d(outputs),
        ReLU(),
        Conv2d(outputs, outputs, 3, padding=1, bias=False),
        BatchNorm2d(outputs),
        ReLU(),
    )


class UNet(NnModule):
    """A U-Net of three levels for (N, 3, 256, 256). Source: Ronneberger et al., 2015."""

    def __init__(self, widths: tuple[int, int, int, int] = (16, 32, 64, 128)) -> None:
        super().__init__()
        first, second, third, bottom = widths
        self.down1, self.down2 = _double(3, first), _double(first, second)
        self.down3, self.bottom = _double(second, third), _double(third, bottom)
        self.up3 = ConvTranspose2d(bottom, third, 2, stride=2)
        self.up2 = ConvTranspose2d(third, second, 2, stride=2)
        self.up1 = ConvTranspose2d(second, first, 2, stride=2)
        self.join3, self.join2 = _double(2 * third, third), _double(2 * second, second)
        self.join1, self.classify = _double(2 * first, first), Conv2d(first, 2, 1)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """Two logits for each pixel."""
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        three = self.down3(F.max_pool2d(two, 2))
        y = self.bottom(F.max_pool2d(three, 2))
        y = self.join3(om.cat([self.up3(y), three], 1))
        y = self.join2(om.cat([self.up2(y), two], 1))
        return self.classify(self.join1(om.cat([self.up1(y), one], 1)))


class Crnn(NnModule):
    """A line reader for (N, 1, 32, W). Source: Shi et al., 2015."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[NnModule] = []
        inputs = 1
        for width, pool in ((32, (2, 2)), (64, (2, 2)), (128, (2, 1)), (128, (2, 1))):
            block = (Conv2d(inputs, width, 3, padding=1, bias=False), BatchNorm2d(width), ReLU())
            layers += [*block, MaxPool2d(pool)]
            inputs = width
        self.features = Sequential(*layers)
        self.lstm = LSTM(256, 128, num_layers=2, bidirectional=True)
        self.classify = Linear(256, 80)

    def forward(self, x: om.Tensor) -> om.Tensor:
        """Log-probabilities of 80 classes at each of W / 4 steps."""
        steps, _ = self.lstm(self.features(x).permute(3, 0, 1, 2).flatten(2))
        return F.log_softmax(self.classify(steps), dim=-1)


class _TemporalBlock(NnModule):
    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.pad = (2 * dilation, 0)
        self.conv1 = Conv1d(inputs, outputs, 3, dilation=dilation)
        self.conv2 = Conv1d(outputs, outputs, 3, dilation=dilation)
        self.shortcut = Conv1d(inputs, outputs, 1) if inputs != outputs else Sequential()

    def forward(self, x: om.Tensor) -> om.Tensor:
        y = F.relu(self.conv1(F.pad(x, self.pad)))
        y = F.relu(self.conv2(F.pad(y, self.pad)))
        return F.relu(y + self.shortcut(x))


def tcn() -> NnModule:
    """A temporal convolutional network for (N, 8, T). Source: Bai et al., 2018."""
    sizes = (8, 16, 16, 16)
    return Sequential(
        *(_TemporalBlock(sizes[level], sizes[level + 1], 2**level) for level in range(3))
    )
