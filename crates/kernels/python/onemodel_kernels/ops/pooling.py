"""Pools."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.convolution import window_attributes
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, integers, text


def _pooled(call: Call) -> tuple[Any, ...]:
    shape = call.shape()
    kernel = tuple(call["kernel_shape"])
    n = len(kernel)
    if len(shape) != n + 2:
        raise ShapeError(
            f"kernel_shape {kernel} needs an input of {n + 2} axes, but its shape is {shape}"
        )
    strides, dilations, pads = window_attributes(call, kernel)
    ceil = bool(call["ceil_mode"]) and (call["auto_pad"] or "NOTSET") == "NOTSET"
    if str(call["auto_pad"]).startswith("SAME"):
        return (*shape[:2], *(extents.same_window(shape[2 + i], strides[i]) for i in range(n)))
    sizes = (
        extents.window(
            shape[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[n + i], ceil
        )
        for i in range(n)
    )
    return (*shape[:2], *sizes)


def _pool(call: Call) -> list[TensorType]:
    return [(call.dtype(), _pooled(call))]


def _max_pool(call: Call) -> list[TensorType]:
    shape = _pooled(call)
    return [(call.dtype(), shape), ("int64", shape)]


MOST_TAPS = 1 << 24
"""Positions under a window, beyond any that a picture has."""


def _window(call: Call) -> dict[str, Any]:
    kernel = tuple(call["kernel_shape"])
    if prod(kernel) > MOST_TAPS:
        raise AttributeValueError(
            f"kernel_shape {kernel} covers more than {MOST_TAPS} positions: pool in steps"
        )
    strides, dilations, pads = window_attributes(call, kernel)
    ceil = int(bool(call["ceil_mode"]) and (call["auto_pad"] or "NOTSET") == "NOTSET")
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "ceil_mode": ceil,
    }


def _emit_max_pool(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    if emit.outputs < 2:
        return emit.kernel("MaxPool", inputs[0], with_indices=0, **_window(call))
    y, index = emit.kernel("MaxPool", inputs[0], **_window(call))
    if not call["storage_order"]:
        return y, index
    # Column-major places inside each plane: the last two axes change their roles.
    *_, height, width = call.shape()
    plane, wide, high = (emit.constant(n, "int64") for n in (height * width, width, height))
    place = emit.emit("Mod", index, plane)
    row, column = emit.emit("Div", place, wide), emit.emit("Mod", place, wide)
    turned = emit.emit("Add", emit.emit("Mul", column, high), row)
    return y, emit.emit("Add", emit.emit("Sub", index, place), turned)


def _prepare_average(call: Call) -> dict[str, Any]:
    return {**_window(call), "count_include_pad": call["count_include_pad"]}


def _prepare_lp(call: Call) -> dict[str, Any]:
    return {**_window(call), "p": call["p"]}


def _global(call: Call) -> list[TensorType]:
    shape = call.shape()
    if len(shape) < 3:
        raise ShapeError(f"the input must be (N, C, spatial…), but its shape is {shape}")
    return [(call.dtype(), (*shape[:2], *(1 for _ in shape[2:])))]


def _emit_global_lp(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    axes = tuple(range(2, call.rank()))
    p = call["p"]
    if p in (1, 2):
        return emit.emit(f"ReduceL{p}", inputs[0], axes=axes, keepdims=1)
    dtype = call.dtype()
    powers = emit.emit("Pow", emit.emit("Abs", inputs[0]), emit.constant(float(p), dtype))
    total = emit.emit("ReduceSum", powers, axes=axes, keepdims=1)
    return emit.emit("Pow", total, emit.constant(1.0 / p, dtype))


def _unpooled(call: Call) -> list[TensorType]:
    shape = call.shape()
    if call["output_shape"] is not None:
        return [(call.dtype(), tuple(call["output_shape"]))]
    return [(call.dtype(), _natural(call, shape))]


def _natural(call: Call, shape: Sequence[Any]) -> tuple[Any, ...]:
    kernel = tuple(call["kernel_shape"])
    n = len(kernel)
    strides = tuple(call["strides"] or (1,) * n)
    pads = tuple(call["pads"] or (0,) * (2 * n))
    sizes = (
        extents.transposed_window(shape[2 + i], kernel[i], strides[i], 1, pads[i], pads[n + i], 0)
        for i in range(n)
    )
    return (*shape[:2], *sizes)


def _emit_unpool(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """Scatters into the natural size; a larger output_shape takes the corner of it."""
    x, index = inputs[:2]
    natural = _natural(call, call.shape())
    dtype = call.dtype()
    flat = emit.emit("Expand", emit.constant(0, dtype), shape=(extents.product(natural),))
    count = (extents.product(call.shape()),)
    index = emit.emit("Reshape", index, shape=count)
    x = emit.emit("Reshape", x, shape=count)
    y = emit.emit("ScatterElements", flat, index, x, axis=0, reduction="none")
    y = emit.emit("Reshape", y, shape=natural)
    target = _unpooled(call)[0][1]
    if target == natural:
        return y
    grow = tuple(want - have for want, have in zip(target, natural, strict=True))
    return emit.emit("Pad", y, pads=(0,) * len(grow) + grow, mode="constant")


_WINDOW = {
    "ceil_mode": integer(0),
    "pads": integers(),
    "auto_pad": text("NOTSET"),
    "strides": integers(),
    "dilations": integers(),
    "kernel_shape": integers(required=True),
}
SPECS = [
    operator(
        "MaxPool",
        "X",
        "Y Indices?",
        _max_pool,
        {**_WINDOW, "storage_order": integer(0)},
        since_version=12,
        decompose=_emit_max_pool,
        doc="The greatest of each window, and its place; NaN wins.",
    ),
    operator(
        "AveragePool",
        "X",
        "Y",
        _pool,
        {**_WINDOW, "count_include_pad": integer(0)},
        since_version=19,
        prepare=_prepare_average,
        determinism="Added in window order, one division; exact.",
        doc="The mean of each window.",
    ),
    operator(
        "LpPool",
        "X",
        "Y",
        _pool,
        {**_WINDOW, "p": integer(2)},
        since_version=18,
        prepare=_prepare_lp,
        determinism="Powers by repeated products, added in window order; roots by our own functions.",
        doc="The p-norm of each window.",
    ),
    operator(
        "GlobalAveragePool",
        "X",
        "Y",
        _global,
        determinism="16 lanes in a fixed tree; exact.",
        doc="The mean over the spatial axes.",
    ),
    operator(
        "GlobalMaxPool", "X", "Y", _global, doc="The greatest over the spatial axes; NaN wins."
    ),
    operator(
        "GlobalLpPool",
        "X",
        "Y",
        _global,
        {"p": integer(2)},
        since_version=2,
        decompose=_emit_global_lp,
        doc="The p-norm over the spatial axes.",
    ),
    operator(
        "MaxUnpool",
        "X I @output_shape?",
        "output",
        _unpooled,
        {"kernel_shape": integers(required=True), "strides": integers(), "pads": integers()},
        since_version=11,
        decompose=_emit_unpool,
        doc="Each element put back where MaxPool found it.",
    ),
]
