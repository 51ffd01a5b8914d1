"""Layers that drop values in training mode."""

from __future__ import annotations

from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training.module import NnModule

__all__ = ["AlphaDropout", "DropPath", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]


class _Dropout(NnModule):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise AttributeValueError(
                f"{type(self).__name__}: expected a probability from 0 to 1, got {p}"
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout(_Dropout):
    """In training mode zeroes each element with probability p and divides the rest by 1 − p.

    Masks come from the default generator. In evaluation mode, or with p = 0, the input itself.
    ``inplace`` is accepted for compatibility; the result is a new tensor. Source: Srivastava
    et al. 2014.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape; shape is kept."""
        return F.dropout(input, self.p, training=True) if self.p and self.training else input


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape is kept."""
        return F.dropout1d(input, self.p, training=True) if self.p and self.training else input


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape is kept."""
        return F.dropout2d(input, self.p, training=True) if self.p and self.training else input


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Shape is kept."""
        return F.dropout3d(input, self.p, training=True) if self.p and self.training else input


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance after SELU. Source: Klambauer et al. 2017."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape; shape is kept."""
        return F.alpha_dropout(input, self.p, training=True) if self.p and self.training else input


class DropPath(_Dropout):
    """In training mode zeroes whole samples (stochastic depth). Source: Huang et al. 2016."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, …); shape is kept."""
        if not (self.p and self.training):
            return input
        ones = input.new_ones((input.shape[0],) + (1,) * (input.ndim - 1))
        return input * F.dropout(ones, self.p, training=True)
