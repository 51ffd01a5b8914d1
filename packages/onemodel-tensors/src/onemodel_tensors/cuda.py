"""What scripts ask about GPUs before they choose a device: there are none."""

from __future__ import annotations

from typing import Any

from onemodel_tensors.left_out import missing

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """Whether there is a CUDA device: never."""
    return False


def device_count() -> int:
    """How many CUDA devices there are: none."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator but the CPU's."""


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no generator but the CPU's."""


def __getattr__(name: str) -> Any:
    raise missing(name, "onemodel_tensors.cuda, as there is no device but the CPU")
