"""Losses in ONNX's form, written with elementary operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.reductions import ROWS
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, text


def _loss_type(call: Call) -> TensorType:
    shape = call.shape()
    if call["reduction"] not in ("none", "mean", "sum"):
        raise AttributeValueError(f"reduction must be none, mean or sum, not {call['reduction']!r}")
    if len(shape) < 2 or call.rank(1) != len(shape) - 1:
        raise ShapeError(
            f"scores (N, C, …) and targets (N, …) do not fit: {shape} and {call.shape(1)}"
        )
    for have, want in zip(call.shape(1), (shape[0], *shape[2:]), strict=True):
        extents.unify(have, want, "the extents of scores and targets")
    return (call.dtype(), tuple(call.shape(1)) if call["reduction"] == "none" else ())


def _nll(call: Call) -> list[TensorType]:
    return [_loss_type(call)]


def _cross_entropy(call: Call) -> list[TensorType]:
    return [_loss_type(call), (call.dtype(), call.shape())]


def _emit_nll(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    logp, target, weight = (*inputs, None)[:3]
    dtype = call.dtype()
    target = emit.emit("Cast", target, to="int64")
    ignore = call["ignore_index"]
    mask = None
    if ignore is not None:
        mask = emit.emit("Equal", target, emit.constant(ignore, "int64"))
        target = emit.emit("Where", mask, emit.constant(0, "int64"), target)
    picked = emit.emit("GatherElements", logp, emit.emit("Unsqueeze", target, axes=(1,)), axis=1)
    loss = emit.emit("Neg", emit.emit("Squeeze", picked, axes=(1,)))
    share = None
    if weight is not None:
        share = emit.emit("Gather", weight, target, axis=0)
    elif mask is not None:
        share = emit.emit("Expand", emit.constant(1, dtype), shape=tuple(call.shape(1)))
    if share is not None:
        if mask is not None:
            share = emit.emit("Where", mask, emit.constant(0, dtype), share)
        loss = emit.emit("Mul", loss, share)
    if call["reduction"] == "none":
        return loss
    if call["reduction"] == "sum" or share is not None:
        total = emit.emit("ReduceSum", loss, keepdims=0)
        if call["reduction"] == "sum" or share is None:
            return total
        return emit.emit("Div", total, emit.emit("ReduceSum", share, keepdims=0))
    return emit.emit("ReduceMean", loss, keepdims=0)


def _emit_cross_entropy(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    scores, *rest = inputs
    logp = emit.emit("LogSoftmax", scores, axis=1)
    attributes = {"reduction": call["reduction"]}
    if call["ignore_index"] is not None:
        attributes["ignore_index"] = call["ignore_index"]
    return emit.emit("NegativeLogLikelihoodLoss", logp, *rest, **attributes), logp


_LOSS = {"ignore_index": integer(), "reduction": text("mean")}
SPECS = [
    operator(
        "NegativeLogLikelihoodLoss",
        "input target weight?",
        "loss",
        _nll,
        _LOSS,
        since_version=13,
        decompose=_emit_nll,
        determinism=ROWS,
        doc="-weight[target] * input[target].",
    ),
    operator(
        "SoftmaxCrossEntropyLoss",
        "scores labels weights?",
        "output log_prob?",
        _cross_entropy,
        _LOSS,
        since_version=13,
        decompose=_emit_cross_entropy,
        determinism=ROWS,
        doc="The negative log likelihood of the softmax of the scores.",
    ),
]
