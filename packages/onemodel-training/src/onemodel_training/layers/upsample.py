"""Resampling layers."""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training.module import NnModule

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(NnModule):
    """Resamples the spatial axes of (N, C, …) to ``size``, or by ``scale_factor``.

    Args:
        size: the spatial sizes of the result.
        scale_factor: or the factors.
        mode: nearest, nearest-exact, linear, bilinear, bicubic or trilinear.
        align_corners: whether the corner samples keep their places (linear and cubic modes).
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise AttributeValueError(
                f"{type(self).__name__}: expected size or scale_factor, one of them"
            )
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, …) to (N, C, …')."""
        return F.interpolate(
            input,
            size=self.size,
            scale_factor=self.scale_factor,
            mode=self.mode,
            align_corners=self.align_corners,
        )

    def extra_repr(self) -> str:
        """Size and mode."""
        target = (
            f"size={self.size}"
            if self.scale_factor is None
            else (f"scale_factor={self.scale_factor}")
        )
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Repeats pixels of (N, C, H, W)."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Interpolates (N, C, H, W) bilinearly with aligned corners."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
