"""Recurrent layers whose weights are stored as 8-bit integers."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError, UnsupportedError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.quantization import INTEGER_SUMS
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Attribute, Call, TensorType, integer, real, text

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
    directions, hidden = _DIRECTIONS[call["direction"]], r[1]
    for name, shape, want in (
        ("W", w, (directions, x[2], 4 * hidden)),
        ("R", r, (directions, hidden, 4 * hidden)),
    ):
        for have, wanted in zip(shape, want, strict=True):
            extents.unify(have, wanted, f"the extents of {name} {shape} and {want}")
    every, last = (x[0], directions, x[1], hidden), (directions, x[1], hidden)
    return [(call.dtype(), every), (call.dtype(), last), (call.dtype(), last)]


def _prepare(call: Call) -> dict[str, Any]:
    _lstm(call)
    activations = call["activations"]
    own = activations and activations != ("Sigmoid", "Tanh", "Tanh") * (len(activations) // 3)
    for wrong, name in (
        (call.has(4), "sequence_lens"),
        (call.has(7), "P"),
        (bool(call["clip"]), "clip"),
        (bool(call["input_forget"]), "input_forget"),
        (bool(own), "activations other than Sigmoid, Tanh, Tanh"),
    ):
        if wrong:
            raise UnsupportedError(f"DynamicQuantizeLSTM: {name} is not supported")
    return {"direction": call["direction"]}


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
        kernel="DynamicQuantizeLSTM",
        prepare=_prepare,
        determinism=f"{INTEGER_SUMS} Steps in time order.",
        doc="An LSTM with weights scale (q - zero point); x is quantised as a whole, h at each step.",
    ),
]
