"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


def _fill(tensor: Tensor | None, value: float) -> None:
    if tensor is not None:
        init.constant_(tensor, value)


class _ChannelNorm(NnModule):
    """What batch and instance norms share: affine parameters and running statistics."""

    ranks: tuple[int, ...]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: str | None,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = Parameter(om.ones(num_features, dtype=dtype))
            self.bias = Parameter(om.zeros(num_features, dtype=dtype))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        tracked = track_running_stats
        self.register_buffer(
            "running_mean", om.zeros(num_features, dtype=dtype) if tracked else None
        )
        self.register_buffer("running_var", om.ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", om.zeros((), dtype="int64") if tracked else None
        )

    def reset_parameters(self) -> None:
        """Sets weight to 1, bias to 0 and the running statistics to their start."""
        _fill(self.running_mean, 0.0)
        _fill(self.running_var, 1.0)
        _fill(self.num_batches_tracked, 0.0)
        _fill(self.weight, 1.0)
        _fill(self.bias, 0.0)

    def _check(self, input: Tensor) -> None:
        kind = type(self).__name__
        if input.ndim not in self.ranks:
            wanted = " or ".join(str(rank) for rank in self.ranks)
            raise ShapeError(f"{kind}: expected {wanted} axes, got {tuple(input.shape)}")

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises every channel over the batch and spatial axes; shape is kept."""
        self._check(input)
        training = self.training
        share = 0.0 if self.momentum is None else self.momentum
        if training and self.num_batches_tracked is not None:
            with om.no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                share = 1.0 / int(self.num_batches_tracked.item())
        batch_statistics = training or self.running_mean is None
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            batch_statistics,
            share,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """(x − mean) / √(var + eps)·weight + bias per channel of (N, C) or (N, C, L).

    In training mode mean and (biased) variance are those of the batch, and the running ones move
    towards the batch's mean and unbiased variance by ``momentum`` (None: the plain average of
    all batches). In evaluation mode the running ones are used.

    State: ``weight``, ``bias``, ``running_mean``, ``running_var`` (C), ``num_batches_tracked``.
    Source: Ioffe & Szegedy 2015.
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W); see BatchNorm1d."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W); see BatchNorm1d."""

    ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises every channel of every sample over the spatial axes; shape is kept."""
        self._check(input)
        own_statistics = self.running_mean is None or self.training
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            own_statistics,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalisation per sample and channel of (N, C, L). Source: Ulyanov et al. 2016."""

    ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Normalisation per sample and channel of (N, C, H, W)."""

    ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    """Normalisation per sample and channel of (N, C, D, H, W)."""

    ranks = (5,)


class LayerNorm(NnModule):
    """(x − mean) / √(var + eps)·weight + bias over the last axes.

    Args:
        normalized_shape: the extents of those axes, or one int for the last axis.
        eps: added to the variance. elementwise_affine, bias: which parameters there are.
        dtype: of the parameters.

    State: ``weight``, ``bias`` of ``normalized_shape``. Source: Ba et al. 2016.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(om.ones(*self.normalized_shape, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if elementwise_affine and bias:
            self.bias = Parameter(om.zeros(*self.normalized_shape, dtype=dtype))
        else:
            self.register_parameter("bias", None)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        _fill(self.weight, 1.0)
        _fill(self.bias, 0.0)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises the last axes; shape is kept."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Shape and options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class RMSNorm(NnModule):
    """x / √(mean(x²) + eps)·weight over the last axes.

    Args:
        normalized_shape: the extents of those axes, or one int for the last axis.
        eps: None takes the dtype's machine epsilon.
        elementwise_affine: whether there is a weight.
        dtype: of the weight.

    Source: Zhang & Sennrich 2019.
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(om.ones(*self.normalized_shape, dtype=dtype))
        else:
            self.register_parameter("weight", None)

    def reset_parameters(self) -> None:
        """Sets weight to 1."""
        _fill(self.weight, 1.0)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises the last axes; shape is kept."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Shape and options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(NnModule):
    """Normalisation of each group of channels of (N, C, …), then weight and bias per channel.

    State: ``weight``, ``bias`` (C). Source: Wu & He 2018.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise AttributeValueError(
                f"GroupNorm: expected num_groups that divides {num_channels} channels, got "
                f"{num_groups}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = Parameter(om.ones(num_channels, dtype=dtype))
            self.bias = Parameter(om.zeros(num_channels, dtype=dtype))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        _fill(self.weight, 1.0)
        _fill(self.bias, 0.0)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises the groups of every sample; shape is kept."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Sizes and options."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(NnModule):
    """x / (k + alpha / size · Σ x² over ``size`` neighbouring channels)^beta for (N, C, …).

    Source: Krizhevsky et al. 2012.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Maps (N, C, …) to the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Size and numbers."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
