"""Architectures of points, graphs and pairs."""

# ruff: noqa: D102 (a forward does what its class says)
from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    BatchNorm1d,
    Conv1d,
    Conv2d,
    Embedding,
    LayerNorm,
    Linear,
    NnModule,
    Parameter,
    ReLU,
    Sequential,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from reference_models import Reference


class PointNet(NnModule):
    """Every point alike, the maximum over points, and a predicted transform."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = Sequential(Conv1d(3, 8, 1), BatchNorm1d(8), ReLU())
        self.matrix = Linear(8, 9)
        self.features = Sequential(Conv1d(3, 16, 1), BatchNorm1d(16), ReLU(), Conv1d(16, 24, 1))
        self.head = Linear(24, 5)

    def forward(self, points: om.Tensor) -> om.Tensor:
        pooled = self.transform(points).amax(2)
        matrix = self.matrix(pooled).view(-1, 3, 3) + om.eye(3)
        moved = (points.transpose(1, 2) @ matrix).transpose(1, 2)
        return self.head(self.features(moved).amax(2))


class GraphNet(NnModule):
    """Messages along edges, summed at the nodes that they reach."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = Linear(16, 8), Linear(16, 8)
        self.head = Linear(8, 3)

    def forward(self, nodes: om.Tensor, source: om.Tensor, target: om.Tensor) -> om.Tensor:
        x = nodes
        for _ in range(2):
            pairs = om.cat([x[source], x[target]], -1)
            received = om.zeros_like(x).index_add(0, target, F.relu(self.message(pairs)))
            x = F.relu(self.update(om.cat([x, received], -1)))
        return self.head(x)


class Clip(NnModule):
    """Images and texts in one space, compared all with all."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.tokens = Conv2d(3, 24, 8, 8), Embedding(10, 24)
        layer = TransformerEncoderLayer(24, 4, 48, activation="gelu", batch_first=True)
        self.images, self.texts = TransformerEncoder(layer, 1), TransformerEncoder(layer, 1)
        self.norm1, self.norm2 = LayerNorm(24), LayerNorm(24)
        self.scale = Parameter(om.tensor(2.6))

    def forward(self, image: om.Tensor, tokens: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
        x = self.images(self.patch(image).flatten(2).transpose(1, 2)).mean(1)
        y = self.texts(self.tokens(tokens))[:, -1]
        x, y = F.normalize(self.norm1(x), dim=-1), F.normalize(self.norm2(y), dim=-1)
        logits = self.scale.exp() * x @ y.T
        return logits, logits.T


REFERENCES = [
    Reference(
        "PointNet",
        PointNet,
        {"points": ("batch", 3, "count")},
        ({"batch": 2, "count": 30}, {"batch": 1, "count": 1}, {"batch": 4, "count": 77}),
    ),
    Reference(
        "graph net",
        GraphNet,
        {"nodes": ("nodes", 8), "source": ("edges", "int64"), "target": ("edges", "int64")},
        ({"nodes": 10, "edges": 23}, {"nodes": 10, "edges": 1}, {"nodes": 30, "edges": 50}),
    ),
    Reference(
        "CLIP",
        Clip,
        {"image": ("images", 3, 32, 32), "tokens": ("texts", "length", "int64")},
        (
            {"images": 2, "texts": 3, "length": 7},
            {"images": 1, "texts": 1, "length": 1},
            {"images": 5, "texts": 4, "length": 12},
        ),
    ),
]
