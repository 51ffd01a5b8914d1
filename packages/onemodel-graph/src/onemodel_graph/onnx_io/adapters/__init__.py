"""Nodes of older opsets, written as their present form: one function for each operator.

An adapter gets a :class:`Rewriter` and returns the nodes that take the place of the old one; it is
registered with the opset from which on it is no longer needed.
"""

from onemodel_graph.onnx_io.adapters import (
    attributes_to_inputs,
    control_flow,
    later,
    legacy,
    normalisation,
    quantisation,
    resampling,
    softmax,
)
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapt

__all__ = [
    "Rewriter",
    "adapt",
    "attributes_to_inputs",
    "control_flow",
    "later",
    "legacy",
    "normalisation",
    "quantisation",
    "resampling",
    "softmax",
]
