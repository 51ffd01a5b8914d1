"""Architectures of image recognition, detection and segmentation."""

# ruff: noqa: D102, D103 (a forward does what its class says)
from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    GELU,
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    Dropout,
    Embedding,
    Hardswish,
    LayerNorm,
    Linear,
    MaxPool2d,
    ModuleList,
    NnModule,
    Parameter,
    ReLU,
    Sequential,
    SiLU,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from reference_models import Reference

IMAGE = {"image": ("batch", 3, "height", "width")}
AREA = (
    {"batch": 2, "height": 32, "width": 48},
    {"batch": 1, "height": 32, "width": 32},
    {"batch": 3, "height": 64, "width": 40},
)
BATCH = ({"batch": 2}, {"batch": 1}, {"batch": 5})


def conv(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1
) -> Sequential:
    """A convolution that keeps the extent at stride 1, and batch norm."""
    return Sequential(
        Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        BatchNorm2d(outputs),
    )


class Classifier(NnModule):
    """Features, their mean over space, classes."""

    def __init__(self, features: NnModule, channels: int, classes: int = 7) -> None:
        super().__init__()
        self.features = features
        self.head = Linear(channels, classes)

    def forward(self, image: om.Tensor) -> om.Tensor:
        return self.head(F.adaptive_avg_pool2d(self.features(image), 1).flatten(1))


class Residual(NnModule):
    """Two convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.first = conv(inputs, outputs, 3, stride)
        self.second = conv(outputs, outputs, 3, groups=groups)
        same = stride == 1 and inputs == outputs
        self.shortcut = None if same else conv(inputs, outputs, 1, stride)

    def forward(self, x: om.Tensor) -> om.Tensor:
        identity = x if self.shortcut is None else self.shortcut(x)
        x = self.second(F.relu(self.first(x), inplace=True))
        x += identity
        return F.relu(x, inplace=True)


class Dense(NnModule):
    """Each layer sees all earlier ones."""

    def __init__(self, inputs: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = ModuleList([conv(inputs + growth * n, growth) for n in range(layers)])

    def forward(self, x: om.Tensor) -> om.Tensor:
        seen = [x]
        for layer in self.layers:
            seen.append(F.relu(layer(om.cat(seen, 1))))
        return om.cat(seen, 1)


class SqueezeExcite(NnModule):
    """Channels weighted by their means."""

    def __init__(self, channels: int, hidden: int, gate: str) -> None:
        super().__init__()
        self.reduce, self.expand = Conv2d(channels, hidden, 1), Conv2d(hidden, channels, 1)
        self.gate = F.hardsigmoid if gate == "hard" else om.sigmoid

    def forward(self, x: om.Tensor) -> om.Tensor:
        scale = F.relu(self.reduce(F.adaptive_avg_pool2d(x, 1)))
        return x * self.gate(self.expand(scale))


class Inverted(NnModule):
    """Expand, depthwise, squeeze and excite, project."""

    def __init__(self, inputs: int, outputs: int, stride: int, activation: type, gate: str) -> None:
        super().__init__()
        hidden = inputs * 3
        self.expand = Sequential(conv(inputs, hidden, 1), activation())
        self.depthwise = Sequential(conv(hidden, hidden, 3, stride, hidden), activation())
        self.excite = SqueezeExcite(hidden, 4, gate)
        self.project = conv(hidden, outputs, 1)
        self.same = stride == 1 and inputs == outputs

    def forward(self, x: om.Tensor) -> om.Tensor:
        y = self.project(self.excite(self.depthwise(self.expand(x))))
        return x + y if self.same else y


class Shuffle(NnModule):
    """Half the channels through a branch, then shuffled."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.branch = Sequential(
            conv(half, half, 1),
            ReLU(),
            conv(half, half, 3, groups=half),
            conv(half, half, 1),
            ReLU(),
        )

    def forward(self, x: om.Tensor) -> om.Tensor:
        kept, changed = x.chunk(2, 1)
        x = om.cat([kept, self.branch(changed)], 1)
        b, c, h, w = x.shape
        return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


class ConvNeXtBlock(NnModule):
    """Depthwise convolution, layer norm over channels, two products."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = LayerNorm(channels)
        self.up, self.down = Linear(channels, channels * 4), Linear(channels * 4, channels)
        self.scale = Parameter(om.full((channels,), 0.1))

    def forward(self, x: om.Tensor) -> om.Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.down(F.gelu(self.up(y))) * self.scale
        return x + y.permute(0, 3, 1, 2)


class VisionTransformer(NnModule):
    """Patches, a class token, positions, encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = Conv2d(3, 24, 8, 8)
        self.token = Parameter(om.randn(1, 1, 24) * 0.1)
        self.positions = Parameter(om.randn(1, 64, 24) * 0.1)
        layer = TransformerEncoderLayer(
            24, 4, 48, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = TransformerEncoder(layer, 2)
        self.head = Linear(24, 7)

    def forward(self, image: om.Tensor) -> om.Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = om.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        x = x + self.positions[:, : x.shape[1]]
        return self.head(self.encoder(x)[:, 0])


class WindowBlock(NnModule):
    """Attention inside windows, every second block shifted."""

    def __init__(self, channels: int, window: int, shift: int) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1, self.norm2 = LayerNorm(channels), LayerNorm(channels)
        self.qkv, self.out = Linear(channels, channels * 3), Linear(channels, channels)
        self.bias = Parameter(om.randn(4, window**2, window**2) * 0.1)
        self.mlp = Sequential(
            Linear(channels, channels * 2), GELU(), Linear(channels * 2, channels)
        )

    def forward(self, x: om.Tensor) -> om.Tensor:
        b, h, w, c = x.shape
        k = self.window
        y = self.norm1(x)
        if self.shift:
            y = y.roll((-self.shift, -self.shift), (1, 2))
        y = y.view(b, h // k, k, w // k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, k * k, c)
        q, key, v = self.qkv(y).view(-1, k * k, 3, 4, c // 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, key, v, attn_mask=self.bias)
        y = self.out(y.transpose(1, 2).flatten(2))
        y = y.view(b, h // k, w // k, k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        if self.shift:
            y = y.roll((self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Swin(NnModule):
    """Two window blocks, patch merging, two more."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = Conv2d(3, 16, 4, 4)
        self.first = Sequential(WindowBlock(16, 4, 0), WindowBlock(16, 4, 2))
        self.merge = Linear(64, 32, bias=False)
        self.second = Sequential(WindowBlock(32, 2, 0), WindowBlock(32, 2, 1))
        self.head = Linear(32, 7)

    def forward(self, image: om.Tensor) -> om.Tensor:
        x = self.first(self.patch(image).permute(0, 2, 3, 1))
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        x = self.second(self.merge(om.cat(parts, -1)))
        return self.head(x.mean((1, 2)))


class Mixer(NnModule):
    """Products over positions and over channels in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = Conv2d(3, 16, 8, 8)
        self.norms = ModuleList([LayerNorm(16) for _ in range(4)])
        self.tokens = ModuleList(
            [Sequential(Linear(16, 32), GELU(), Linear(32, 16)) for _ in range(2)]
        )
        self.channels = ModuleList(
            [Sequential(Linear(16, 32), GELU(), Linear(32, 16)) for _ in range(2)]
        )
        self.head = Linear(16, 7)

    def forward(self, image: om.Tensor) -> om.Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        for n in range(2):
            y = self.tokens[n](self.norms[2 * n](x).transpose(1, 2)).transpose(1, 2)
            x = x + y
            x = x + self.channels[n](self.norms[2 * n + 1](x))
        return self.head(x.mean(1))


class UNet(NnModule):
    """Down, up, and the same extents joined."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = Residual(3, 8), Residual(8, 12), Residual(12, 16)
        self.up1, self.up2 = ConvTranspose2d(16, 12, 2, 2), ConvTranspose2d(12, 8, 2, 2)
        self.d, self.e = Residual(24, 12), Residual(16, 8)
        self.out = Conv2d(8, 2, 1)

    def forward(self, image: om.Tensor) -> om.Tensor:
        a = self.a(image)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        d = self.d(om.cat([self.up1(c), b], 1))
        return self.out(self.e(om.cat([self.up2(d), a], 1)))


class Pyramid(NnModule):
    """Features at three scales, the coarse ones resized to the fine ones' size."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = Residual(3, 8, 2), Residual(8, 12, 2), Residual(12, 16, 2)
        self.lateral = ModuleList([Conv2d(n, 8, 1) for n in (8, 12, 16)])
        self.smooth = ModuleList([Conv2d(8, 8, 3, padding=1) for _ in range(3)])

    def forward(self, image: om.Tensor) -> tuple[om.Tensor, ...]:
        features = [self.a(image)]
        features.append(self.b(features[-1]))
        features.append(self.c(features[-1]))
        levels = [lateral(f) for lateral, f in zip(self.lateral, features)]
        for n in (1, 0):
            size = levels[n].shape[-2:]
            levels[n] = levels[n] + F.interpolate(levels[n + 1], size=size, mode="nearest")
        return tuple(smooth(level) for smooth, level in zip(self.smooth, levels))


class Detector(NnModule):
    """A convolutional backbone and a transformer over learned queries."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Sequential(Residual(3, 8, 2), Residual(8, 16, 2), Residual(16, 24, 2))
        self.rows, self.columns = Embedding(32, 12), Embedding(32, 12)
        self.queries = Parameter(om.randn(1, 6, 24) * 0.3)
        encoder = TransformerEncoderLayer(24, 4, 48, batch_first=True)
        decoder = TransformerDecoderLayer(24, 4, 48, batch_first=True)
        self.encoder, self.decoder = TransformerEncoder(encoder, 1), TransformerDecoder(decoder, 1)
        self.classes, self.boxes = Linear(24, 5), Linear(24, 4)

    def forward(self, image: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
        x = self.backbone(image)
        b, _, h, w = x.shape
        rows = self.rows(om.arange(h))[:, None].expand(h, w, 12)
        columns = self.columns(om.arange(w))[None].expand(h, w, 12)
        x = x.flatten(2).transpose(1, 2) + om.cat([rows, columns], -1).flatten(0, 1)
        y = self.decoder(self.queries.expand(b, -1, -1), self.encoder(x))
        return self.classes(y), self.boxes(y).sigmoid()


class GridHead(NnModule):
    """Boxes predicted at each cell of a grid, decoded with the cell's place."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Sequential(
            conv(3, 8, 3, 2), SiLU(), conv(8, 16, 3, 2), SiLU(), conv(16, 21, 1)
        )

    def forward(self, image: om.Tensor) -> om.Tensor:
        x = self.backbone(image)
        b, _, h, w = x.shape
        x = x.view(b, 3, 7, h, w).permute(0, 1, 3, 4, 2)
        y, z = om.meshgrid(om.arange(h), om.arange(w), indexing="ij")
        grid = om.stack([z, y], -1).float()
        centre = (x[..., :2].sigmoid() * 2 - 0.5 + grid) * 4
        extent = (x[..., 2:4].sigmoid() * 2) ** 2 * 8
        return om.cat([centre, extent, x[..., 4:].sigmoid()], -1).view(b, -1, 7)


def vgg() -> NnModule:
    layers: list[NnModule] = []
    for inputs, outputs in ((3, 8), (8, 12), (12, 16)):
        layers += [Conv2d(inputs, outputs, 3, padding=1), ReLU(True), MaxPool2d(2)]
    return Classifier(Sequential(*layers, Dropout(0.5)), 16)


def resnet() -> NnModule:
    stem = Sequential(conv(3, 8, 7, 2), ReLU(inplace=True), MaxPool2d(3, 2, 1))
    return Classifier(Sequential(stem, Residual(8, 8), Residual(8, 16, 2), Residual(16, 16)), 16)


def regnet() -> NnModule:
    return Classifier(Sequential(Residual(3, 8, 2, 2), Residual(8, 16, 2, 4)), 16)


def densenet() -> NnModule:
    return Classifier(Sequential(Dense(3, 4, 3), MaxPool2d(2), Dense(15, 4, 2)), 23)


def mobilenet() -> NnModule:
    blocks = [Inverted(8, 8, 1, Hardswish, "hard"), Inverted(8, 12, 2, ReLU, "hard")]
    return Classifier(Sequential(conv(3, 8, 3, 2), Hardswish(), *blocks), 12)


def efficientnet() -> NnModule:
    blocks = [Inverted(8, 8, 1, SiLU, "soft"), Inverted(8, 12, 2, SiLU, "soft")]
    return Classifier(Sequential(conv(3, 8, 3, 2), SiLU(), *blocks), 12)


def shufflenet() -> NnModule:
    return Classifier(Sequential(conv(3, 8, 3, 2), ReLU(), Shuffle(8), Shuffle(8)), 8)


def convnext() -> NnModule:
    return Classifier(Sequential(Conv2d(3, 8, 4, 4), ConvNeXtBlock(8), ConvNeXtBlock(8)), 8)


MULTIPLES = (
    {"batch": 2, "height": 32, "width": 48},
    {"batch": 1, "height": 16, "width": 32},
    {"batch": 3, "height": 64, "width": 16},
)
FIXED = {"image": ("batch", 3, 32, 32)}
REFERENCES = [
    Reference("ResNet", resnet, IMAGE, AREA),
    Reference("VGG", vgg, IMAGE, AREA),
    Reference("DenseNet", densenet, IMAGE, AREA),
    Reference("MobileNetV3", mobilenet, IMAGE, AREA),
    Reference("EfficientNet", efficientnet, IMAGE, AREA),
    Reference("ShuffleNet", shufflenet, IMAGE, AREA),
    Reference("ConvNeXt", convnext, IMAGE, AREA),
    Reference("RegNet", regnet, IMAGE, AREA),
    Reference("ViT", VisionTransformer, IMAGE, AREA),
    Reference("Swin", Swin, {"image": ("batch", 3, 32, 64)}, BATCH),
    Reference("MLP-Mixer", Mixer, FIXED, BATCH),
    Reference("U-Net", UNet, IMAGE, AREA),
    Reference("FPN", Pyramid, IMAGE, AREA),
    Reference("DETR", Detector, IMAGE, AREA),
    Reference("YOLO head", GridHead, IMAGE, AREA),
]
