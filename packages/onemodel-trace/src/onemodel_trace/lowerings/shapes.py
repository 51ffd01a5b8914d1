"""Operators on shapes: where nothing changes, the result is an alias and no node is written."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import ops
from onemodel_kernels.ops import extents
from onemodel_trace.extents import SymbolicShapeError, expression_of
from onemodel_trace.extents import expression as algebra
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded


def _reshape(writer: GraphWriter, call: Recorded) -> GraphValue:
    return writer.reshape(call.value(), call["shape"])


def _expand(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    target = tuple(call["shape"])
    if target == x.shape:
        return x
    return writer.emit("Expand", x, shape=target)


def _transpose(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    order = tuple(call["perm"])
    if order == tuple(range(x.rank)):
        return x
    return writer.emit("Transpose", x, perm=order)


def _slice(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    spec = ops.get("Slice")
    ((_, shape),) = spec.infer([x.shape], [x.dtype], call.attributes)
    steps = call.get("steps")
    forward = steps is None or all(step == 1 for step in steps)
    if forward and shape == x.shape:
        return x
    return writer.emit_spec(spec, [x], call.attributes, 1)[0]


def _split(writer: GraphWriter, call: Recorded) -> Any:
    for size in call["split"]:
        if type(size) is not int and not writer.scope.at_least(size.expression, 0):
            writer.scope.assume(">=", size.expression, algebra.constant(0), "a part of a split")
    return tuple(writer.emit_many("Split", call.outputs, call.value(), **call.attributes))


def _tile(writer: GraphWriter, call: Recorded) -> GraphValue:
    x = call.value()
    if all(type(count) is int and count == 1 for count in call["repeats"]):
        return x
    return writer.emit("Tile", x, repeats=call["repeats"])


def _select(writer: GraphWriter, call: Recorded) -> GraphValue:
    """One position of an axis; it must exist at every size."""
    x, axis, index = call.value(), call["axis"], call["index"]
    size = x.shape[axis]
    if type(size) is not int or type(index) is not int:
        _check_position(writer, size, index)
    position = writer.sizes.scalar(index)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return writer.node("Gather", [x, position], (x.dtype, rest), {"axis": axis})


def _check_position(writer: GraphWriter, size: Any, index: Any) -> None:
    scope = writer.scope
    whole, position = expression_of(size), expression_of(index)
    inside = scope.at_least(position, 0) and scope.at_least(algebra.subtract(whole, position), 1)
    counted = not inside and (
        scope.at_most(position, -1) and scope.at_least(algebra.add(whole, position), 0)
    )
    if not inside and not counted:
        raise SymbolicShapeError(
            f"Select: position {position.text()} of an axis of {whole.text()} does not exist for every "
            "permitted size; take 0 or -1, or declare the axis's minimum"
        )


def _diagonal(writer: GraphWriter, call: Recorded) -> Any:
    """The elements (i, i + offset) of two axes: positions from a Range, picked by GatherND."""
    x, offset = call.value(), call["offset"]
    rows, columns = call["dim1"], call["dim2"]
    rest = tuple(axis for axis in range(x.rank) if axis not in (rows, columns))
    row_first, column_first = max(0, -offset), max(0, offset)
    height = extents.sub(x.shape[rows], row_first)
    width = extents.sub(x.shape[columns], column_first)
    if type(height) is int and type(width) is int:
        length: Any = max(0, min(height, width))
    elif height == width:
        length = height
    else:
        raise SymbolicShapeError(
            f"Diagonal: a diagonal of axes of {x.shape[rows]!r} and {x.shape[columns]!r} with offset "
            f"{offset} has a length that is not one formula; cut the longer axis first"
        )
    steps = writer.emit("Range", start=0, limit=length, delta=1, dtype="int64")

    def along(first: int) -> Any:
        moved = writer.emit("Add", steps, writer.constants.integers(first)) if first else steps
        return writer.emit("Unsqueeze", moved, axes=(-1,))

    positions = writer.emit("Concat", along(row_first), along(column_first), axis=1)
    front = writer.emit("Transpose", x, perm=(rows, columns, *rest))
    picked = writer.emit("GatherND", front, positions, batch_dims=0)
    if not rest:
        return picked
    return writer.emit("Transpose", picked, perm=(*range(1, x.rank - 1), 0))


def _pad(writer: GraphWriter, call: Recorded) -> Any:
    x, mode = call.value(), call["mode"]
    pads, axes = tuple(call["pads"]), call.get("axes") or tuple(range(x.rank))
    if all(amount == 0 for amount in pads):
        return x
    for position, axis in enumerate(axes):
        size = x.shape[axis]
        if type(size) is int:
            continue
        amounts = (pads[position], pads[position + len(axes)])
        reach = max(amounts)
        needed = max(0, *(-amount for amount in amounts), -sum(amounts))
        if reach > 0 and mode != "constant":
            # Reflection repeats other elements than the edge, so one more is needed.
            needed = max(needed, {"reflect": reach + 1, "wrap": reach}.get(mode, 1))
        if not writer.scope.at_least(size.expression, needed):
            writer.scope.assume(
                ">=", size.expression, algebra.constant(needed), f"{mode} padding by {amounts}"
            )
    value = call.get("value") if mode == "constant" else None
    # Every axis is written: some consumers move transposes across a Pad and forget that it has axes.
    whole = [0] * (2 * x.rank)
    for position, axis in enumerate(axes):
        whole[axis] = pads[position]
        whole[x.rank + axis] = pads[position + len(axes)]
    return writer.emit("Pad", x, pads=tuple(whole), mode=mode, constant_value=value)


LOWERINGS: dict[str, Lowering] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "Transpose": _transpose,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Select": _select,
    "Diagonal": _diagonal,
    "Pad": _pad,
}
