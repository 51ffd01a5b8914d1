"""Indexing that ONNX writes with other operators."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.ops import extents
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded


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


LOWERINGS: dict[str, Lowering] = {"IndexAdd": _index_add, "TopK": _top_k}
