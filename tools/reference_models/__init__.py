"""Small versions of well-known architectures, built from the training package's layers.

Each entry makes a model in evaluation mode with seeded weights, its example inputs, the names of its
symbolic axes and other sizes to run at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import onemodel_tensors as om
from onemodel_training import NnModule


@dataclass(frozen=True)
class Reference:
    """An architecture and how to run it.

    Attributes:
        name: Its name in the table.
        build: Makes the model.
        inputs: For each input its axes (a number or an axis name) and the dtype.
        sizes: Example size of each axis name, then the other sizes to run at.
        high: Integer inputs are below it.
    """

    name: str
    build: Callable[[], NnModule]
    inputs: Mapping[str, tuple[Any, ...]]
    sizes: tuple[Mapping[str, int], ...]
    high: int = 10

    def shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of an input at given sizes."""
        return tuple(sizes.get(axis, axis) for axis in self.inputs[name] if axis != "int64")

    def is_integer(self, name: str) -> bool:
        """Whether an input holds integers."""
        return "int64" in self.inputs[name]

    def axes(self, name: str) -> tuple[str | None, ...]:
        """The axis names of an input."""
        entries = [axis for axis in self.inputs[name] if axis != "int64"]
        return tuple(axis if isinstance(axis, str) else None for axis in entries)

    def model(self) -> NnModule:
        """The model with the same weights in every process."""
        om.manual_seed(0)
        return self.build().eval()


def all_references() -> list[Reference]:
    """Every architecture."""
    from reference_models import audio, generative, language, structures, vision

    found: list[Reference] = []
    for module in (vision, language, audio, generative, structures):
        found.extend(module.REFERENCES)
    return found
