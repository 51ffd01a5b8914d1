"""Elementwise activation functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.rules import OWN, operator, same
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, real, text
from onemodel_kernels.ops.unary import ELEMENTARY


def _number(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def _clip(call: Call) -> dict[str, Any]:
    return {n: _number(call[n]) for n in ("min", "max") if call[n] is not None}


def _clip_at_run_time(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, low, high = (*inputs, None, None)[:3]
    if low is not None:
        x = emit.emit("Max", x, low)
    return x if high is None else emit.emit("Min", x, high)


def _slope(call: Call) -> list[TensorType]:
    call.agree()
    if extents.broadcast_shapes(call.shape(0), call.shape(1)) != tuple(call.shape(0)):
        raise ShapeError(f"the slope {call.shape(1)} must broadcast to the input {call.shape(0)}")
    return same(call)


def _emit_swish(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x = inputs[0]
    if call["alpha"] == 1.0:
        return emit.emit("Silu", x)
    dtype, _ = emit.type(x)
    return emit.emit(
        "Mul", x, emit.emit("Sigmoid", emit.emit("Mul", x, emit.constant(call["alpha"], dtype)))
    )


def _gated(call: Call) -> list[TensorType]:
    call.agree()
    if tuple(call.shape(0)) != tuple(call.shape(1)):
        raise ShapeError(
            f"A and B must have one shape, but they have {call.shape(0)} and {call.shape(1)}"
        )
    return same(call)


def _emit_swiglu(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    gate, x = inputs[:2]
    return emit.emit("Mul", _emit_swish(emit, call, [gate]), x)


def _activation(
    name: str, since: int, doc: str, exact_steps: bool = False, **attributes: Any
) -> Any:
    determinism = "Each step correctly rounded; exact." if exact_steps else ELEMENTARY
    outputs = "output" if name in ("Softsign", "Shrink") else "Y"
    inputs = "input" if name in ("Softsign", "Shrink") else "X"
    domain = "" if since else OWN
    return operator(
        name,
        inputs,
        outputs,
        same,
        attributes,
        since_version=since or 1,
        domain=domain,
        determinism=determinism,
        doc=doc,
    )


SPECS = [
    _activation("Relu", 14, "x < 0 ? 0 : x; NaN stays.", True),
    _activation("LeakyRelu", 16, "x < 0 ? alpha*x : x.", True, alpha=real(0.009999999776482582)),
    _activation("Elu", 6, "x < 0 ? alpha*(e^x - 1) : x.", alpha=real(1.0)),
    _activation("Celu", 12, "max(0, x) + min(0, alpha*(e^(x/alpha) - 1)).", alpha=real(1.0)),
    _activation(
        "Selu",
        6,
        "gamma * (x > 0 ? x : alpha*(e^x - 1)).",
        alpha=real(1.6732631921768188),
        gamma=real(1.0507010221481323),
    ),
    _activation("Gelu", 20, "x * Phi(x), or its tanh form.", approximate=text("none")),
    _activation("Silu", 0, "x * sigmoid(x)."),
    _activation("Mish", 18, "x * tanh(softplus(x))."),
    _activation("Sigmoid", 13, "1 / (1 + e^-x)."),
    _activation("Softplus", 1, "ln(1 + e^x)."),
    _activation(
        "HardSigmoid",
        6,
        "max(0, min(1, alpha*x + beta)).",
        True,
        alpha=real(0.20000000298023224),
        beta=real(0.5),
    ),
    _activation("HardSwish", 14, "x * max(0, min(1, x/6 + 1/2)).", True),
    _activation("Softsign", 1, "x / (1 + |x|).", True),
    _activation(
        "Shrink",
        9,
        "x < -lambd: x + bias; x > lambd: x - bias; else 0.",
        True,
        bias=real(0.0),
        lambd=real(0.5),
    ),
    _activation("ThresholdedRelu", 10, "x > alpha ? x : 0.", True, alpha=real(1.0)),
    operator("PRelu", "X slope", "Y", _slope, since_version=16, doc="x < 0 ? slope*x : x."),
    operator(
        "Clip",
        "input @min? @max?",
        "output",
        same,
        since_version=13,
        prepare=_clip,
        dynamic=_clip_at_run_time,
        doc="min(max(x, min), max); NaN stays.",
    ),
    operator(
        "Swish",
        "X",
        "Y",
        same,
        {"alpha": real(1.0)},
        since_version=24,
        decompose=_emit_swish,
        determinism=ELEMENTARY,
        doc="x * sigmoid(alpha*x).",
    ),
    operator(
        "SwiGLU",
        "A B",
        "Y",
        _gated,
        {"alpha": real(1.0)},
        since_version=28,
        decompose=_emit_swiglu,
        determinism=ELEMENTARY,
        doc="a * sigmoid(alpha*a) * b.",
    ),
]
