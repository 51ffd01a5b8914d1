"""Operators that move elements: joining, cutting, padding, repeating, rearranging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.reductions import scalar_operand
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import (
    Call,
    Emitter,
    TensorType,
    integer,
    integers,
    normalise_axes,
    real,
    text,
)


def _concat(call: Call) -> list[TensorType]:
    dtype = call.agree()
    axis = call.axis()
    shapes = [shape for shape in call.shapes if shape is not None]
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise ShapeError(
                f"inputs must have the same number of axes, but their shapes are {shapes}"
            )
        for a, extent in enumerate(shape):
            if a != axis:
                result[a] = extents.unify(result[a], extent, f"the extents of axis {a}")
    result[axis] = extents.total(shape[axis] for shape in shapes)
    return [(dtype, tuple(result))]


MOST_PARTS = 1 << 20
"""Parts that a Split may have."""


def split_sizes(call: Call) -> tuple[Any, ...]:
    """The extents of the parts of a Split."""
    extent = call.shape()[call.axis()]
    sizes = call["split"]
    if sizes is None:
        count = call["num_outputs"]
        if count is None:
            raise AttributeValueError(
                "either the operand 'split' or the attribute 'num_outputs' is required"
            )
        if not extents.is_static(extent):
            raise ShapeError("a symbolic axis needs explicit sizes in 'split'")
        if not 1 <= count <= MOST_PARTS:
            raise AttributeValueError(f"num_outputs must be 1 to {MOST_PARTS}, but it is {count}")
        size = -(-extent // count)
        return tuple(min(size, max(extent - i * size, 0)) for i in range(count))
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    for size in sizes:
        if extents.is_static(size) and size < 0:
            raise ShapeError(f"the sizes of 'split' must not be negative, but they are {sizes}")
    extents.unify(
        extents.total(sizes), extent, f"the sum of split {sizes} and the extent of the axis"
    )
    return sizes


def _split(call: Call) -> list[TensorType]:
    axis = call.axis()
    shape = call.shape()
    return [(call.dtype(), (*shape[:axis], size, *shape[axis + 1 :])) for size in split_sizes(call)]


def _prepare_split(call: Call) -> dict[str, Any]:
    return {"axis": call["axis"], "split": split_sizes(call)}


def slice_parts(call: Call) -> list[tuple[int, Any, Any, int]]:
    """(axis, start, end, step) of a Slice, as written."""
    starts, ends = call.static("starts"), call.static("ends")
    starts = (starts,) if not isinstance(starts, tuple) else starts
    ends = (ends,) if not isinstance(ends, tuple) else ends
    axes, steps = call["axes"], call["steps"]
    axes = tuple(range(len(starts))) if axes is None else axes
    axes = normalise_axes((axes,) if isinstance(axes, int) else axes, call.rank())
    steps = (
        (1,) * len(starts)
        if steps is None
        else (steps,)
        if isinstance(steps, int)
        else tuple(steps)
    )
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ShapeError("starts, ends, axes and steps must have the same length")
    return list(zip(axes, starts, ends, steps, strict=True))


def _slice(call: Call) -> list[TensorType]:
    shape = list(call.shape())
    for axis, start, end, step in slice_parts(call):
        shape[axis] = extents.slice_length(shape[axis], start, end, step)
    return [(call.dtype(), tuple(shape))]


def _prepare_slice(call: Call) -> dict[str, Any]:
    parts = slice_parts(call)
    axes, starts, ends, steps = zip(*parts, strict=True) if parts else ((), (), (), ())
    return {"axes": axes, "starts": starts, "ends": ends, "steps": steps}


def _pad_amounts(call: Call) -> list[tuple[int, int, int]]:
    pads = tuple(call.static("pads"))
    axes = call["axes"]
    chosen = tuple(range(call.rank())) if axes is None else normalise_axes(axes, call.rank())
    if len(pads) != 2 * len(chosen):
        raise ShapeError(f"pads {pads} must have two entries for each of the axes {chosen}")
    return [(a, pads[i], pads[i + len(chosen)]) for i, a in enumerate(chosen)]


def _pad(call: Call) -> list[TensorType]:
    if call["mode"] not in ("constant", "reflect", "edge", "wrap"):
        raise AttributeValueError(
            f"mode must be constant, reflect, edge or wrap, but it is {call['mode']!r}"
        )
    shape = list(call.shape())
    for axis, begin, end in _pad_amounts(call):
        shape[axis] = extents.add(shape[axis], begin + end)
    return [(call.dtype(), tuple(shape))]


def _prepare_pad(call: Call) -> dict[str, Any]:
    amounts = _pad_amounts(call)
    value = scalar_operand(call["constant_value"])
    found = {
        "pads": tuple(a[1] for a in amounts) + tuple(a[2] for a in amounts),
        "axes": tuple(a[0] for a in amounts),
        "mode": call["mode"],
    }
    if value is not None:
        found["value"] = value
    return found


def _tile(call: Call) -> list[TensorType]:
    repeats = call.static("repeats")
    repeats = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    if len(repeats) != call.rank():
        raise ShapeError(f"repeats {repeats} must have one entry for each axis")
    return [
        (call.dtype(), tuple(extents.mul(e, r) for e, r in zip(call.shape(), repeats, strict=True)))
    ]


def _prepare_tile(call: Call) -> dict[str, Any]:
    repeats = call["repeats"]
    return {"repeats": (repeats,) if isinstance(repeats, int) else tuple(repeats)}


def _trilu(call: Call) -> list[TensorType]:
    if call.rank() < 2:
        raise ShapeError(f"the input must have at least 2 axes, but its shape is {call.shape()}")
    return [(call.dtype(), call.shape())]


def _prepare_trilu(call: Call) -> dict[str, Any]:
    return {"k": scalar_operand(call["k"]) or 0, "upper": call["upper"]}


def _depth_to_space(call: Call) -> list[TensorType]:
    n, c, h, w = _planes(call)
    b = call["blocksize"]
    return [
        (call.dtype(), (n, _divided(c, b * b, "channels"), extents.mul(h, b), extents.mul(w, b)))
    ]


def _space_to_depth(call: Call) -> list[TensorType]:
    n, c, h, w = _planes(call)
    b = call["blocksize"]
    return [
        (
            call.dtype(),
            (n, extents.mul(c, b * b), _divided(h, b, "rows"), _divided(w, b, "columns")),
        )
    ]


def _planes(call: Call) -> tuple[Any, ...]:
    if call.rank() != 4:
        raise ShapeError(f"the input must have 4 axes, but its shape is {call.shape()}")
    return call.shape()


def _divided(extent: Any, by: int, what: str) -> Any:
    if extents.is_static(extent) and extent % by:
        raise ShapeError(f"the {what} ({extent}) must be a multiple of {by}")
    return extents.floordiv(extent, by)


def _reverse_sequence(call: Call) -> list[TensorType]:
    return [(call.dtype(), call.shape())]


def _emit_reverse_sequence(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, lengths = inputs[:2]
    time, batch = call["time_axis"], call["batch_axis"]
    extent, rows = call.shape()[time], call.shape()[batch]
    shape = [1] * call.rank()
    shape[time] = extent
    steps = emit.emit("Range", start=0, limit=extent, delta=1, dtype="int64")
    steps = emit.emit("Reshape", steps, shape=tuple(shape))
    shape = [1] * call.rank()
    shape[batch] = rows
    lengths = emit.emit("Reshape", emit.emit("Cast", lengths, to="int64"), shape=tuple(shape))
    mirrored = emit.emit("Sub", emit.emit("Sub", lengths, emit.constant(1, "int64")), steps)
    inside = emit.emit("Less", steps, lengths)
    index = emit.emit("Where", inside, mirrored, steps)
    index = emit.emit("Expand", index, shape=tuple(call.shape()))
    return emit.emit("GatherElements", x, index, axis=time)


def _resized(call: Call) -> tuple[Any, ...]:
    shape = list(call.shape())
    axes = call["axes"]
    chosen = tuple(range(len(shape))) if axes is None else normalise_axes(axes, len(shape))
    scales, sizes = call["scales"], call["sizes"]
    if sizes is not None and len(sizes):
        policy = call["keep_aspect_ratio_policy"] or "stretch"
        sizes = tuple(sizes)
        if policy != "stretch":
            pick = min if policy == "not_larger" else max
            scale = pick(size / shape[a] for a, size in zip(chosen, sizes, strict=True))
            sizes = tuple(int(scale * shape[a] + 0.5) for a in chosen)
        for axis, size in zip(chosen, sizes, strict=True):
            shape[axis] = size
    elif scales is not None and len(scales):
        for axis, scale in zip(chosen, scales, strict=True):
            shape[axis] = extents.scaled(shape[axis], scale)
    else:
        raise AttributeValueError("one of the operands 'scales' and 'sizes' is required")
    return tuple(shape)


def _resize(call: Call) -> list[TensorType]:
    return [(call.dtype(), _resized(call))]


def _prepare_resize(call: Call) -> dict[str, Any]:
    found = {
        name: call[name]
        for name in (
            "mode",
            "coordinate_transformation_mode",
            "nearest_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "antialias",
            "extrapolation_value",
        )
        if call[name] is not None
    }
    shape = call.shape()
    axes = call["axes"]
    found["axes"] = tuple(range(len(shape))) if axes is None else normalise_axes(axes, len(shape))
    if call["sizes"] is not None and len(call["sizes"]):
        result = _resized(call)
        found["sizes"] = tuple(result[a] for a in found["axes"])
        if (call["keep_aspect_ratio_policy"] or "stretch") != "stretch":
            pick = min if call["keep_aspect_ratio_policy"] == "not_larger" else max
            scale = pick(s / shape[a] for a, s in zip(found["axes"], call["sizes"], strict=True))
            found["scales"] = (scale,) * len(found["axes"])
    else:
        found["scales"] = tuple(call["scales"])
    if call["coordinate_transformation_mode"] == "tf_crop_and_resize" and call["roi"] is not None:
        found["roi"] = tuple(call["roi"])
    return found


SPECS = [
    operator(
        "Concat",
        "inputs*",
        "concat_result",
        _concat,
        {"axis": integer(required=True)},
        since_version=13,
        doc="The inputs one after the other along an axis.",
    ),
    operator(
        "Split",
        "input @split?",
        "outputs*",
        _split,
        {"num_outputs": integer(), "axis": integer(0)},
        since_version=18,
        prepare=_prepare_split,
        doc="The input cut into parts along an axis.",
    ),
    operator(
        "Slice",
        "data @starts @ends @axes? @steps?",
        "output",
        _slice,
        since_version=13,
        prepare=_prepare_slice,
        doc="Every step-th element from start to end of each named axis.",
    ),
    operator(
        "Pad",
        "data @pads @constant_value? @axes?",
        "output",
        _pad,
        {"mode": text("constant")},
        since_version=19,
        prepare=_prepare_pad,
        doc="Elements added (or, where negative, cut) at both ends.",
    ),
    operator(
        "Tile",
        "input @repeats",
        "output",
        _tile,
        since_version=13,
        prepare=_prepare_tile,
        doc="The input repeated along each axis.",
    ),
    operator(
        "Trilu",
        "input @k?",
        "output",
        _trilu,
        {"upper": integer(1)},
        since_version=14,
        prepare=_prepare_trilu,
        doc="The upper or lower triangle, zeros elsewhere.",
    ),
    operator(
        "DepthToSpace",
        "input",
        "output",
        _depth_to_space,
        {"mode": text("DCR"), "blocksize": integer(required=True)},
        since_version=13,
        doc="Channels moved into blocks of space.",
    ),
    operator(
        "SpaceToDepth",
        "input",
        "output",
        _space_to_depth,
        {"blocksize": integer(required=True)},
        since_version=13,
        doc="Blocks of space moved into channels.",
    ),
    operator(
        "ReverseSequence",
        "input sequence_lens",
        "Y",
        _reverse_sequence,
        {"batch_axis": integer(1), "time_axis": integer(0)},
        since_version=10,
        decompose=_emit_reverse_sequence,
        doc="The first n steps of each row reversed.",
    ),
    operator(
        "Resize",
        "X @roi? @scales? @sizes?",
        "Y",
        _resize,
        {
            "keep_aspect_ratio_policy": text("stretch"),
            "axes": integers(),
            "antialias": integer(0),
            "extrapolation_value": real(0.0),
            "exclude_outside": integer(0),
            "nearest_mode": text("round_prefer_floor"),
            "coordinate_transformation_mode": text("half_pixel"),
            "cubic_coeff_a": real(-0.75),
            "mode": text("nearest"),
        },
        since_version=19,
        prepare=_prepare_resize,
        determinism="Weights in a fixed order; exact.",
        doc="The input resampled to other sizes.",
    ),
]
