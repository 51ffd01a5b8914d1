"""Normalisations whose ONNX form needs a scale, or a newer opset than the graph's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.ops import extents
from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded
from onemodel_trace.lowerings.wider import SINGLE, computed_in


def _filled(writer: GraphWriter, number: float, shape: Sequence[Any], like: GraphValue) -> Any:
    return writer.filled(number, shape, like.dtype)


def _batch(writer: GraphWriter, call: Recorded) -> Any:
    x, scale, bias, mean, variance = (*call.inputs, None, None, None, None)[:5]
    assert x is not None
    channels = (x.shape[1],)
    if mean is None or variance is None or call.get("training_mode"):
        raise TraceException(
            TraceErrorKind.UNSUPPORTED_OPERATION,
            "BatchNormalization: batch norm with the batch's own statistics (training mode, or "
            "track_running_stats=False) is not part of an inference graph; call eval() first",
        )
    scale = _filled(writer, 1.0, channels, x) if scale is None else scale
    bias = _filled(writer, 0.0, channels, x) if bias is None else bias
    return writer.emit(
        "BatchNormalization", x, scale, bias, mean, variance, epsilon=call["epsilon"]
    )


def _layer(writer: GraphWriter, call: Recorded) -> Any:
    x, scale, bias = call.value(), call.optional(1), call.optional(2)
    axis = call.get("axis", -1)
    if scale is None:
        scale = _filled(writer, 1.0, x.shape[axis:], x)
    return writer.emit("LayerNormalization", x, scale, bias, axis=axis, epsilon=call["epsilon"])


def _group(writer: GraphWriter, call: Recorded) -> Any:
    """GroupNormalization is deprecated in the opset's form: instances of (N, groups, rest)."""
    x, scale, bias = call.value(), call.optional(1), call.optional(2)
    groups, channels = call["num_groups"], x.shape[1]
    if type(channels) is not int:
        raise TraceException(
            TraceErrorKind.SYMBOLIC_SHAPE,
            f"GroupNormalization: the channels ({channels.text()}) are symbolic, but the groups are "
            f"{groups} fixed ones",
        )
    # Spelled out: of a -1, an example size that the groups divide would allow several readings.
    extent = extents.mul(channels // groups, extents.product(x.shape[2:]))
    rows = writer.reshape(x, (x.shape[0], groups, extent))
    ones = _filled(writer, 1.0, (groups,), x)
    zeros = _filled(writer, 0.0, (groups,), x)
    rows = writer.emit("InstanceNormalization", rows, ones, zeros, epsilon=call["epsilon"])
    y = writer.reshape(rows, x.shape)
    wide = (channels, *(1 for _ in x.shape[2:]))
    if scale is not None:
        y = writer.emit("Mul", y, writer.reshape(scale, wide))
    if bias is not None:
        y = writer.emit("Add", y, writer.reshape(bias, wide))
    return y


def _rms(writer: GraphWriter, call: Recorded) -> Any:
    """RMSNormalization came with opset 23."""
    x, scale = call.value(), call.optional(1)
    axis = call.get("axis", -1)
    axes = tuple(range(axis % x.rank, x.rank))
    mean = writer.emit("ReduceMean", writer.emit("Mul", x, x), axes=axes, keepdims=1)
    shifted = writer.emit("Add", mean, writer.scalar(call["epsilon"], x))
    y = writer.emit("Mul", x, writer.emit("Reciprocal", writer.emit("Sqrt", shifted)))
    return y if scale is None else writer.emit("Mul", y, scale)


LOWERINGS: dict[str, Lowering] = {
    "BatchNormalization": _batch,
    "LayerNormalization": _layer,
    "GroupNormalization": _group,
    "RMSNormalization": computed_in(SINGLE, _rms),
}
