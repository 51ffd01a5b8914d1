"""Operators of one's own in a trace: a node of their domain, or what their lowering writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import register_function
from onemodel_kernels.errors import UsageError
from onemodel_kernels.extension import register
from onemodel_kernels.ops import InputSpec, OpSpec
from onemodel_tensors.extension import operator
from onemodel_trace import TracedModel, Tracer, lowerings


def _facts(name: str) -> OpSpec:
    return OpSpec(
        name,
        (InputSpec("x"),),
        (InputSpec("y"),),
        lambda call: [(call.dtype(), call.shape())],
        domain="test.trace",
    )


for _name in ("Kept", "Lowered", "KeptGrad"):
    register(_facts(_name), lambda x: x.numpy() * np.float32(2))


def _lower(writer: Any, call: Any) -> Any:
    return writer.emit("Add", call.value(), call.value())


lowerings.register("test.trace::Lowered", _lower)


def _traced(name: str) -> TracedModel:
    function = operator(f"test.trace::{name}")
    with Tracer.begin() as tracer:
        x = tracer.input("x", om.rand(3, 2), ("batch", None))
        return tracer.finish({"y": function(x)}, function)


@pytest.mark.parametrize("name", ["Kept", "KeptGrad"])
def test_an_operator_becomes_a_node_of_its_domain(name: str) -> None:
    traced = _traced(name)
    (node,) = traced.graph.nodes
    assert (node.domain, node.operator) == ("test.trace", name)
    assert traced.graph.outputs[0].shape == ("batch", 2)
    report = traced.verify()
    assert report.difference == 0.0
    assert report.peer is None


def test_a_function_lets_onnx_runtime_verify_it() -> None:
    pytest.importorskip("onnxruntime")
    register(_facts("Both"), lambda x: x.numpy() * np.float32(2))
    register_function(
        """<opset_import: ["": 20], domain: "test.trace"> Both (x) => (y) { y = Add(x, x) }"""
    )
    report = _traced("Both").verify()
    assert report.peer is not None
    assert report.peer < 1e-6


def test_a_lowering_writes_other_operators() -> None:
    traced = _traced("Lowered")
    assert [(node.domain, node.operator) for node in traced.graph.nodes] == [("", "Add")]
    assert traced.verify().difference == 0.0


def test_a_lowering_is_registered_once_and_only_for_an_own_operator() -> None:
    with pytest.raises(UsageError, match="has a lowering already"):
        lowerings.register("test.trace::Lowered", _lower)
    with pytest.raises(UsageError, match="the library's own"):
        lowerings.register("Relu", _lower)
