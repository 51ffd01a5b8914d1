"""Operators on shapes, and those that make tensors from sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.reductions import scalar_operand
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import (
    Attribute,
    Call,
    Emitter,
    TensorType,
    dtype_name,
    integer,
    integers,
    normalise_axes,
    normalise_axis,
)


def _reshape(call: Call) -> list[TensorType]:
    target = tuple(call.static("shape"))
    return [(call.dtype(), extents.reshape(call.shape(), target, bool(call["allowzero"])))]


def _squeeze(call: Call) -> list[TensorType]:
    shape = call.shape()
    axes = call["axes"]
    if axes is None:
        gone = {a for a, extent in enumerate(shape) if extents.is_static(extent) and extent == 1}
    else:
        gone = set(normalise_axes((axes,) if isinstance(axes, int) else axes, len(shape)))
        for axis in sorted(gone):
            extents.unify(shape[axis], 1, f"the extent of the squeezed axis {axis} and 1")
    return [(call.dtype(), tuple(extent for a, extent in enumerate(shape) if a not in gone))]


def _unsqueeze(call: Call) -> list[TensorType]:
    axes = call.static("axes")
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    rank = call.rank() + len(axes)
    new = set(normalise_axes(axes, rank))
    rest = iter(call.shape())
    return [(call.dtype(), tuple(1 if axis in new else next(rest) for axis in range(rank)))]


def _flatten(call: Call) -> list[TensorType]:
    rank = call.rank()
    axis = call["axis"]
    if not -rank <= axis <= rank:
        raise ShapeError(
            f"axis {axis} is out of range for {rank} axes (allowed: {-rank} to {rank})"
        )
    axis += rank if axis < 0 else 0
    shape = call.shape()
    return [(call.dtype(), (extents.product(shape[:axis]), extents.product(shape[axis:])))]


def _shape(call: Call) -> list[TensorType]:
    start, end = shape_range(call)
    return [("int64", (max(0, end - start),))]


def shape_range(call: Call) -> tuple[int, int]:
    """The axes ``start … end-1`` that a Shape node reads."""
    rank = call.rank()
    start, end = call["start"] or 0, call["end"]
    end = rank if end is None else end
    start += rank if start < 0 else 0
    end += rank if end < 0 else 0
    return min(max(start, 0), rank), min(max(end, 0), rank)


def _size(call: Call) -> list[TensorType]:
    return [("int64", ())]


def _expand(call: Call) -> list[TensorType]:
    target = call.static("shape")
    target = (target,) if isinstance(target, int) else tuple(target)
    return [(call.dtype(), extents.broadcast_shapes(call.shape(), target))]


def _prepare_expand(call: Call) -> dict[str, Any]:
    return {"shape": _expand(call)[0][1]}


def _transpose(call: Call) -> list[TensorType]:
    shape = call.shape()
    perm = permutation(call)
    return [(call.dtype(), tuple(shape[axis] for axis in perm))]


def permutation(call: Call) -> tuple[int, ...]:
    """The permutation of a Transpose; by default the axes reversed."""
    rank = call.rank()
    perm = call["perm"]
    if perm is None:
        return tuple(reversed(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise ShapeError(f"perm {tuple(perm)} must be a permutation of the axes 0 to {rank - 1}")
    return tuple(perm)


def _prepare_transpose(call: Call) -> dict[str, Any]:
    return {"perm": permutation(call)}


def _constant(call: Call) -> list[TensorType]:
    value = call["value"]
    if value is None:
        raise AttributeValueError("the attribute 'value' is required")
    return [(value.dtype, tuple(value.shape))]


def _filled(call: Call) -> list[TensorType]:
    target = call.static("shape" if "shape" in call.attributes else "input")
    value = call["value"]
    return [("float32" if value is None else value.dtype, tuple(target))]


def _emit_filled(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    value = call["value"]
    dtype, number = ("float32", 0.0) if value is None else (value.dtype, value.reshape(()).item())
    return emit.emit("Expand", emit.constant(number, dtype), shape=tuple(call.static("input")))


def _eye_like(call: Call) -> list[TensorType]:
    if call.rank() != 2:
        raise ShapeError(f"the input must have 2 axes, but its shape is {call.shape()}")
    return [(call["dtype"] or call.dtype(), call.shape())]


def _prepare_eye(call: Call) -> dict[str, Any]:
    return {"dtype": call["dtype"] or call.dtype(), "k": call["k"], "shape": tuple(call.shape())}


def _range(call: Call) -> list[TensorType]:
    start, limit, delta = (
        scalar_operand(call.static(name)) for name in ("start", "limit", "delta")
    )
    return [(call["dtype"] or "int64", (extents.range_length(start, limit, delta),))]


def _prepare_range(call: Call) -> dict[str, Any]:
    found = {name: scalar_operand(call[name]) for name in ("start", "limit", "delta")}
    return {**found, "dtype": call["dtype"] or "int64"}


def _center_crop_pad(call: Call) -> list[TensorType]:
    axes = call["axes"]
    axes = range(call.rank()) if axes is None else normalise_axes(axes, call.rank())
    shape = list(call.shape())
    for axis, extent in zip(axes, call.static("shape"), strict=True):
        shape[axis] = extent
    return [(call.dtype(), tuple(shape))]


def _emit_center_crop_pad(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    (x,) = inputs[:1]
    rank = call.rank()
    axes = call["axes"]
    axes = range(rank) if axes is None else normalise_axes(axes, rank)
    target = list(call.shape())
    for axis, extent in zip(axes, call.static("shape"), strict=True):
        target[axis] = extent
    starts, ends, pads_begin, pads_end = [], [], [], []
    for have, want in zip(call.shape(), target, strict=True):
        cut = max(have - want, 0)
        fill = max(want - have, 0)
        starts.append(cut // 2)
        ends.append(cut // 2 + min(have, want))
        pads_begin.append(fill // 2)
        pads_end.append(fill - fill // 2)
    every = tuple(range(rank))
    x = emit.emit("Slice", x, starts=tuple(starts), ends=tuple(ends), axes=every, steps=(1,) * rank)
    return emit.emit("Pad", x, pads=tuple(pads_begin + pads_end), mode="constant")


SPECS = [
    operator(
        "Reshape",
        "data @shape",
        "reshaped",
        _reshape,
        {"allowzero": integer(0)},
        since_version=19,
        in_shape=True,
        doc="The same elements in another shape.",
    ),
    operator(
        "Squeeze",
        "data @axes?",
        "squeezed",
        _squeeze,
        since_version=13,
        in_shape=True,
        doc="Axes of extent 1 removed.",
    ),
    operator(
        "Unsqueeze",
        "data @axes",
        "expanded",
        _unsqueeze,
        since_version=13,
        in_shape=True,
        doc="Axes of extent 1 inserted.",
    ),
    operator(
        "Flatten",
        "input",
        "output",
        _flatten,
        {"axis": integer(1)},
        since_version=13,
        in_shape=True,
        doc="Two axes: the product of those before `axis` and of the rest.",
    ),
    operator(
        "Shape",
        "data",
        "shape",
        _shape,
        {"end": integer(), "start": integer(0)},
        since_version=19,
        kernel=None,
        doc="The extents of the input.",
    ),
    operator(
        "Size", "data", "size", _size, since_version=19, kernel=None, doc="The number of elements."
    ),
    operator(
        "Expand",
        "input @shape",
        "output",
        _expand,
        since_version=13,
        prepare=_prepare_expand,
        doc="The input broadcast with a shape.",
    ),
    operator(
        "Transpose",
        "data",
        "transposed",
        _transpose,
        {"perm": integers()},
        since_version=13,
        prepare=_prepare_transpose,
        doc="The axes in another order.",
    ),
    operator(
        "Constant",
        "",
        "output",
        _constant,
        {
            "value": Attribute("tensor"),
            "value_float": Attribute("float"),
            "value_floats": Attribute("floats"),
            "value_int": Attribute("int"),
            "value_ints": Attribute("ints"),
            "value_string": Attribute("string"),
            "value_strings": Attribute("strings"),
            "sparse_value": Attribute("tensor"),
        },
        since_version=19,
        kernel=None,
        doc="A constant.",
    ),
    operator(
        "ConstantOfShape",
        "@input",
        "output",
        _filled,
        {"value": Attribute("tensor")},
        since_version=20,
        decompose=_emit_filled,
        doc="One number in every place of a shape.",
    ),
    operator(
        "EyeLike",
        "input",
        "output",
        _eye_like,
        {"dtype": dtype_name(), "k": integer(0)},
        since_version=9,
        prepare=_prepare_eye,
        doc="1 on a diagonal, 0 elsewhere.",
    ),
    operator(
        "Range",
        "@start @limit @delta",
        "output",
        _range,
        {"dtype": dtype_name(), "stash_type": integer(1)},
        since_version=11,
        prepare=_prepare_range,
        doc="start, start + delta, … below limit; element i is start + i*delta.",
    ),
    operator(
        "CenterCropPad",
        "input_data @shape",
        "output_data",
        _center_crop_pad,
        {"axes": integers()},
        since_version=18,
        decompose=_emit_center_crop_pad,
        doc="Cropped or zero-padded about the middle.",
    ),
]
__all__ = ["SPECS", "normalise_axis", "permutation", "shape_range"]
