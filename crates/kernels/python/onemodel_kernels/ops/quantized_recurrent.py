"""Recurrent layers whose weights are stored as 8-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError, UnsupportedError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.quantization import INTEGER_SUMS
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Attribute, Call, Emitter, TensorType, integer, real, text

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _lstm(call: Call) -> list[TensorType]:
    if call["direction"] not in _DIRECTIONS:
        raise AttributeValueError(
            f"direction must be one of {', '.join(_DIRECTIONS)}, not {call['direction']!r}"
        )
    x, w, r = call.shape(0), call.shape(1), call.shape(2)
    if not len(x) == len(w) == len(r) == 3:
        raise ShapeError(f"X, W and R must have 3 axes, but their shapes are {x}, {w} and {r}")
    for index, name in ((1, "W"), (2, "R")):
        if call.dtype(index) not in ("int8", "uint8"):
            raise DtypeError(f"{name} must be int8 or uint8, but it is {call.dtype(index)}")
    if not x[0] or not x[1]:
        raise ShapeError(f"X needs at least one step and one row, but its shape is {x}")
    directions, hidden = _DIRECTIONS[call["direction"]], r[1]
    for name, shape, want in (
        ("W", w, (directions, x[2], 4 * hidden)),
        ("R", r, (directions, hidden, 4 * hidden)),
    ):
        for have, wanted in zip(shape, want, strict=True):
            extents.unify(have, wanted, f"the extents of {name} {shape} and {want}")
    every, last = (x[0], directions, x[1], hidden), (directions, x[1], hidden)
    return [(call.dtype(), every), (call.dtype(), last), (call.dtype(), last)]


def _of_direction(emit: Emitter, x: Any, direction: int) -> Any:
    """What belongs to one direction, without that axis; one number for a direction has no axis."""
    part = emit.emit("Slice", x, starts=(direction,), ends=(direction + 1,), axes=(0,))
    return emit.emit("Squeeze", part, axes=(0,))


def _product(emit: Emitter, x: Any, weights: tuple[Any, Any, Any]) -> Any:
    """``x`` quantised as a whole, times stored weights (in, 4 hidden): an exact sum of integers."""
    stored, scale, zero = weights
    quantised, x_scale, x_zero = emit.emit("DynamicQuantizeLinear", x)
    total = emit.emit("MatMulInteger", quantised, stored, x_zero, zero)
    factor = emit.emit("Mul", x_scale, scale)
    return emit.emit("Mul", emit.emit("Cast", total, to="float32"), factor)


def _emit_lstm(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, w, r, b, lengths, h0, c0, peephole, *scales = (*inputs, *[None] * 12)[:12]
    (dtype, (steps, directions, batch, hidden)), *_ = _lstm(call)
    own = call["activations"] not in (None, (), ("Sigmoid", "Tanh", "Tanh") * directions)
    for wrong, name in (
        (lengths is not None, "sequence_lens"),
        (peephole is not None, "P"),
        (bool(call["clip"]), "clip"),
        (bool(call["input_forget"]), "input_forget"),
        (own, "activations other than Sigmoid, Tanh, Tanh"),
    ):
        if wrong:
            raise UnsupportedError(f"DynamicQuantizeLSTM: {name} is not supported")
    zeros = emit.emit("Expand", emit.constant(0.0, dtype), shape=(batch, hidden))
    flat = emit.emit("Reshape", x, shape=(steps * batch, call.shape()[2]), allowzero=1)
    results, last_h, last_c = [], [], []
    for direction in range(directions):
        parts = [_of_direction(emit, part, direction) for part in (w, r, *scales)]
        gates = _product(emit, flat, (parts[0], parts[2], parts[3]))
        if b is not None:
            both = _of_direction(emit, b, direction)
            both = emit.emit("Split", both, axis=0, split=(4 * hidden, 4 * hidden))
            gates = emit.emit("Add", gates, emit.emit("Add", *both))
        given = [gates]
        if steps > 1:
            given = list(emit.emit("Split", gates, axis=0, split=(batch,) * steps))
        h = zeros if h0 is None else _of_direction(emit, h0, direction)
        c = zeros if c0 is None else _of_direction(emit, c0, direction)
        outputs = [h] * steps
        backwards = direction == 1 or call["direction"] == "reverse"
        for step in reversed(range(steps)) if backwards else range(steps):
            total = emit.emit("Add", given[step], _product(emit, h, (parts[1], *parts[4:6])))
            i, o, f, g = emit.emit("Split", total, axis=1, split=(hidden,) * 4)
            kept = emit.emit("Mul", emit.emit("Sigmoid", f), c)
            new = emit.emit("Mul", emit.emit("Sigmoid", i), emit.emit("Tanh", g))
            c = emit.emit("Add", kept, new)
            h = emit.emit("Mul", emit.emit("Sigmoid", o), emit.emit("Tanh", c))
            outputs[step] = h
        joined = outputs[0] if steps == 1 else emit.emit("Concat", *outputs, axis=0)
        shape = (steps, 1, batch, hidden)
        results.append(emit.emit("Reshape", joined, shape=shape, allowzero=1))
        last_h.append(emit.emit("Unsqueeze", h, axes=(0,)))
        last_c.append(emit.emit("Unsqueeze", c, axes=(0,)))
    if directions == 1:
        return results[0], last_h[0], last_c[0]
    return (
        emit.emit("Concat", *results, axis=1),
        emit.emit("Concat", *last_h, axis=0),
        emit.emit("Concat", *last_c, axis=0),
    )


SPECS = [
    operator(
        "DynamicQuantizeLSTM",
        "X W R B? sequence_lens? initial_h? initial_c? P? "
        "W_scale W_zero_point R_scale R_zero_point",
        "Y? Y_h? Y_c?",
        _lstm,
        {
            "activation_alpha": Attribute("floats"),
            "activation_beta": Attribute("floats"),
            "activations": Attribute("strings"),
            "clip": real(),
            "direction": text("forward"),
            "hidden_size": integer(),
            "input_forget": integer(0),
        },
        domain="com.microsoft",
        decompose=_emit_lstm,
        determinism=f"{INTEGER_SUMS} Steps in time order.",
        doc="An LSTM with weights scale (q - zero point); x is quantised as a whole, h at each step.",
    ),
]
