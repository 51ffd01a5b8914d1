"""Recurrent layers in ONNX's form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError, UnsupportedError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.peephole import emit_peephole
from onemodel_kernels.ops.products import CHAIN
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Attribute, Call, Emitter, TensorType, integer, real, text

STEPS = CHAIN + " A gate starts from its bias, then takes x, then h; steps in time order."
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def _sizes(call: Call) -> tuple[Any, Any, int, int]:
    """(time, batch, directions, hidden); raises when weights do not fit."""
    if call["direction"] not in _DIRECTIONS:
        raise AttributeValueError(
            f"direction must be one of {', '.join(_DIRECTIONS)}, not {call['direction']!r}"
        )
    x, w, r = call.shape(0), call.shape(1), call.shape(2)
    if not len(x) == len(w) == len(r) == 3:
        raise ShapeError(f"X, W and R must have 3 axes, but their shapes are {x}, {w} and {r}")
    directions, gates = _DIRECTIONS[call["direction"]], _GATES[call.operator]
    hidden = r[2]
    if call["hidden_size"] is not None and call["hidden_size"] != hidden:
        raise AttributeValueError(
            f"hidden_size {call['hidden_size']} must be the last extent of R {r}"
        )
    for name, shape, want in (
        ("W", w, (directions, gates * hidden, x[2])),
        ("R", r, (directions, gates * hidden, hidden)),
    ):
        for have, wanted in zip(shape, want, strict=True):
            extents.unify(have, wanted, f"the extents of {name} {shape} and {want}")
    time, batch = (x[1], x[0]) if call["layout"] else (x[0], x[1])
    return time, batch, directions, hidden


def _recurrent(call: Call) -> list[TensorType]:
    dtype = call.dtype()
    time, batch, directions, hidden = _sizes(call)
    if call["layout"]:
        every, last = (batch, time, directions, hidden), (batch, directions, hidden)
    else:
        every, last = (time, directions, batch, hidden), (directions, batch, hidden)
    states = 2 if call.operator == "LSTM" else 1
    return [(dtype, every), *[(dtype, last)] * states]


def _emit_recurrent(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    name = call.operator
    inputs = [*inputs, *[None] * 8]
    if name == "LSTM" and inputs[7] is not None:
        return emit_peephole(emit, call, inputs)
    if call.attributes.get("input_forget"):
        raise UnsupportedError("LSTM: input_forget=1 is not supported")
    # The extents of the sequence are left to the kernel: it is the same for all of them.
    r = call.shape(2)
    if len(r) != 3:
        _sizes(call)
    directions, _, hidden = r
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": call["direction"]}
    for option in (
        "activations",
        "clip",
        "linear_before_reset",
        "activation_alpha",
        "activation_beta",
    ):
        value = call.attributes.get(option)
        if (
            value is not None
            and value != ()
            and not (option == "linear_before_reset" and value == 0)
        ):
            attributes[option] = value
    if attributes.get("activations") == _DEFAULTS[name] * directions:
        del attributes["activations"]
    if name == "RNN" and len(attributes.get("activations", ())) > directions:
        attributes["activations"] = attributes["activations"][:directions]
        if attributes["activations"] == _DEFAULTS[name] * directions:
            del attributes["activations"]
    x, w, r, b, lengths, h0, c0 = inputs[:7]
    if call["layout"]:
        x = emit.emit("Transpose", x, perm=(1, 0, 2))
        h0 = h0 if h0 is None else emit.emit("Transpose", h0, perm=(1, 0, 2))
        c0 = c0 if c0 is None else emit.emit("Transpose", c0, perm=(1, 0, 2))
    arrays = (x, w, r, b, lengths, h0, c0) if name == "LSTM" else (x, w, r, b, lengths, h0)
    y, *states = emit.kernel(name, *arrays, **attributes)
    if call["layout"]:
        y = emit.emit("Transpose", y, perm=(2, 0, 1, 3))
        states = [emit.emit("Transpose", state, perm=(1, 0, 2)) for state in states]
    return (y, *states)


def _attributes(name: str) -> dict[str, Attribute]:
    found = {
        "clip": real(),
        "activation_beta": Attribute("floats"),
        "activation_alpha": Attribute("floats"),
        "hidden_size": integer(),
        "layout": integer(0),
        "direction": text("forward"),
        "activations": Attribute("strings", ("Tanh", "Tanh") if name == "RNN" else None),
    }
    if name == "LSTM":
        found["input_forget"] = integer(0)
    if name == "GRU":
        found["linear_before_reset"] = integer(0)
    return found


SPECS = [
    operator(
        "LSTM",
        "X W R B? sequence_lens? initial_h? initial_c? P?",
        "Y? Y_h? Y_c?",
        _recurrent,
        _attributes("LSTM"),
        since_version=14,
        decompose=_emit_recurrent,
        determinism=STEPS,
        doc="c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').",
    ),
    operator(
        "GRU",
        "X W R B? sequence_lens? initial_h?",
        "Y? Y_h?",
        _recurrent,
        _attributes("GRU"),
        since_version=14,
        decompose=_emit_recurrent,
        determinism=STEPS,
        doc="h' = (1 - z) n + z h.",
    ),
    operator(
        "RNN",
        "X W R B? sequence_lens? initial_h?",
        "Y? Y_h?",
        _recurrent,
        _attributes("RNN"),
        since_version=14,
        decompose=_emit_recurrent,
        determinism=STEPS,
        doc="h' = f(W x + R h + b).",
    ),
]
