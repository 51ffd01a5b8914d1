"""Moving averages of weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_training.module import NnModule

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """average += (1 − decay)·(weight − average) for every floating parameter and buffer.

    Args:
        module: the model that is trained.
        decay: from 0 to below 1. warmup: whether early updates use min(decay, (1 + t) / (10 + t)).

    Integer buffers are copied.
    """

    def __init__(self, module: NnModule, decay: float = 0.999, warmup: bool = False) -> None:
        if not 0.0 <= decay < 1.0:
            raise AttributeValueError(
                f"ExponentialMovingAverage: expected decay from 0 to below 1, got {decay}"
            )
        self.module = module
        self.decay = decay
        self.warmup = warmup
        self.updates = 0
        self.averages: dict[str, Tensor] = {
            path: tensor.clone() for path, tensor in module.state_dict().items()
        }

    def update(self) -> None:
        """Takes the module's present values into the averages; call it after each step."""
        self.updates += 1
        decay = self.decay
        if self.warmup:
            decay = min(decay, (1.0 + self.updates) / (10.0 + self.updates))
        with om.no_grad():
            for path, tensor in self.module.state_dict().items():
                average = self.averages[path]
                if average.is_floating_point():
                    average.add_((tensor - average) * (1.0 - decay))
                else:
                    average.copy_(tensor)

    @contextmanager
    def applied(self) -> Iterator[NnModule]:
        """The module with the averages as its weights while the block runs."""
        kept = {path: tensor.clone() for path, tensor in self.module.state_dict().items()}
        self.module.load_state_dict(self.averages)
        try:
            yield self.module
        finally:
            self.module.load_state_dict(kept)

    def state_dict(self) -> dict[str, Any]:
        """The averages, and how many updates they hold."""
        return {"updates": self.updates, "averages": dict(self.averages)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes over another average of the same module."""
        averages = state["averages"]
        if set(averages) != set(self.averages):
            raise AttributeValueError(
                "ExponentialMovingAverage.load_state_dict: expected the module's paths, got "
                f"others: {', '.join(sorted(set(averages) ^ set(self.averages)))}"
            )
        self.updates = int(state["updates"])
        self.averages = {path: tensor.detach().clone() for path, tensor in averages.items()}
