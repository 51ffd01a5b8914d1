"""Affine layers."""

from __future__ import annotations

import math
from typing import Any

import onemodel_tensors as om
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(NnModule):
    """Returns its input; takes and ignores any arguments."""

    def __init__(self, *_arguments: object, **_options: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input


class Linear(NnModule):
    """y = x·Wᵀ + b over the last axis.

    Args:
        in_features: K. out_features: N. bias: whether b is added.
        dtype: of the parameters.

    State: ``weight`` (N, K), ``bias`` (N), both from U(-1/√K, 1/√K).
    """

    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(om.empty(out_features, in_features, dtype=dtype))
        if bias:
            self.bias = Parameter(om.empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        if self.bias is not None:
            bound = 1.0 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Maps (…, in_features) to (…, out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(NnModule):
    """y[…, n] = x₁ᵀ·W[n]·x₂ + b[n].

    State: ``weight`` (N, K₁, K₂), ``bias`` (N), both from U(-1/√K₁, 1/√K₁).
    """

    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(om.empty(out_features, in1_features, in2_features, dtype=dtype))
        if bias:
            self.bias = Parameter(om.empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values again."""
        bound = 1.0 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Maps (…, in1_features) and (…, in2_features) to (…, out_features)."""
        result = om.einsum("...i,nij,...j->...n", input1, self.weight, input2)
        return result if self.bias is None else result + self.bias
