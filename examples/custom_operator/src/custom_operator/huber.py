"""Huber on tensors, with its gradient."""

from __future__ import annotations

import custom_operator.huber_kernel  # noqa: F401  (registers the operator)
from onemodel_tensors import Tensor, clamp
from onemodel_tensors.extension import GradientCall, operator

__all__ = ["huber"]


def _gradient(call: GradientCall, dy: Tensor) -> Tensor:
    delta = call.attributes["delta"]
    return dy * clamp(call.inputs[0], -delta, delta)


huber = operator("com.example::Huber", _gradient)
"""``huber(x, delta=1.0)``: x² / 2 near zero, linear beyond delta; float32 or float64, elementwise."""
