"""Layers that only move or regroup elements, and distances between vectors."""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training.module import NnModule

__all__ = [
    "ChannelShuffle",
    "CosineSimilarity",
    "Flatten",
    "Fold",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
]


class Flatten(NnModule):
    """Merges the axes from ``start_dim`` to ``end_dim`` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(NnModule):
    """Splits the axis ``dim`` into axes of ``unflattened_size``."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Any shape whose axis ``dim`` has the product of the sizes."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The axis and its new extents."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(NnModule):
    """(N, C·r², H, W) to (N, C, H·r, W·r). Source: Shi et al. 2016."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(N, C·r², H, W)."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor r."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(NnModule):
    """(N, C, H·r, W·r) to (N, C·r², H, W), the inverse of PixelShuffle."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H·r, W·r)."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor r."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(NnModule):
    """Interleaves the groups of channels of (N, C, …). Source: Zhang et al. 2017."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, …) with C divisible by the groups."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The groups."""
        return f"groups={self.groups}"


class Unfold(NnModule):
    """The windows of (N, C, H, W) as columns: (N, C·kh·kw, L)."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W)."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(NnModule):
    """Sums columns (N, C·kh·kw, L) back into (N, C, *output_size)."""

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """(N, C·kh·kw, L)."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class CosineSimilarity(NnModule):
    """x₁·x₂ / (max(|x₁|, eps)·max(|x₂|, eps)) over the axis ``dim``."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(NnModule):
    """‖x₁ − x₂ + eps‖ₚ over the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.p = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast."""
        return (x1 - x2 + self.eps).norm(self.p, -1, self.keepdim)
