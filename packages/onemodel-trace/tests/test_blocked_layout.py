"""Blocked tensors in a trace: conversions of traced tensors are written, blocked constants are refused."""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_tensors.layouts import to_blocked
from onemodel_trace import TraceErrorKind, TraceException, Tracer

WEIGHT = om.randn(4, 5, 3, 3, generator=om.Generator(1))


def test_a_traced_tensor_may_change_its_layout(agree):
    def model(x):
        y = to_blocked(x)
        return F.relu(F.conv2d(y, WEIGHT, padding=1) * 2).to_plain()

    agree(model, om.randn(2, 5, 6, 7), axes={"x": ("batch", None, None, None)})


@pytest.mark.parametrize(
    ("operator", "function"),
    [
        ("add", lambda x, constant: to_blocked(x) + constant),
        ("conv2d", lambda x, constant: F.conv2d(constant, x)),
        ("maximum", lambda x, constant: constant.maximum(to_blocked(x))),
    ],
)
def test_a_blocked_constant_is_refused_by_name(operator, function):
    constant = to_blocked(om.randn(2, 5, 3, 3))
    with Tracer.begin() as tracer:
        x = tracer.input("x", om.randn(2, 5, 3, 3))
        with pytest.raises(
            TraceException, match=rf"{operator}.*blocked layout.*to_plain"
        ) as caught:
            function(x, constant)
    assert caught.value.kind is TraceErrorKind.UNSUPPORTED_OPERATION


def test_a_blocked_constant_alone_runs_eagerly():
    constant = to_blocked(om.ones(1, 5, 3, 3))
    with Tracer.begin() as tracer:
        x = tracer.input("x", om.randn(2, 5, 3, 3))
        traced = tracer.finish({"y": x + F.relu(constant).to_plain()})
    assert [node.operator for node in traced.graph.nodes] == ["Add"]
