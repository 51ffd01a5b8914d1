"""Architectures that make images."""

# ruff: noqa: D102, D103 (a forward does what its class says)
from __future__ import annotations

import math

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    GroupNorm,
    Linear,
    ModuleList,
    NnModule,
    ReLU,
    Sequential,
    SiLU,
    Tanh,
)
from reference_models import Reference


class AutoEncoder(NnModule):
    """A variational auto-encoder; the noise is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Sequential(Conv2d(1, 8, 4, 2, 1), ReLU(), Conv2d(8, 12, 4, 2, 1), ReLU())
        self.mean, self.spread = Linear(12 * 16, 6), Linear(12 * 16, 6)
        self.decode = Linear(6, 12 * 16)
        self.decoder = Sequential(
            ConvTranspose2d(12, 8, 4, 2, 1), ReLU(), ConvTranspose2d(8, 1, 4, 2, 1)
        )

    def forward(self, image: om.Tensor, noise: om.Tensor) -> tuple[om.Tensor, ...]:
        x = self.encoder(image).flatten(1)
        mean, spread = self.mean(x), self.spread(x)
        z = mean + (0.5 * spread).exp() * noise
        x = F.relu(self.decode(z)).view(-1, 12, 4, 4)
        return self.decoder(x).sigmoid(), mean, spread


def generator() -> NnModule:
    return Sequential(
        ConvTranspose2d(10, 16, 4, bias=False), BatchNorm2d(16), ReLU(True),
        ConvTranspose2d(16, 8, 4, 2, 1, bias=False), BatchNorm2d(8), ReLU(True),
        ConvTranspose2d(8, 3, 4, 2, 1, bias=False), Tanh(),
    )  # fmt: skip


class TimeBlock(NnModule):
    """Group norm and convolutions, shifted by the embedded time."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = GroupNorm(4, inputs), Conv2d(inputs, outputs, 3, padding=1)
        self.time = Linear(16, outputs)
        self.norm2, self.conv2 = GroupNorm(4, outputs), Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = Conv2d(inputs, outputs, 1)

    def forward(self, x: om.Tensor, time: om.Tensor) -> om.Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialAttention(NnModule):
    """Attention over all positions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm, self.qkv = GroupNorm(4, channels), Conv2d(channels, channels * 3, 1)
        self.out = Conv2d(channels, channels, 1)

    def forward(self, x: om.Tensor) -> om.Tensor:
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, c, h * w).transpose(2, 3).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).reshape(b, c, h, w))


class Diffusion(NnModule):
    """A U-Net that estimates the noise at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = Sequential(Linear(16, 16), SiLU(), Linear(16, 16))
        self.enter, self.leave = Conv2d(3, 8, 3, padding=1), Conv2d(8, 3, 3, padding=1)
        self.down, self.middle = TimeBlock(8, 8), TimeBlock(8, 16)
        self.attention = SpatialAttention(16)
        self.up = TimeBlock(24, 8)
        self.smaller = Conv2d(8, 8, 3, 2, 1)
        self.blocks = ModuleList([self.down])

    def forward(self, image: om.Tensor, time: om.Tensor) -> om.Tensor:
        rates = om.tensor([math.exp(-math.log(10000.0) * n / 8) for n in range(8)])
        angles = time.float()[:, None] * rates[None]
        embedded = self.time(om.cat([om.sin(angles), om.cos(angles)], -1))
        x = self.down(self.enter(image), embedded)
        y = self.attention(self.middle(self.smaller(x), embedded))
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        return self.leave(F.silu(self.up(om.cat([x, y], 1), embedded)))


REFERENCES = [
    Reference(
        "VAE",
        AutoEncoder,
        {"image": ("batch", 1, 16, 16), "noise": ("batch", 6)},
        ({"batch": 3}, {"batch": 1}, {"batch": 7}),
    ),
    Reference(
        "DCGAN",
        generator,
        {"input": ("batch", 10, 1, 1)},
        ({"batch": 2}, {"batch": 1}, {"batch": 5}),
    ),
    Reference(
        "diffusion U-Net",
        Diffusion,
        {"image": ("batch", 3, "height", "width"), "time": ("batch", "int64")},
        (
            {"batch": 2, "height": 12, "width": 16},
            {"batch": 1, "height": 2, "width": 8},
            {"batch": 3, "height": 20, "width": 6},
        ),
        high=100,
    ),
]
