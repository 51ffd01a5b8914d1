"""Limits on gradients."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels import Kernel
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_tensors import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [tensor.grad for tensor in tensors if tensor.grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> float:
    """Scales all gradients by max_norm / (norm + 1e-6) where their joint norm is larger.

    Args:
        parameters: the tensors whose gradients count.
        max_norm: the largest norm.
        norm_type: 2, 1 or inf.
        error_if_nonfinite: whether an infinite or NaN norm raises instead of spreading.

    Returns:
        The norm before scaling, accumulated in f64 in the order of the parameters.
    """
    if norm_type not in (1.0, 2.0, float("inf")):
        raise AttributeValueError(
            f"clip_grad_norm_: expected norm_type 1, 2 or inf, got {norm_type}"
        )
    gradients = _gradients(parameters)
    if not gradients:
        return 0.0
    with om.no_grad():
        if norm_type == 2.0:
            norm = float(Kernel("GlobalNorm")(*[g.contiguous()._array for g in gradients]).item())
        elif norm_type == 1.0:
            norm = sum(float(g.abs().to("float64").sum().item()) for g in gradients)
        else:
            peaks = [float(g.abs().amax().item()) for g in gradients]
            norm = float("nan") if any(peak != peak for peak in peaks) else max(peaks)
        if error_if_nonfinite and not norm < float("inf"):
            raise OneModelError(
                f"clip_grad_norm_: expected a finite gradient norm, got {norm}; lower the "
                "learning rate, or look for the loss term that overflows"
            )
        factor = max_norm / (norm + 1e-6)
        if not factor >= 1.0:
            for gradient in gradients:
                gradient.mul_(factor)
    return norm


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limits every element of every gradient to [-clip_value, clip_value]."""
    with om.no_grad():
        for gradient in _gradients(parameters):
            gradient.copy_(gradient.clamp(-clip_value, clip_value))
