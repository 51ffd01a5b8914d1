"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.reductions import ROWS
from onemodel_kernels.ops.rules import operator, same
from onemodel_kernels.ops.spec import (
    Call,
    Emitter,
    TensorType,
    integer,
    integers,
    normalise_axes,
    real,
)

EPSILON = 9.999999747378752e-06


def _per_channel(call: Call, *inputs: int) -> None:
    x = call.shape()
    channels = x[1] if len(x) > 1 else 1
    for index in inputs:
        shape = call.shape(index)
        if len(shape) != 1:
            raise ShapeError(
                f"tensor input {index} must have one axis of {channels}, but it is {shape}"
            )
        extents.unify(shape[0], channels, "the extent of tensor input {} and the channels", index)


def _batch(call: Call) -> list[TensorType]:
    _per_channel(call, 1, 2, 3, 4)
    running = (call.dtype(3), call.shape(3))
    return [(call.dtype(), call.shape()), running, running]


def _emit_batch(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, scale, bias, mean, var = inputs
    if not call["training_mode"]:
        y = emit.kernel("BatchNormalization", x, scale, bias, mean, var, epsilon=call["epsilon"])
        return y, mean, var
    dtype = call.dtype()
    axes = tuple(a for a in range(call.rank()) if a != 1)
    batch_mean = emit.emit("ReduceMean", x, axes=axes, keepdims=0)
    wide = tuple(call.shape()[1] if a == 1 else 1 for a in range(call.rank()))
    centred = emit.emit("Sub", x, emit.emit("Reshape", batch_mean, shape=wide))
    batch_var = emit.emit("ReduceMean", emit.emit("Mul", centred, centred), axes=axes, keepdims=0)
    y = emit.kernel(
        "BatchNormalization", x, scale, bias, batch_mean, batch_var, epsilon=call["epsilon"]
    )
    keep, take = (
        emit.constant(call["momentum"], dtype),
        emit.constant(1.0 - call["momentum"], dtype),
    )

    def running(old: Any, new: Any) -> Any:
        return emit.emit("Add", emit.emit("Mul", old, keep), emit.emit("Mul", new, take))

    return y, running(mean, batch_mean), running(var, batch_var)


def _layer(call: Call) -> list[TensorType]:
    dtype = call.agree()
    axis = call.axis()
    shape = call.shape()
    for index in (1, 2):
        if call.has(index):
            found = extents.broadcast_shapes(shape[axis:], call.shape(index))
            if len(found) > len(shape) - axis:
                raise ShapeError(
                    f"tensor input {index} {call.shape(index)} must broadcast to {shape[axis:]}"
                )
    statistics = (*shape[:axis], *(1 for _ in shape[axis:]))
    stash = "float32" if dtype in ("float16", "bfloat16", "float32") else dtype
    return [(dtype, shape), (stash, statistics), (stash, statistics)]


def _expanded(emit: Emitter, value: Any, call: Call, axis: int) -> Any:
    """A scale or bias in the shape of the normalised axes."""
    shape = emit.type(value)[1]
    # Where no axis can be broadcast, the shapes are equal or the kernel refuses them.
    if len(shape) == call.rank() - axis and 1 not in shape:
        return value
    normalised = call.shape()[axis:]
    return value if shape == normalised else emit.emit("Expand", value, shape=normalised)


def _emit_layer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, scale, bias = (*inputs, None, None)[:3]
    dtype, axis = call.dtype(), call.axis()
    stash = "float32" if dtype in ("float16", "bfloat16") else dtype

    def affine(value: Any) -> Any:
        if value is None:
            return None
        value = _expanded(emit, value, call, axis)
        return value if stash == dtype else emit.emit("Cast", value, to=stash)

    if stash != dtype:
        x = emit.emit("Cast", x, to=stash)
    y, mean, inverse = emit.kernel(
        "LayerNormalization", x, affine(scale), affine(bias), axis=axis, epsilon=call["epsilon"]
    )
    return (y if stash == dtype else emit.emit("Cast", y, to=dtype)), mean, inverse


def _instance(call: Call) -> list[TensorType]:
    call.agree()
    if call.rank() < 3:
        raise ShapeError(f"the input must be (N, C, spatial…), but its shape is {call.shape()}")
    _per_channel(call, 1, 2)
    return same(call)


def _group(call: Call) -> list[TensorType]:
    _per_channel(call, 1, 2)
    channels, groups = call.shape()[1], call["num_groups"]
    if extents.is_static(channels) and channels % groups:
        raise ShapeError(f"the {channels} channels must be a multiple of num_groups {groups}")
    return same(call)


def _emit_group(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    attributes = {"num_groups": call["num_groups"], "epsilon": call["epsilon"]}
    y, _, _ = emit.kernel("GroupNormalization", *inputs[:3], **attributes)
    return y


DOUBLE = 11
"""ONNX's number of float64, as ``stash_type`` has it."""


def _rms(call: Call) -> list[TensorType]:
    call.axis()
    return same(call)


def _emit_rms(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, scale = inputs[:2]
    dtype, axis = call.dtype(), call.axis()
    stash = "float32" if dtype in ("float16", "bfloat16") else dtype
    if call["stash_type"] == DOUBLE:
        stash = "float64"
    if stash != dtype:
        x, scale = emit.emit("Cast", x, to=stash), emit.emit("Cast", scale, to=stash)
    scale = _expanded(emit, scale, call, axis)
    y, _ = emit.kernel("RMSNormalization", x, scale, axis=axis, epsilon=call["epsilon"])
    return y if stash == dtype else emit.emit("Cast", y, to=dtype)


def _emit_lp(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, axis, p = inputs[0], call.axis(), call["p"]
    if p not in (1, 2):
        raise AttributeValueError(f"p must be 1 or 2, but it is {p}")
    norm = emit.emit(f"ReduceL{p}", x, axes=(axis,), keepdims=1)
    zero = emit.constant(0, call.dtype())
    safe = emit.emit("Where", emit.emit("Equal", norm, zero), emit.constant(1, call.dtype()), norm)
    return emit.emit("Div", x, safe)


def _mean_variance(call: Call) -> list[TensorType]:
    normalise_axes(call["axes"], call.rank())
    return same(call)


def _emit_mean_variance(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, axes = inputs[0], normalise_axes(call["axes"], call.rank())
    dtype = call.dtype()
    centred = emit.emit("Sub", x, emit.emit("ReduceMean", x, axes=axes, keepdims=1))
    variance = emit.emit("ReduceMean", emit.emit("Mul", centred, centred), axes=axes, keepdims=1)
    spread = emit.emit("Add", emit.emit("Sqrt", variance), emit.constant(1e-9, dtype))
    return emit.emit("Div", centred, spread)


def _lrn(call: Call) -> list[TensorType]:
    if call.rank() < 2:
        raise ShapeError(f"the input must be (N, C, …), but its shape is {call.shape()}")
    return same(call)


MOST_NEIGHBOURS = 1 << 10
"""Channels that are added one after the other."""


def _emit_lrn(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """x / (bias + alpha/size * sum of squares over neighbouring channels)^beta."""
    x = inputs[0]
    dtype, shape, size = call.dtype(), call.shape(), call["size"]
    # Neighbours beyond the channels count for nothing.
    reach = max(shape[1] - 1, 0)
    before = min((size - 1) // 2, reach)
    after = min(size - 1 - (size - 1) // 2, reach)
    if before + after >= MOST_NEIGHBOURS:
        raise AttributeValueError(
            f"size {size} covers more than {MOST_NEIGHBOURS} of the {shape[1]} channels"
        )
    rest = (0,) * (len(shape) - 2)
    padded = emit.emit(
        "Pad", emit.emit("Mul", x, x), pads=(0, before, *rest, 0, after, *rest), mode="constant"
    )
    parts = [
        emit.emit("Slice", padded, starts=(i,), ends=(i + shape[1],), axes=(1,), steps=(1,))
        for i in range(before + after + 1)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = emit.emit("Add", total, part)
    scaled = emit.emit("Mul", total, emit.constant(call["alpha"] / size, dtype))
    base = emit.emit("Add", scaled, emit.constant(call["bias"], dtype))
    return emit.emit("Div", x, emit.emit("Pow", base, emit.constant(call["beta"], dtype)))


SPECS = [
    operator(
        "BatchNormalization",
        "X scale B input_mean input_var",
        "Y running_mean? running_var?",
        _batch,
        {
            "training_mode": integer(0),
            "momentum": real(0.8999999761581421),
            "epsilon": real(EPSILON),
        },
        since_version=15,
        decompose=_emit_batch,
        determinism="Each step correctly rounded; exact.",
        doc="(x - mean) * scale / sqrt(var + epsilon) + B for each channel.",
    ),
    operator(
        "LayerNormalization",
        "X Scale B?",
        "Y Mean? InvStdDev?",
        _layer,
        {"stash_type": integer(1), "epsilon": real(EPSILON), "axis": integer(-1)},
        since_version=17,
        decompose=_emit_layer,
        determinism=ROWS,
        doc="Zero mean, unit variance over the axes from `axis` on.",
    ),
    operator(
        "InstanceNormalization",
        "input scale B",
        "output",
        _instance,
        {"epsilon": real(EPSILON)},
        since_version=6,
        determinism=ROWS,
        doc="Zero mean, unit variance of each plane.",
    ),
    operator(
        "GroupNormalization",
        "X scale bias",
        "Y",
        _group,
        {"num_groups": integer(required=True), "epsilon": real(EPSILON), "stash_type": integer(1)},
        since_version=21,
        decompose=_emit_group,
        determinism=ROWS,
        doc="Zero mean, unit variance of each group of channels; scale and bias for each channel.",
    ),
    operator(
        "RMSNormalization",
        "X scale",
        "Y",
        _rms,
        {"stash_type": integer(1), "epsilon": real(EPSILON), "axis": integer(-1)},
        since_version=23,
        decompose=_emit_rms,
        determinism=ROWS,
        doc="x / sqrt(mean(x²) + epsilon) * scale.",
    ),
    operator(
        "LpNormalization",
        "input",
        "output",
        _rms,
        {"p": integer(2), "axis": integer(-1)},
        decompose=_emit_lp,
        determinism=ROWS,
        doc="x over its p-norm along an axis; 0 where that is 0.",
    ),
    operator(
        "MeanVarianceNormalization",
        "X",
        "Y",
        _mean_variance,
        {"axes": integers((0, 2, 3))},
        since_version=13,
        decompose=_emit_mean_variance,
        determinism=ROWS,
        doc="(x - mean) / (sqrt(var) + 1e-9) over the axes.",
    ),
    operator(
        "LRN",
        "X",
        "Y",
        _lrn,
        {
            "bias": real(1.0),
            "beta": real(0.75),
            "alpha": real(9.999999747378752e-05),
            "size": integer(required=True),
        },
        since_version=13,
        decompose=_emit_lrn,
        doc="x over a power of its neighbours' sum of squares.",
    ),
]
