"""A float32 model in float64: onnx's reference evaluator on widened weights, inputs and casts.

The points where a model quantises stay: their codes are integers, their scales float64.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class DynamicQuantizeLinear(OpRun):
    """ONNX's definition, with a float64 scale."""

    def _run(self, x):
        low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
        scale = (high - low) / 255.0
        zero = np.clip(np.rint(-low / scale), 0.0, 255.0)
        codes = np.clip(np.rint(x / scale) + zero, 0.0, 255.0)
        return codes.astype(np.uint8), np.float64(scale), np.asarray(zero, np.uint8)


class DequantizeLinear(OpRun):
    """ONNX's definition for one scale of a tensor, in float64."""

    def _run(self, x, scale, zero=None, axis=None, block_size=None, output_dtype=None):
        if scale.size != 1:
            raise ValueError("DequantizeLinear: the oracle takes one scale for a tensor")
        start = 0.0 if zero is None else zero.astype(np.float64)
        return ((x.astype(np.float64) - start) * scale.astype(np.float64),)


def with_outputs(model: Any, names: list[str]) -> Any:
    """The model with more outputs, by the names of values."""
    changed = copy.deepcopy(model)
    known = {value.name for value in changed.graph.output}
    changed.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    return changed


def _wide(tensor: Any) -> Any:
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def _widen(graph: Any) -> None:
    for tensor in graph.initializer:
        tensor.CopyFrom(_wide(tensor))
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                attribute.t.CopyFrom(_wide(attribute.t))
            elif attribute.type == AttributeProto.GRAPH:
                _widen(attribute.g)
            elif (node.op_type, attribute.name, attribute.i) == ("Cast", "to", TensorProto.FLOAT):
                attribute.i = TensorProto.DOUBLE


def run(model: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a ``ModelProto`` by name, every float32 in float64."""
    wide = copy.deepcopy(model)
    _widen(wide.graph)
    evaluator = ReferenceEvaluator(wide, new_ops=[DynamicQuantizeLinear, DequantizeLinear])
    given = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in feeds.items()}
    with warnings.catch_warnings():
        # Logarithms of 0 and casts of what follows from them, which a Where drops.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = evaluator.run(None, given)
    return {value.name: made for value, made in zip(wide.graph.output, found, strict=True)}
