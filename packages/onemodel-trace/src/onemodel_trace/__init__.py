"""Turn one eager run of a OneModel model into an ONNX graph with symbolic axes, or say why not."""

import onemodel_trace._interfaces  # noqa: F401
from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.extents import Axis, Extent, Guard
from onemodel_trace.traced_model import TracedModel
from onemodel_trace.tracer import Tracer

INTERFACE_VERSION = (1, 0)

__all__ = [
    "INTERFACE_VERSION",
    "Axis",
    "Extent",
    "Guard",
    "TraceErrorKind",
    "TraceException",
    "TracedModel",
    "Tracer",
]
