"""Snake on tensors, with its gradient and a body for other engines (Ziyin et al., 2020: periodic activations)."""

from __future__ import annotations

import custom_operator.snake_kernel  # noqa: F401  (registers the operator)
from onemodel_graph import register_function
from onemodel_tensors import Tensor, sin
from onemodel_tensors.extension import GradientCall, operator

__all__ = ["snake"]


def _gradient(call: GradientCall, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, alpha = call.inputs
    rate = alpha.reshape(-1, *(1,) * (x.ndim - 2))
    floor = rate + call.attributes["epsilon"]
    slope = sin(2.0 * rate * x)
    dx = dy * (1.0 + rate * slope / floor)
    if not call.needs(1):
        return dx, None
    by_channel = dy * (x * slope / floor - (sin(rate * x) / floor).square())
    others = [axis for axis in range(x.ndim) if axis != 1]
    return dx, by_channel.sum(others)


snake = operator("com.example::Snake", _gradient)
"""``snake(x, alpha, epsilon=1e-9)``: x + sin(alpha x)² / (alpha + epsilon).

x: (N, C, ...), float32 or float64; alpha: (C,), of x's dtype. Returns a tensor like x.
"""

register_function(
    """
    <opset_import: ["": 20], domain: "com.example">
    Snake <epsilon: float = 1.0e-9> (x, alpha) => (y) {
        one = Constant <value_int = 1> ()
        dimensions = Shape (x)
        axes = Size (dimensions)
        stop = Sub (axes, one)
        first = Constant <value_int = 1> ()
        trailing = Range (first, stop, one)
        rate = Unsqueeze (alpha, trailing)
        angle = Mul (x, rate)
        wave = Sin (angle)
        square = Mul (wave, wave)
        small = Constant <value_float: float = @epsilon> ()
        smallest = CastLike (small, x)
        floor = Add (rate, smallest)
        part = Div (square, floor)
        y = Add (x, part)
    }
    """
)
