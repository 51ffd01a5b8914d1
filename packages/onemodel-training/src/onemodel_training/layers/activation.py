"""Activations as layers; every one keeps the shape unless it says otherwise."""

from __future__ import annotations

from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import ShapeError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(NnModule):
    """An activation without settings; ``inplace`` is accepted and makes no difference."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_Activation):
    """max(x, 0); NaN stays."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.relu(input)


class ReLU6(_Activation):
    """min(max(x, 0), 6)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.relu6(input)


class SiLU(_Activation):
    """x·σ(x), also called swish."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.silu(input)


class Mish(_Activation):
    """x·tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.mish(input)


class SELU(_Activation):
    """The self-normalising ELU with its two constants. Source: Klambauer et al. 2017."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.selu(input)


class Hardsigmoid(_Activation):
    """min(max(x / 6 + 1/2, 0), 1)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardsigmoid(input)


class Hardswish(_Activation):
    """x·hardsigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardswish(input)


class Sigmoid(NnModule):
    """1 / (1 + e⁻ˣ)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.sigmoid(input)


class Tanh(NnModule):
    """tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.tanh(input)


class LogSigmoid(NnModule):
    """log σ(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.logsigmoid(input)


class Softsign(NnModule):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softsign(input)


class Tanhshrink(NnModule):
    """x − tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.tanhshrink(input)


class ELU(NnModule):
    """x where positive, else alpha·(eˣ − 1)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.elu(input, self.alpha)

    def extra_repr(self) -> str:
        """The settings."""
        return f"alpha={self.alpha}"


class CELU(NnModule):
    """max(0, x) + min(0, alpha·(e^(x/alpha) − 1))."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.celu(input, self.alpha)

    def extra_repr(self) -> str:
        """The settings."""
        return f"alpha={self.alpha}"


class LeakyReLU(NnModule):
    """x where positive, else negative_slope·x."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        """The settings."""
        return f"negative_slope={self.negative_slope}"


class GELU(NnModule):
    """x·Φ(x); ``approximate="tanh"`` takes the usual tanh form. Source: Hendrycks & Gimpel 2016."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The settings."""
        return f"approximate={self.approximate!r}"


class Softplus(NnModule):
    """log(1 + e^(beta·x)) / beta; x itself where beta·x exceeds the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardtanh(NnModule):
    """x limited to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardtanh(input, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The settings."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Hardshrink(NnModule):
    """x where |x| > lambd, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The settings."""
        return f"lambd={self.lambd}"


class Softshrink(NnModule):
    """x moved towards 0 by lambd, 0 where |x| ≤ lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The settings."""
        return f"lambd={self.lambd}"


class Threshold(NnModule):
    """x where x > threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.threshold(input, self.threshold, self.value)

    def extra_repr(self) -> str:
        """The settings."""
        return f"threshold={self.threshold}, value={self.value}"


class PReLU(NnModule):
    """x where positive, else weight·x; ``weight`` has one element, or one per channel (axis 1)."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(om.full((num_parameters,), init, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, …), or any shape with one parameter."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The settings."""
        return f"num_parameters={self.num_parameters}"


class GLU(NnModule):
    """a·σ(b) for the halves a, b of one axis, which becomes half as long."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape whose axis ``dim`` is even."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmax(NnModule):
    """e^(x − max) / Σ e^(x − max) over the axis ``dim``."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class LogSoftmax(NnModule):
    """log of the softmax over the axis ``dim``, without overflow."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmin(NnModule):
    """softmax(−x) over the axis ``dim``."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmax2d(NnModule):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps images to the same shape."""
        if input.ndim not in (3, 4):
            raise ShapeError(
                f"Softmax2d: expected (N, C, H, W) or (C, H, W), got {tuple(input.shape)}"
            )
        return F.softmax(input, -3)


class RReLU(NnModule):
    """x where positive, else slope·x: a slope drawn for each element in training, else their mean.

    Source: Xu et al. 2015.
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.rrelu(input, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        """The slopes."""
        return f"lower={self.lower}, upper={self.upper}"
