"""Turn one eager run of a OneModel model into an ONNX graph with symbolic axes, or say why not.

>>> import onemodel_tensors as om
>>> from onemodel_trace import Tracer
>>> with Tracer.begin() as tracer:
...     x = tracer.input("x", om.zeros(2, 3), ("batch", None))
...     traced = tracer.finish({"y": x.exp().sum(1)})
>>> [node.operator for node in traced.graph.nodes]
['Exp', 'ReduceSum']
>>> traced.graph.outputs[0].shape
('batch',)
"""

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
