"""Reductions, arg-reductions, running sums and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.rules import OWN, operator, same
from onemodel_kernels.ops.spec import (
    Call,
    Emitter,
    TensorType,
    integer,
    integers,
    normalise_axes,
    normalise_axis,
)
from onemodel_kernels.ops.unary import ELEMENTARY

ROWS = "16 lanes in a fixed tree for each reduced row; exact."


def axes_of(call: Call) -> tuple[int, ...]:
    """The reduced axes of a call, non-negative and sorted; empty when nothing is reduced."""
    axes = call["axes"]
    if isinstance(axes, int):
        axes = (axes,)
    if not axes:
        return () if call["noop_with_empty_axes"] else tuple(range(call.rank()))
    return tuple(sorted(normalise_axes(axes, call.rank())))


def _reduced(call: Call, axes: Sequence[int], keep: bool) -> tuple[Any, ...]:
    shape = call.shape()
    if keep:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _reduce(call: Call) -> list[TensorType]:
    return [(call.dtype(), _reduced(call, axes_of(call), bool(call["keepdims"])))]


def _reduce_bool(call: Call) -> list[TensorType]:
    return [("bool", _reduce(call)[0][1])]


def _prepare(call: Call) -> dict[str, Any]:
    axes = call["axes"]
    if isinstance(axes, int):
        axes = (axes,)
    return {
        "axes": tuple(axes) if axes else None,
        "keepdims": int(call["keepdims"]),
        "noop_with_empty_axes": int(call["noop_with_empty_axes"] or 0),
    }


IDENTITIES = {
    "bool": (0, 1),
    **{f"uint{n}": (0, 2**n - 1) for n in (8, 16, 32, 64)},
    **{f"int{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
}
"""The least and the greatest number of the types that have no infinities."""


def _emit_extreme(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """The kernel, or its identity (the least or greatest number) where nothing is reduced."""
    shape = call.shape()
    if all(shape[axis] != 0 for axis in axes_of(call)):
        return emit.kernel(call.operator, inputs[0], **_prepare(call))
    low, high = IDENTITIES.get(call.dtype(), (float("-inf"), float("inf")))
    value = emit.constant(low if call.operator == "ReduceMax" else high, call.dtype())
    return emit.emit("Expand", value, shape=_reduce(call)[0][1])


def _arg(call: Call) -> list[TensorType]:
    axis = call.axis()
    if extents.is_static(call.shape()[axis]) and call.shape()[axis] == 0:
        raise ShapeError(f"axis {axis} is empty, so there is no element to choose")
    return [("int64", _reduced(call, (axis,), bool(call["keepdims"])))]


def _along(call: Call) -> list[TensorType]:
    call.axis()
    return same(call)


def scalar_operand(value: Any) -> Any:
    """The number in an operand that may be written as a 0-d or a one-element tensor."""
    return value[0] if isinstance(value, tuple) else value


def _running(call: Call) -> list[TensorType]:
    normalise_axis(scalar_operand(call.static("axis")), call.rank())
    return same(call)


def _prepare_running(call: Call) -> dict[str, Any]:
    return {
        "axis": scalar_operand(call["axis"]),
        "exclusive": call["exclusive"],
        "reverse": call["reverse"],
    }


def _emit_products(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """One product after the other along the axis."""
    x = inputs[0]
    axis = normalise_axis(scalar_operand(call.static("axis")), call.rank())
    extent = call.shape()[axis]
    if extent == 0:
        return emit.emit("Identity", x)
    parts = emit.emit("Split", x, axis=axis, split=(1,) * extent)
    parts = list(parts) if isinstance(parts, tuple) else [parts]
    if call["reverse"]:
        parts.reverse()
    if call["exclusive"]:
        one = emit.constant(1, call.dtype())
        first = emit.emit("Expand", one, shape=tuple(emit.type(parts[0])[1]))
        parts = [first, *parts[:-1]]
    for index in range(1, len(parts)):
        parts[index] = emit.emit("Mul", parts[index - 1], parts[index])
    if call["reverse"]:
        parts.reverse()
    return emit.emit("Concat", *parts, axis=axis)


def _sum_to(call: Call) -> list[TensorType]:
    target = tuple(call.static("shape"))
    if extents.broadcast_shapes(target, call.shape()) != tuple(call.shape()):
        raise ShapeError(
            f"{target} does not broadcast to {call.shape()}, so nothing can be summed back to it"
        )
    return [(call.dtype(), target)]


def _emit_hardmax(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    axis = call.axis()
    best = emit.emit("ArgMax", inputs[0], axis=axis, keepdims=0)
    dtype = call.dtype()
    return emit.emit(
        "OneHot", best, emit.constant([0, 1], dtype), depth=call.shape()[axis], axis=axis
    )


def _plain_axis(call: Call) -> dict[str, Any]:
    return {"axis": call["axis"]}


_REDUCTION = {"noop_with_empty_axes": integer(0), "keepdims": integer(1)}
_REDUCTIONS = {
    "ReduceSum": (13, "The sum; 0 for an empty one."),
    "ReduceMean": (18, "The sum over the number of elements; NaN for an empty one."),
    "ReduceMax": (20, "The greatest; NaN wins; the least number for an empty one."),
    "ReduceMin": (20, "The least; NaN wins; the greatest number for an empty one."),
    "ReduceProd": (18, "The product; 1 for an empty one."),
    "ReduceL1": (18, "The sum of absolute values."),
    "ReduceL2": (18, "The square root of the sum of squares."),
    "ReduceSumSquare": (18, "The sum of squares."),
    "ReduceLogSum": (18, "The logarithm of the sum."),
    "ReduceLogSumExp": (18, "The logarithm of the sum of e^x, shifted by the maximum."),
}
SPECS = [
    operator(
        n,
        "data @axes?",
        "reduced",
        _reduce,
        _REDUCTION,
        since_version=v,
        determinism=ROWS,
        doc=d,
        **(
            {"decompose": _emit_extreme}
            if n in ("ReduceMax", "ReduceMin")
            else {"prepare": _prepare}
        ),
    )
    for n, (v, d) in _REDUCTIONS.items()
]
SPECS += [
    operator(
        n, "data @axes?", "reduced", _reduce_bool, _REDUCTION, domain=OWN, prepare=_prepare, doc=d
    )
    for n, d in {"ReduceAny": "Whether one is true.", "ReduceAll": "Whether all are true."}.items()
]
_ARG = {"axis": integer(0), "keepdims": integer(1), "select_last_index": integer(0)}
SPECS += [
    operator(
        "ArgMax",
        "data",
        "reduced",
        _arg,
        _ARG,
        since_version=13,
        doc="The index of the greatest; the first of equal ones; NaN wins.",
    ),
    operator(
        "ArgMin",
        "data",
        "reduced",
        _arg,
        _ARG,
        since_version=13,
        doc="The index of the least; the first of equal ones; NaN wins.",
    ),
    operator(
        "CumSum",
        "x @axis",
        "y",
        _running,
        {"exclusive": integer(0), "reverse": integer(0)},
        since_version=14,
        prepare=_prepare_running,
        determinism="Added one after the other; exact.",
        doc="The running sum along an axis.",
    ),
    operator(
        "CumProd",
        "x @axis",
        "y",
        _running,
        {"exclusive": integer(0), "reverse": integer(0)},
        since_version=26,
        decompose=_emit_products,
        determinism="Multiplied one after the other; exact.",
        doc="The running product along an axis.",
    ),
    operator(
        "SumTo",
        "g",
        "y",
        _sum_to,
        {"shape": integers(required=True)},
        domain=OWN,
        determinism=ROWS,
        doc="The sum over the axes along which a shape was broadcast.",
    ),
    operator(
        "Softmax",
        "input",
        "output",
        _along,
        {"axis": integer(-1)},
        since_version=13,
        determinism=ELEMENTARY + " " + ROWS,
        doc="e^(x - max) / sum.",
    ),
    operator(
        "LogSoftmax",
        "input",
        "output",
        _along,
        {"axis": integer(-1)},
        since_version=13,
        determinism=ELEMENTARY + " " + ROWS,
        doc="x - max - ln(sum e^(x - max)).",
    ),
    operator(
        "Hardmax",
        "input",
        "output",
        _along,
        {"axis": integer(-1)},
        since_version=13,
        decompose=_emit_hardmax,
        doc="1 at the first greatest element of a row, 0 elsewhere.",
    ),
]
