"""Attention without a softmax: a state that each step reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.products import CHAIN
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, real, text

RULES = {
    "linear": (False, False),
    "gated": (True, False),
    "delta": (False, True),
    "gated_delta": (True, True),
}
"""Update rule -> (whether the state decays, whether a step writes what the state lacks)."""


def _linear_attention(call: Call) -> list[TensorType]:
    for index, name in enumerate(("query", "key", "value")):
        if call.rank(index) != 3:
            raise ShapeError(
                f"{name} must be (batch, steps, heads * size), but its shape is {call.shape(index)}"
            )
    heads, kv_heads = call["q_num_heads"], call["kv_num_heads"]
    if heads < 1 or kv_heads < 1 or heads % kv_heads:
        raise AttributeValueError(
            f"q_num_heads must be a multiple of kv_num_heads, but they are {heads} and {kv_heads}"
        )
    rule = call["update_rule"]
    if rule not in RULES:
        raise AttributeValueError(
            f"update_rule must be one of {', '.join(RULES)}, but it is {rule!r}"
        )
    for wanted, index, name in zip(RULES[rule], (4, 5), ("decay", "beta"), strict=True):
        if wanted != call.has(index):
            expected = "needs" if wanted else "takes no"
            raise AttributeValueError(f"update_rule {rule!r} {expected} input {name!r}")
    batch, steps, _ = call.shape(0)
    size = extents.floordiv(call.shape(0)[2], heads)
    value_size = extents.floordiv(call.shape(2)[2], kv_heads)
    extents.unify(call.shape(1)[2], extents.mul(size, kv_heads), "the key's last extent")
    state = (batch, kv_heads, size, value_size)
    if call.has(3) and tuple(call.shape(3)) != state:
        raise ShapeError(f"past_state must have the shape {state}, but it has {call.shape(3)}")
    kept = call.dtype(3) if call.has(3) else call.dtype()
    return [(call.dtype(), (batch, steps, extents.mul(heads, value_size))), (kept, state)]


def _steps(emit: Emitter, x: Any, shape: tuple[int, ...], wide: str) -> list[Any]:
    """A packed input ``(batch, steps, …)`` as one tensor of ``shape`` for each step."""
    x = emit.emit("Cast", x, to=wide)
    count = emit.type(x)[1][1]
    if count == 1:
        parts = [x]
    else:
        parts = emit.emit("Split", x, axis=1, split=(1,) * count)
    return [emit.emit("Reshape", part, shape=shape, allowzero=1) for part in parts]


def _emit_linear_attention(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    query, key, value, past, decay, beta = (*inputs, None, None, None)[:6]
    (dtype, result), (kept, state_shape) = _linear_attention(call)
    batch, heads, size, value_size = state_shape
    count = result[1]
    # Narrow types keep the state in single precision over all steps.
    wide = "float64" if dtype == "float64" else "float32"
    scale = call["scale"] or 1.0 / size**0.5
    if past is None:
        state = emit.emit("Expand", emit.constant(0.0, wide), shape=state_shape)
    else:
        state = emit.emit("Cast", past, to=wide)
    if count == 0:
        empty = emit.emit("Expand", emit.constant(0.0, dtype), shape=result)
        return empty, emit.emit("Cast", state, to=kept)
    group = call["q_num_heads"] // heads
    queries = _steps(emit, query, (batch, heads, group, size), wide)
    keys = _steps(emit, key, (batch, heads, size, 1), wide)
    values = _steps(emit, value, (batch, heads, 1, value_size), wide)
    gates = rates = None
    if decay is not None:
        width = emit.type(decay)[1][2]
        if width not in (heads, heads * size):
            raise ShapeError(
                f"decay must end in kv_num_heads ({heads}) or kv_num_heads * key size "
                f"({heads * size}), but its last extent is {width}"
            )
        gates = _steps(emit, decay, (batch, heads, width // heads, 1), wide)
    if beta is not None:
        width = emit.type(beta)[1][2]
        if width not in (heads, 1):
            raise ShapeError(
                f"beta must end in kv_num_heads ({heads}) or 1, but its last extent is {width}"
            )
        rates = _steps(emit, beta, (batch, width, 1, 1), wide)
    factor = emit.constant(scale, wide)
    outputs = []
    for step in range(count):
        written = values[step]
        if gates is not None:
            state = emit.emit("Mul", state, emit.emit("Exp", gates[step]))
        if rates is not None:
            turned = emit.emit("Reshape", keys[step], shape=(batch, heads, 1, size), allowzero=1)
            missing = emit.emit("Sub", written, emit.emit("MatMul", turned, state))
            written = emit.emit("Mul", rates[step], missing)
        state = emit.emit("Add", state, emit.emit("Mul", keys[step], written))
        read = emit.emit("Mul", emit.emit("MatMul", queries[step], state), factor)
        shape = (batch, 1, result[2])
        outputs.append(emit.emit("Reshape", read, shape=shape, allowzero=1))
    joined = outputs[0] if count == 1 else emit.emit("Concat", *outputs, axis=1)
    return emit.emit("Cast", joined, to=dtype), emit.emit("Cast", state, to=kept)


SPECS = [
    operator(
        "LinearAttention",
        "query key value past_state? decay? beta?",
        "output present_state",
        _linear_attention,
        {
            "q_num_heads": integer(required=True),
            "kv_num_heads": integer(required=True),
            "scale": real(0.0),
            "update_rule": text("gated_delta"),
            "chunk_size": integer(64),
        },
        since_version=27,
        decompose=_emit_linear_attention,
        determinism=CHAIN + " Step after step.",
        doc="S = e^g S + k ⊗ v (delta rules write beta (v - S k)); o = scale q S, for each step.",
    ),
]
