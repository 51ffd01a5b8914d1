"""Automatic differentiation: the backward pass, grad modes, hooks, own functions and the gradient check."""

from onemodel_tensors.autograd.engine import backward, grad
from onemodel_tensors.autograd.function import Function
from onemodel_tensors.autograd.gradcheck import gradcheck
from onemodel_tensors.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
