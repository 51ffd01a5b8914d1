"""Initial values of weights, by PyTorch's names and formulas.

Random ones draw from a counter-based :class:`onemodel_tensors.Generator` (the default generator
unless one is given), so a seed gives the same numbers on every machine and thread count. Every
function writes the tensor in place, records nothing for autograd and returns the tensor.
"""

from __future__ import annotations

import math
from typing import Literal

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import Generator, Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "fan_in_and_fan_out",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps variance through ``nonlinearity``; ``param``: leaky_relu's slope."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in _GAINS:
        raise AttributeValueError(
            f"calculate_gain: expected one of {', '.join([*_GAINS, 'leaky_relu'])}, "
            f"got {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Inputs and outputs of one unit: axes 1 and 0, each times the receptive field."""
    if tensor.ndim < 2:
        raise ShapeError(f"fan in and fan out: expected 2 axes or more, got {tuple(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with samples from [a, b)."""
    with om.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with samples of the normal distribution."""
    with om.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills with normal samples, drawn again wherever they fall outside [a, b].

    Raises:
        AttributeValueError: when ``a >= b``, or fewer than one sample in a hundred would be kept.
    """
    low, high = (a - mean) / std, (b - mean) / std
    kept = (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0))) / 2.0
    if kept < 0.01:
        raise AttributeValueError(
            f"trunc_normal_: expected bounds that hold 1 % of the distribution or more, got "
            f"[{a}, {b}] for mean {mean} and std {std}"
        )
    with om.no_grad():
        samples = om.empty_like(tensor).normal_(mean, std, generator=generator)
        outside = (samples < a) | (samples > b)
        while bool(outside.any()):
            again = om.empty_like(tensor).normal_(mean, std, generator=generator)
            samples = om.where(outside, again, samples)
            outside = (samples < a) | (samples > b)
        return tensor.copy_(samples)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with ``val``."""
    with om.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: expected 2 axes, got {tuple(tensor.shape)}")
    rows, columns = tensor.shape
    with om.no_grad():
        return tensor.copy_(om.eye(rows, columns, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution weight so that channels pass unchanged."""
    if tensor.ndim not in (3, 4, 5):
        raise ShapeError(f"dirac_: expected 3, 4 or 5 axes, got {tuple(tensor.shape)}")
    if groups < 1 or tensor.shape[0] % groups:
        raise AttributeValueError(
            f"dirac_: expected groups that divide {tensor.shape[0]} output channels, got {groups}"
        )
    per_group = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with om.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *middle)] = 1.0
    return tensor


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills from U(-b, b), b = gain·√(6 / (fan_in + fan_out)). Source: Glorot & Bengio 2010."""
    fan_in, fan_out = fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills from N(0, gain²·2 / (fan_in + fan_out)). Source: Glorot & Bengio 2010."""
    fan_in, fan_out = fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _kaiming_scale(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise AttributeValueError(f"kaiming: expected mode fan_in or fan_out, got {mode!r}")
    fan_in, fan_out = fan_in_and_fan_out(tensor)
    fan = fan_in if mode == "fan_in" else fan_out
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills from U(-b, b), b = gain·√(3 / fan). Source: He et al. 2015."""
    bound = math.sqrt(3.0) * _kaiming_scale(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills from N(0, gain² / fan). Source: He et al. 2015."""
    return normal_(tensor, 0.0, _kaiming_scale(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills so that the rows of the matrix (axis 0 × the rest), or its columns, are orthonormal.

    Twice-repeated Gram-Schmidt on a normal matrix in f64, so the sign convention is the one of a
    QR factorisation with a positive diagonal. Source: Saxe et al. 2013.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: expected 2 axes or more, got {tuple(tensor.shape)}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    count, length = min(rows, columns), max(rows, columns)
    with om.no_grad():
        basis = om.empty(count, length, dtype="float64").normal_(0.0, 1.0, generator=generator)
        for row in range(count):
            vector = basis[row]
            for _ in range(2):
                before = basis[:row]
                vector = vector - (before @ vector) @ before
            basis[row] = vector / vector.square().sum().sqrt()
        matrix = basis if rows <= columns else basis.T
        return tensor.copy_((matrix * gain).reshape(tuple(tensor.shape)).to(tensor.dtype))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fills a matrix from N(0, std²), then zeroes a fraction of every column.

    Args:
        tensor: a matrix.
        sparsity: the fraction of each column that is zero, rounded up.
        std: standard deviation of the others.
        generator: where the numbers come from; the default generator if None.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: expected 2 axes, got {tuple(tensor.shape)}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with om.no_grad():
        normal_(tensor, 0.0, std, generator)
        for column in range(columns):
            for row in om.randperm(rows, generator=generator)[:zeros].tolist():
                tensor[row, column] = 0.0
    return tensor


# The name by which models of others call it.
_calculate_fan_in_and_fan_out = fan_in_and_fan_out
