"""Automatic differentiation: the backward pass, grad modes, hooks and the gradient check."""

from onemodel_tensors.autograd.engine import backward, grad
from onemodel_tensors.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
