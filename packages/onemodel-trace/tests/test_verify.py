"""verify: eager and session at fresh inputs and other sizes."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode
from onemodel_tensors import functional as F
from onemodel_trace import Axis, TraceException, Tracer


def test_it_runs_other_sizes_one_included(trace, example):
    traced = trace(lambda x: x * 2, example(3, 5), axes={"x": ("B", "T")})
    report = traced.verify()
    assert len(report.sizes) == 2
    assert report.sizes[0] == {"B": 1, "T": 1}
    assert all(entry["B"] != 3 and entry["T"] != 5 for entry in report.sizes)
    assert report.difference == 0.0
    assert len(traced.verify(5).sizes) == 5
    assert traced.verify([{"B": 9}]).sizes == ({"B": 9, "T": 5},)
    assert traced.verify(mode=ArithmeticMode.EXACT).difference == 0.0


def test_sizes_are_permitted_ones(trace, example):
    axis = Axis("T", minimum=4, maximum=12, multiple=4)
    traced = trace(lambda x: x * 2, example(8, 3), axes={"x": (axis, None)})
    assert [entry["T"] for entry in traced.verify(2).sizes] == [4, 12]


def test_it_names_output_axis_and_size(example):
    remembered = []

    def model(x):
        remembered.append(x.shape[0])
        return x * float(len(remembered))

    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 4), axis_names=("B", None))
        traced = tracer.finish({"scores": model(x)}, function=model)
    with pytest.raises(TraceException, match=r"B = 1: output 'scores': values differ"):
        traced.verify()

    with pytest.raises(
        TraceException, match=r"output 'scores', axis 0: eager gives 2, the graph 1"
    ):
        traced.verify(function=lambda x: om.cat([x, x], 0))
    with pytest.raises(TraceException, match="gives 2 outputs, the graph 1"):
        traced.verify(function=lambda x: (x, x))
    with pytest.raises(TraceException, match="eager gives int64"):
        traced.verify(function=lambda x: x.long())


def test_it_needs_a_function_and_known_axes(example):
    with Tracer.begin() as tracer:
        traced = tracer.finish({"y": tracer.input("x", example(3, 4)) * 2})
    with pytest.raises(TraceException, match="give function="):
        traced.verify()
    assert traced.verify(function=lambda x: x * 2).difference == 0.0
    with pytest.raises(TraceException, match="no symbolic axis 'B'"):
        traced.verify([{"B": 2}], function=lambda x: x * 2)


def test_integer_inputs_stay_in_the_range_of_the_example(trace, example):
    table = example(4, 2)
    traced = trace(
        lambda x: table[x], example(3, 5, dtype="int64", low=0, high=4), axes={"x": ("B", "T")}
    )
    traced.verify(4)


def test_sizes_that_the_model_cannot_take_are_passed_over(trace, example):
    traced = trace(lambda x: x.topk(4, 1).values, example(3, 9), axes={"x": (None, "T")})
    report = traced.verify()
    assert [entry["T"] for entry in report.sizes] == [4, 10]
    assert [entry["T"] for entry in report.refused] == [1, 2, 3]


def test_given_inputs(trace, example):
    traced = trace(lambda x: x * 2, example(3, 4), axes={"x": {0: "B"}})
    seen = []

    def inputs(sizes):
        seen.append(dict(sizes))
        return [np.ones((sizes["B"], 4), np.float32)]

    traced.verify(3, inputs=inputs)
    assert len(seen) == 3


def test_onnx_runtime_runs_the_written_file(trace, example):
    weight = example(6, 5)
    traced = trace(lambda x: F.linear(x, weight).softmax(-1), example(3, 5), axes={"x": {0: "B"}})
    report = traced.verify(3)
    assert report.peer is not None
    assert 0.0 <= report.peer < 1e-5
    assert traced.verify(peer=False).peer is None
    assert traced.verify([{"B": 0}]).peer is None


def test_a_kernel_that_onnx_runtime_lacks_is_no_difference(trace, example):
    traced = trace(lambda x: om.erf(x), example(3, 5, dtype="float64"), axes={"x": {0: "B"}})
    report = traced.verify()
    assert report.peer is None
    assert len(report.sizes) == 2


def test_a_difference_to_onnx_runtime_names_it(trace, example, monkeypatch):
    traced = trace(lambda x: x * 2, example(3, 5), axes={"x": {0: "B"}})

    def wrong(self, names, inputs, sizes):
        return [(inputs[0] * 3)._array]

    monkeypatch.setattr("onemodel_trace.peer.Peer.run", wrong)
    with pytest.raises(TraceException, match=r"B = 1: output 'out': .* eager and ONNX Runtime"):
        traced.verify()


def test_without_onnx_runtime_the_session_alone_is_compared(trace, example, monkeypatch):
    traced = trace(lambda x: x * 2, example(3, 5), axes={"x": {0: "B"}})
    monkeypatch.setattr("onemodel_trace.peer.find_spec", lambda name: None)
    assert traced.verify().peer is None
