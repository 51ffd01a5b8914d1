"""The workloads of the benchmark: a model, its inputs, and which axes are symbolic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import convolutional
import sequential
from onemodel_training import NnModule

Inputs = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Workload:
    """One line of the table.

    Args:
        name: what the table calls it.
        build: makes the model.
        shapes: the shape of each input by name.
        vocabulary: when set, inputs are int64 ids below it, else normal float32.
        axes: the symbolic axes of each input by name, for tracing.
    """

    name: str
    build: Callable[[], NnModule]
    shapes: dict[str, tuple[int, ...]]
    vocabulary: int | None = None
    axes: dict[str, dict[int, str]] = field(default_factory=dict)

    def inputs(self, seed: int = 0) -> Inputs:
        """Seeded inputs."""
        generator = np.random.Generator(np.random.PCG64(seed))
        if self.vocabulary is not None:
            return {n: generator.integers(0, self.vocabulary, s) for n, s in self.shapes.items()}
        return {n: generator.standard_normal(s, np.float32) for n, s in self.shapes.items()}


_IMAGE = {"x": (1, 3, 224, 224)}

WORKLOADS = (
    Workload("add of 4", sequential.Add, {"a": (4,), "b": (4,)}),
    Workload("mlp, batch 1", sequential.mlp, {"x": (1, 784)}),
    Workload("mlp, batch 64", sequential.mlp, {"x": (64, 784)}),
    Workload("lenet, batch 32", convolutional.lenet, {"x": (32, 1, 28, 28)}),
    Workload("resnet18", convolutional.resnet18, _IMAGE),
    Workload("mobilenetv2", convolutional.mobilenetv2, _IMAGE),
    Workload("crnn", convolutional.Crnn, {"x": (1, 1, 32, 320)}, axes={"x": {3: "width"}}),
    Workload("encoder6", sequential.encoder6, {"ids": (1, 128)}, vocabulary=8192),
    Workload("gpt6", sequential.gpt6, {"ids": (1, 64)}, vocabulary=8192),
    Workload("vit_tiny", sequential.VisionTransformer, _IMAGE),
    Workload("unet", convolutional.UNet, {"x": (1, 3, 256, 256)}),
    Workload("convnext", convolutional.convnext, _IMAGE),
    Workload("lstm", sequential.Lstm, {"x": (100, 1, 64)}),
    Workload("tcn", convolutional.tcn, {"x": (1, 8, 100)}),
)
