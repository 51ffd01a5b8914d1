"""Operators that choose or place elements by index or by value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.reductions import scalar_operand
from onemodel_kernels.ops.rules import OWN, chosen, operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, normalise_axis, text

IN_ORDER = "Duplicates are combined in index order; exact."


def _indices(call: Call, at: int = 1) -> None:
    if call.dtype(at) not in ("int32", "int64"):
        raise DtypeError(f"indices must be int32 or int64, but they are {call.dtype(at)}")


def _gather(call: Call) -> list[TensorType]:
    _indices(call)
    axis = call.axis()
    shape = call.shape()
    return [(call.dtype(), (*shape[:axis], *call.shape(1), *shape[axis + 1 :]))]


def _gather_elements(call: Call) -> list[TensorType]:
    _indices(call)
    call.axis()
    if call.rank(1) != call.rank():
        raise ShapeError(
            f"data {call.shape()} and indices {call.shape(1)} must have the same number of axes"
        )
    return [(call.dtype(), call.shape(1))]


def _gather_nd(call: Call) -> list[TensorType]:
    _indices(call)
    batch = call["batch_dims"]
    last = call.shape(1)[-1]
    if not extents.is_static(last):
        raise ShapeError("the last axis of the indices must be static")
    if batch + last > call.rank():
        raise ShapeError(f"indices {call.shape(1)} name more axes than data {call.shape()} has")
    return [(call.dtype(), (*call.shape(1)[:-1], *call.shape()[batch + last :]))]


def _scatter(call: Call) -> list[TensorType]:
    _indices(call)
    call.agree(0, 2)
    if call.attributes.get("axis") is not None:
        call.axis()
    return [(call.dtype(), call.shape())]


def _index_add(call: Call) -> list[TensorType]:
    _indices(call)
    call.axis()
    return [(call.agree(0, 2), call.shape())]


def _one_hot(call: Call) -> list[TensorType]:
    rank = call.rank() + 1
    axis = normalise_axis(call["axis"], rank)
    depth = scalar_operand(call.static("depth"))
    depth = int(depth) if isinstance(depth, float) else depth
    shape = call.shape()
    return [(call.dtype(1), (*shape[:axis], depth, *shape[axis:]))]


def _prepare_one_hot(call: Call) -> dict[str, Any]:
    return {"axis": call["axis"], "depth": int(scalar_operand(call["depth"]))}


def _top_k(call: Call) -> list[TensorType]:
    axis = call.axis()
    shape = call.shape()
    k = scalar_operand(call.static("K"))
    if extents.is_static(k) and extents.is_static(shape[axis]) and not 0 <= k <= shape[axis]:
        raise ShapeError(f"K {k} must be between 0 and the extent {shape[axis]} of axis {axis}")
    result = (*shape[:axis], k, *shape[axis + 1 :])
    return [(call.dtype(), result), ("int64", result)]


def _prepare_top_k(call: Call) -> dict[str, Any]:
    k = scalar_operand(call["K"])
    return {"axis": call["axis"], "k": k, "largest": call["largest"], "sorted": call["sorted"]}


def _non_zero(call: Call) -> list[TensorType]:
    return [("int64", (max(call.rank(), 1), None))]


def _compress(call: Call) -> list[TensorType]:
    if call.dtype(1) != "bool":
        raise DtypeError(f"the condition must be bool, but it is {call.dtype(1)}")
    if call["axis"] is None:
        return [(call.dtype(), (None,))]
    axis = call.axis()
    shape = call.shape()
    return [(call.dtype(), (*shape[:axis], None, *shape[axis + 1 :]))]


def _unique(call: Call) -> list[TensorType]:
    shape: tuple[Any, ...] = (None,)
    if call["axis"] is not None:
        axis = call.axis()
        shape = (*call.shape()[:axis], None, *call.shape()[axis + 1 :])
    return [(call.dtype(), shape)] + [("int64", (None,))] * 3


def _emit_scatter(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    return emit.emit("ScatterElements", *inputs, axis=call["axis"], reduction="none")


SPECS = [
    operator(
        "Gather",
        "data indices",
        "output",
        _gather,
        {"axis": integer(0)},
        since_version=13,
        doc="data[…, indices, …]; negative indices count from the end; outside ones are an error.",
    ),
    operator(
        "GatherElements",
        "data indices",
        "output",
        _gather_elements,
        {"axis": integer(0)},
        since_version=13,
        doc="One element for each index, from its own place in the other axes.",
    ),
    operator(
        "GatherND",
        "data indices",
        "output",
        _gather_nd,
        {"batch_dims": integer(0)},
        since_version=13,
        doc="A slice of data for each index tuple.",
    ),
    operator(
        "ScatterElements",
        "data indices updates",
        "output",
        _scatter,
        {"reduction": text("none"), "axis": integer(0)},
        since_version=18,
        determinism=IN_ORDER,
        doc="Data with updates placed at (or combined into) indices along an axis.",
    ),
    operator(
        "Scatter",
        "data indices updates",
        "output",
        _scatter,
        {"axis": integer(0)},
        since_version=9,
        decompose=_emit_scatter,
        doc="The old name of ScatterElements.",
    ),
    operator(
        "ScatterND",
        "data indices updates",
        "output",
        _scatter,
        {"reduction": text("none")},
        since_version=18,
        determinism=IN_ORDER,
        doc="Data with slices placed at index tuples.",
    ),
    operator(
        "IndexAdd",
        "x index src",
        "y",
        _index_add,
        {"axis": integer(0)},
        domain=OWN,
        determinism=IN_ORDER,
        doc="x with the slices of src added at index.",
    ),
    operator(
        "OneHot",
        "indices @depth values",
        "output",
        _one_hot,
        {"axis": integer(-1)},
        since_version=11,
        prepare=_prepare_one_hot,
        doc="values[1] at the index, values[0] elsewhere.",
    ),
    operator(
        "TopK",
        "X @K",
        "Values Indices",
        _top_k,
        {"sorted": integer(1), "largest": integer(1), "axis": integer(-1)},
        since_version=11,
        prepare=_prepare_top_k,
        doc="The K greatest (least) of each row; equal ones by lowest index.",
    ),
    operator(
        "NonZero",
        "X",
        "Y",
        _non_zero,
        since_version=13,
        data_dependent=True,
        doc="The indices of the elements that are not 0, one column each.",
    ),
    operator(
        "Compress",
        "input condition",
        "output",
        _compress,
        {"axis": integer()},
        since_version=11,
        data_dependent=True,
        prepare=chosen("axis"),
        doc="The slices where the condition holds.",
    ),
    operator(
        "Unique",
        "X",
        "Y indices? inverse_indices? counts?",
        _unique,
        {"axis": integer(), "sorted": integer(1)},
        since_version=11,
        data_dependent=True,
        doc="The distinct elements (or slices), where they were first, and how often.",
    ),
]
