"""Padding layers over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training.layers.convolution import sizes
from onemodel_training.module import NnModule

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(NnModule):
    """``padding``: one int, or (start, end) pairs from the last axis to the first."""

    axes: int
    mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = sizes(padding, 2 * self.axes, type(self).__name__)
        self.value = 0.0

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, …) to (N, C, …') where each axis grows by its pair."""
        if self.mode == "constant":
            return F.pad(input, self.padding, mode="constant", value=self.value)
        return F.pad(input, self.padding, mode=self.mode)

    def extra_repr(self) -> str:
        """The pairs."""
        return f"padding={self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class ZeroPad1d(_Pad):
    """Zeros around the last axis."""

    axes = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes."""

    axes = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three axes."""

    axes = 3


class ConstantPad1d(_ConstantPad):
    """A constant around the last axis."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """A constant around the last two axes."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """A constant around the last three axes."""

    axes = 3


class ReflectionPad1d(_Pad):
    """The last axis mirrored at its ends, the end itself not repeated."""

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two axes mirrored at their ends."""

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three axes mirrored at their ends."""

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The ends of the last axis repeated."""

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The ends of the last two axes repeated."""

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The ends of the last three axes repeated."""

    axes = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The last axis continued from its other end."""

    axes = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The last two axes continued from their other ends."""

    axes = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The last three axes continued from their other ends."""

    axes = 3
    mode = "circular"
