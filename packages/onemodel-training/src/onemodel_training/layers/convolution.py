"""Convolutions and transposed convolutions over one, two and three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

Size = int | Sequence[int]


def sizes(value: Size, count: int, what: str) -> tuple[int, ...]:
    """One number for all axes, or one for each."""
    if isinstance(value, int):
        return (value,) * count
    result = tuple(value)
    if len(result) != count:
        raise AttributeValueError(f"{what}: expected an int or {count} ints, got {value!r}")
    return result


class _Conv(NnModule):
    """What all convolutions share: sizes, weights and their initial values."""

    axes: int
    transposed = False
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Size | str,
        dilation: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: str | None,
    ) -> None:
        super().__init__()
        kind = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise AttributeValueError(
                f"{kind}: expected groups that divide {in_channels} and {out_channels} channels, "
                f"got {groups}"
            )
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise AttributeValueError(
                f"{kind}: expected padding_mode zeros, reflect, replicate or circular, got "
                f"{padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes(kernel_size, self.axes, f"{kind} kernel_size")
        self.stride = sizes(stride, self.axes, f"{kind} stride")
        self.dilation = sizes(dilation, self.axes, f"{kind} dilation")
        self.groups = groups
        self.padding_mode = padding_mode
        self.padding: tuple[int, ...] | str
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise AttributeValueError(
                    f"{kind}: expected padding same, valid or sizes, got {padding!r}"
                )
            if padding == "same" and any(step != 1 for step in self.stride):
                raise AttributeValueError(
                    f"{kind}: padding 'same' needs stride 1, got {self.stride}"
                )
            self.padding = padding
        else:
            self.padding = sizes(padding, self.axes, f"{kind} padding")
        first, second = (
            (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        )
        self.weight = Parameter(om.empty(first, second // groups, *self.kernel_size, dtype=dtype))
        if bias:
            self.bias = Parameter(om.empty(out_channels, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-b, b), b = 1/√fan_in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        if self.bias is not None:
            fan_in, _ = init.fan_in_and_fan_out(self.weight)
            bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
            init.uniform_(self.bias, -bound, bound)

    def _border(self) -> list[int]:
        """The padding in the order of ``F.pad``: last axis first, start before end."""
        border: list[int] = []
        for axis in reversed(range(self.axes)):
            if isinstance(self.padding, str):
                total = 0
                if self.padding == "same":
                    total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                border += [total // 2, total - total // 2]
            else:
                border += [self.padding[axis]] * 2
        return border

    def extra_repr(self) -> str:
        """Channels and window."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding not in ("valid", (0,) * self.axes):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.axes:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text + ("" if self.bias is not None else ", bias=False")


class _ForwardConv(_Conv):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, in_channels, …) to (N, out_channels, …)."""
        function: Any = (F.conv1d, F.conv2d, F.conv3d)[self.axes - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._border(), mode=self.padding_mode)
            padding = 0
        result: Tensor = function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
        return result


class Conv1d(_ForwardConv):
    """Correlation over one axis: (N, Cᵢ, L) to (N, Cₒ, L').

    L' = ⌊(L + 2·padding − dilation·(kernel_size − 1) − 1) / stride⌋ + 1.

    State: ``weight`` (Cₒ, Cᵢ/groups, k), ``bias`` (Cₒ), from U(-b, b), b = 1/√(k·Cᵢ/groups).
    """

    axes = 1


class Conv2d(_ForwardConv):
    """Correlation over two axes: (N, Cᵢ, H, W) to (N, Cₒ, H', W'); sizes as in Conv1d."""

    axes = 2


class Conv3d(_ForwardConv):
    """Correlation over three axes: (N, Cᵢ, D, H, W) to (N, Cₒ, D', H', W')."""

    axes = 3


class _TransposedConv(_Conv):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        kind = type(self).__name__
        if padding_mode != "zeros" or isinstance(padding, str):
            raise AttributeValueError(
                f"{kind}: expected padding sizes and padding_mode zeros, got {padding!r} and "
                f"{padding_mode!r}"
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip
        self.output_padding = sizes(output_padding, self.axes, f"{kind} output_padding")

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Maps (N, in_channels, …) to (N, out_channels, …); output_size: the spatial sizes."""
        function: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.axes - 1]
        extra = self.output_padding
        if output_size is not None:
            extra = self._output_padding(input, tuple(output_size))
        result: Tensor = function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip
        return result

    def _output_padding(self, input: Tensor, wanted: tuple[int, ...]) -> tuple[int, ...]:
        wanted = wanted[-self.axes :]
        extra = []
        for axis, size in enumerate(wanted):
            least = (
                (input.shape[input.ndim - self.axes + axis] - 1) * self.stride[axis]
                - 2 * int(self.padding[axis])
                + self.dilation[axis] * (self.kernel_size[axis] - 1)
                + 1
            )
            if not least <= size < least + max(self.stride[axis], self.dilation[axis]):
                raise AttributeValueError(
                    f"{type(self).__name__}: expected output_size of axis {axis} from {least} to "
                    f"{least + max(self.stride[axis], self.dilation[axis]) - 1}, got {size}"
                )
            extra.append(size - least)
        return tuple(extra)


class ConvTranspose1d(_TransposedConv):
    """The gradient of Conv1d as a layer: (N, Cᵢ, L) to (N, Cₒ, L').

    L' = (L − 1)·stride − 2·padding + dilation·(kernel_size − 1) + output_padding + 1.

    State: ``weight`` (Cᵢ, Cₒ/groups, k), ``bias`` (Cₒ), from U(-b, b), b = 1/√(k·Cₒ/groups).
    """

    axes = 1


class ConvTranspose2d(_TransposedConv):
    """The gradient of Conv2d as a layer: (N, Cᵢ, H, W) to (N, Cₒ, H', W')."""

    axes = 2


class ConvTranspose3d(_TransposedConv):
    """The gradient of Conv3d as a layer: (N, Cᵢ, D, H, W) to (N, Cₒ, D', H', W')."""

    axes = 3
