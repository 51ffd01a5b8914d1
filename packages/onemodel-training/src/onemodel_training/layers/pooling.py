"""Pooling layers over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training.layers.convolution import Size, sizes
from onemodel_training.module import NnModule

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _Pool(NnModule):
    axes: int

    def __init__(self, kernel_size: Size, stride: Size | None, padding: Size) -> None:
        super().__init__()
        kind = type(self).__name__
        self.kernel_size = sizes(kernel_size, self.axes, f"{kind} kernel_size")
        self.stride = (
            self.kernel_size if stride is None else sizes(stride, self.axes, f"{kind} stride")
        )
        self.padding = sizes(padding, self.axes, f"{kind} padding")

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.return_indices = return_indices
        self.dilation = sizes(dilation, self.axes, f"{type(self).__name__} dilation")
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Maps (N, C, …) to (N, C, …'); padding never wins, NaN always does.

        With ``return_indices`` also where each maximum lies in its plane, int64.
        """
        function: Any = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.axes - 1]
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPool):
    """The largest of each window of (N, C, L); L' = ⌊(L + 2p − d·(k − 1) − 1) / s⌋ + 1."""

    axes = 1


class MaxPool2d(_MaxPool):
    """The largest of each window of (N, C, H, W)."""

    axes = 2


class MaxPool3d(_MaxPool):
    """The largest of each window of (N, C, D, H, W)."""

    axes = 3


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, …) to (N, C, …')."""
        function: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[self.axes - 1]
        result: Tensor = function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
        return result


class AvgPool1d(_AvgPool):
    """The mean of each window of (N, C, L); ``count_include_pad``: whether padding counts."""

    axes = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W)."""

    axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W)."""

    axes = 3


class _AdaptivePool(NnModule):
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The result's spatial sizes."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over windows that make the spatial size ``output_size``; (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, L) to (N, C, output_size)."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means over windows that make the spatial sizes ``output_size``; None keeps an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, H, W) to (N, C, *output_size)."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means over windows that make the spatial sizes ``output_size``; None keeps an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, D, H, W) to (N, C, *output_size)."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptivePool):
    """Maxima over windows that make the spatial size ``output_size``; (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, L) to (N, C, output_size)."""
        return F.adaptive_max_pool1d(input, self.output_size)


class AdaptiveMaxPool2d(_AdaptivePool):
    """Maxima over windows that make the spatial sizes ``output_size``; None keeps an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, H, W) to (N, C, *output_size)."""
        return F.adaptive_max_pool2d(input, self.output_size)


class AdaptiveMaxPool3d(_AdaptivePool):
    """Maxima over windows that make the spatial sizes ``output_size``; None keeps an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, D, H, W) to (N, C, *output_size)."""
        return F.adaptive_max_pool3d(input, self.output_size)


class _LPPool(NnModule):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """The norm and the window."""
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}"


class LPPool1d(_LPPool):
    """The p-norm of each window over (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return F.lp_pool1d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    """The p-norm of each window over (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Pools."""
        return F.lp_pool2d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
