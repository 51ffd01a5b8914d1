"""Huber on tensors, with its gradient and a body for other engines."""

from __future__ import annotations

import custom_operator.huber_kernel  # noqa: F401  (registers the operator)
from onemodel_graph import register_function
from onemodel_tensors import Tensor, clamp
from onemodel_tensors.extension import GradientCall, operator

__all__ = ["huber"]


def _gradient(call: GradientCall, dy: Tensor) -> Tensor:
    delta = call.attributes["delta"]
    return dy * clamp(call.inputs[0], -delta, delta)


huber = operator("com.example::Huber", _gradient)
"""``huber(x, delta=1.0)``: x² / 2 near zero, linear beyond delta; float32 or float64, elementwise."""

register_function(
    """
    <opset_import: ["": 20], domain: "com.example">
    Huber <delta: float = 1.0> (x) => (y) {
        limit = Constant <value_float: float = @delta> ()
        delta_x = CastLike (limit, x)
        half_number = Constant <value_float = 0.5> ()
        half = CastLike (half_number, x)
        size = Abs (x)
        halved = Mul (half, x)
        inside = Mul (halved, x)
        offset = Mul (half, delta_x)
        shifted = Sub (size, offset)
        outside = Mul (delta_x, shifted)
        near = LessOrEqual (size, delta_x)
        y = Where (near, inside, outside)
    }
    """
)
