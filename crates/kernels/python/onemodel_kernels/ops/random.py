"""Dropout as it is at inference, and random tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import UnsupportedError
from onemodel_kernels.ops.reductions import scalar_operand
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import (
    Attribute,
    Call,
    Emitter,
    TensorType,
    dtype_name,
    integer,
    real,
)


def _dropout(call: Call) -> list[TensorType]:
    return [(call.dtype(), call.shape()), ("bool", call.shape())]


def _emit_dropout(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    ratio = scalar_operand(call["ratio"])
    if scalar_operand(call["training_mode"]) and (ratio is None or ratio > 0):
        raise UnsupportedError(
            "Dropout: training_mode=1 draws a random mask, which an inference session does not"
        )
    mask = emit.emit("Expand", emit.constant(1, "bool"), shape=tuple(call.shape()))
    return emit.emit("Identity", inputs[0]), mask


def _random(call: Call) -> list[TensorType]:
    return [(call["dtype"] or "float32", tuple(call.static("shape")))]


def _random_like(call: Call) -> list[TensorType]:
    return [(call["dtype"] or call.dtype(), call.shape())]


def seed_bits(call: Call) -> int:
    """The generator's seed: the attribute's float bits, 0 without one."""
    import struct

    seed = call["seed"]
    return 0 if seed is None else int(struct.unpack("<I", struct.pack("<f", seed))[0])


def _emit_uniform(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    dtype, shape = (_random_like if call.shapes else _random)(call)[0]
    bounds = {"low": call["low"], "high": call["high"]}
    return emit.kernel(
        "RandomUniform", shape=shape, **bounds, seed=seed_bits(call), counter=0, dtype=dtype
    )


def _emit_normal(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    dtype, shape = (_random_like if call.shapes else _random)(call)[0]
    moments = {"mean": call["mean"], "std": call["scale"]}
    return emit.kernel(
        "RandomNormal", shape=shape, **moments, seed=seed_bits(call), counter=0, dtype=dtype
    )


def _emit_bernoulli(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    dtype = call.dtype()
    drawn = emit.kernel(
        "RandomUniform",
        shape=tuple(call.shape()),
        low=0.0,
        high=1.0,
        seed=seed_bits(call),
        counter=0,
        dtype=dtype,
    )
    return emit.emit("Cast", emit.emit("Less", drawn, inputs[0]), to=call["dtype"] or dtype)


_DRAWN = "The counter-based Philox4x32-10 generator: the same numbers on every machine, from the seed alone."
_UNIFORM = {"seed": real(), "high": real(1.0), "low": real(0.0)}
_NORMAL = {"seed": real(), "scale": real(1.0), "mean": real(0.0)}
_SHAPE = Attribute("ints", None, True)
SPECS = [
    operator(
        "Dropout",
        "data @ratio? @training_mode?",
        "output mask?",
        _dropout,
        {"seed": integer()},
        since_version=13,
        decompose=_emit_dropout,
        doc="The input itself: an inference session drops nothing.",
    ),
    operator(
        "RandomUniform",
        "",
        "output",
        _random,
        {"shape": _SHAPE, "dtype": dtype_name("float32"), **_UNIFORM},
        decompose=_emit_uniform,
        determinism=_DRAWN,
        doc="Numbers drawn evenly from [low, high).",
    ),
    operator(
        "RandomUniformLike",
        "input",
        "output",
        _random_like,
        {"dtype": dtype_name(), **_UNIFORM},
        decompose=_emit_uniform,
        determinism=_DRAWN,
        doc="RandomUniform in the shape of the input.",
    ),
    operator(
        "RandomNormal",
        "",
        "output",
        _random,
        {"shape": _SHAPE, "dtype": dtype_name("float32"), **_NORMAL},
        decompose=_emit_normal,
        determinism=_DRAWN,
        doc="Normally distributed numbers.",
    ),
    operator(
        "RandomNormalLike",
        "input",
        "output",
        _random_like,
        {"dtype": dtype_name(), **_NORMAL},
        decompose=_emit_normal,
        determinism=_DRAWN,
        doc="RandomNormal in the shape of the input.",
    ),
    operator(
        "Bernoulli",
        "input",
        "output",
        _random_like,
        {"dtype": dtype_name(), "seed": real()},
        since_version=15,
        decompose=_emit_bernoulli,
        determinism=_DRAWN,
        doc="1 with the given probability.",
    ),
]
