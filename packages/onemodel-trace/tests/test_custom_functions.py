"""Functions with a gradient of their own have no form in a graph."""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_trace import TraceErrorKind, TraceException, Tracer


class Double(om.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_traced_argument_is_refused_and_a_constant_is_not():
    with Tracer.begin() as tracer:
        x = tracer.input("x", om.ones(3))
        constant = Double.apply(om.ones(3))
        with pytest.raises(TraceException, match=r"Double.*custom autograd function") as caught:
            Double.apply(x)
        assert constant.tolist() == [2.0, 2.0, 2.0]
    assert caught.value.kind is TraceErrorKind.UNSUPPORTED_OPERATION
