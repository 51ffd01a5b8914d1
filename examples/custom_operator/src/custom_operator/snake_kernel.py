"""Snake(x, alpha) for a session: facts, and a kernel in Python.

Deployment imports this module alone; it needs no tensors.
"""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_kernels.extension import register
from onemodel_kernels.ops import Attribute, Call, InputSpec, OpSpec

__all__ = ["SNAKE"]


def _types(call: Call) -> list[tuple[str, Any]]:
    x, alpha = call.shape(0), call.shape(1)
    if call.agree(0, 1) not in ("float32", "float64"):
        raise DtypeError(f"expected float32 or float64, got {call.dtype()}")
    if len(x) < 2 or len(alpha) != 1 or alpha[0] != x[1]:
        raise ShapeError("expected x (N, C, ...) and alpha (C,)")
    return [(call.dtype(), x)]


_ADD, _MUL, _DIV, _SIN = Kernel("Add"), Kernel("Mul"), Kernel("Div"), Kernel("Sin")


def _compute(x: Array, alpha: Array, epsilon: float) -> Array:
    rate = alpha.reshape((alpha.size, *(1,) * (x.ndim - 2)))
    wave = _SIN(_MUL(x, rate))
    floor = _ADD(rate, Array.full((), epsilon, x.dtype))
    result: Array = _ADD(x, _DIV(_MUL(wave, wave), floor))
    return result


SNAKE = register(
    OpSpec(
        "Snake",
        inputs=(InputSpec("x"), InputSpec("alpha")),
        outputs=(InputSpec("y"),),
        rule=_types,
        attributes={"epsilon": Attribute("float", 1e-9)},
        domain="com.example",
        doc="x + sin(alpha x)^2 / (alpha + epsilon), alpha by channel.",
        determinism="Kernels of the library in a fixed order.",
    ),
    _compute,
)
