"""Indexing that ONNX writes with other operators."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.ops import extents
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded
from onemodel_trace.lowerings.wider import as_it_is, computed_in


def _index_add(writer: GraphWriter, call: Recorded) -> Any:
    """ScatterND adds along the first axis; another axis is brought to the front and back."""
    x, index, source = call.value(0), call.value(1), call.value(2)
    axis = call.get("axis", 0) % x.rank
    for place, (have, wanted) in enumerate(zip(source.shape, x.shape, strict=True)):
        count = index.shape[0] if place == axis else wanted
        extents.unify(
            have, count, f"the extents of axis {place} of the source and the input or index"
        )
    order = (axis, *(a for a in range(x.rank) if a != axis))
    back = tuple(order.index(a) for a in range(x.rank))
    if axis:
        x = writer.emit("Transpose", x, perm=order)
        source = writer.emit("Transpose", source, perm=order)
    positions = writer.emit("Unsqueeze", index, axes=(-1,))
    y = writer.emit("ScatterND", x, positions, source, reduction="add")
    return writer.emit("Transpose", y, perm=back) if axis else y


def _top_k(writer: GraphWriter, call: Recorded) -> Any:
    attributes = {name: call[name] for name in ("axis", "largest", "sorted")}
    count = call["k"]
    return writer.emit_many("TopK", 2, call.value(), K=(count,), **attributes)


def _one_hot(writer: GraphWriter, call: Recorded) -> Any:
    """A single index is written as a list of one: ONNX Runtime wants an axis."""
    indices = call.value()
    if indices.rank:
        return as_it_is(writer, call)
    listed = writer.emit("Unsqueeze", indices, axes=(0,))
    inputs = [listed, *call.inputs[1:]]
    attributes = {**call.attributes, "axis": -1}
    (y,) = as_it_is(writer, Recorded(call.operator, inputs, attributes, 1))
    return writer.emit("Squeeze", y, axes=(0,))


LOWERINGS: dict[str, Lowering] = {
    "IndexAdd": _index_add,
    "TopK": computed_in({"bool": "int32"}, _top_k),
    "OneHot": _one_hot,
}
