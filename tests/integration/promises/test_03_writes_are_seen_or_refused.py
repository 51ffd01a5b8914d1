"""3. A write through a view is exact, or raises IN_PLACE_MUTATION before it happens."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_trace import TraceErrorKind, TraceException, Tracer

VIEWS: dict[str, Callable[[om.Tensor], om.Tensor]] = {
    "itself": lambda x: x,
    "slice": lambda x: x[:, 1:3],
    "stepped slice": lambda x: x[:, ::2],
    "select": lambda x: x[1],
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split(2, 1)[0],
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "reshape": lambda x: x.reshape(2, 2, 4),
    "view": lambda x: x.view(-1),
    "unbind": lambda x: x.unbind(0)[2],
    "diagonal": lambda x: x.diagonal(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "expand": lambda x: x[:, :1].expand(4, 4)[:, :1],
    "detach": lambda x: x.detach(),
}

WRITES: dict[str, Callable[[om.Tensor], object]] = {
    "fill_": lambda v: v.fill_(5.0),
    "zero_": lambda v: v.zero_(),
    "copy_": lambda v: v.copy_(om.ones(*v.shape)),
    "setitem": lambda v: v.__setitem__(0, 3.0),
    "setitem of all": lambda v: v.__setitem__(..., 3.0),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_is_refused_before_it_happens(view, write, example) -> None:
    x = example(4, 4)
    before = x.tolist()
    with Tracer.begin() as tracer:
        traced = tracer.input("x", x)
        target = VIEWS[view](traced)
        with pytest.raises(TraceException) as caught:
            WRITES[write](target)
        assert caught.value.kind is TraceErrorKind.IN_PLACE_MUTATION
    assert x.tolist() == before


@pytest.mark.parametrize("view", VIEWS)
def test_an_update_in_place_is_exact_or_refused(view, example) -> None:
    """``v += 1`` on a view of a live tensor: the tensor would change too, which no graph shows."""
    x = example(4, 4)

    def model(x: om.Tensor) -> om.Tensor:
        hidden = x * 2.0
        shown = VIEWS[view](hidden)
        shown += 1.0
        return hidden

    expected = model(x).numpy()
    try:
        with Tracer.begin() as tracer:
            traced = tracer.finish({"y": model(tracer.input("x", x))})
    except TraceException as error:
        assert error.kind is TraceErrorKind.IN_PLACE_MUTATION
    else:
        (y,) = Session(traced.graph).run({"x": x.numpy()})
        np.testing.assert_array_equal(y, expected)


def test_an_update_of_an_unshared_value_is_recorded(trace, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        hidden = x * 2.0
        hidden += 1.0
        hidden *= x
        return hidden

    x = example(4, 4)
    expected = model(x).numpy()
    (y,) = Session(trace(model, x).graph).run({"x": x.numpy()})
    np.testing.assert_array_equal(y, expected)


def test_a_constant_changed_during_the_trace_is_refused(example) -> None:
    constant = om.zeros(4)
    with Tracer.begin() as tracer:
        y = tracer.input("x", example(4, 4)) + constant
        constant.fill_(1.0)
        with pytest.raises(TraceException) as caught:
            tracer.finish({"y": y})
    assert caught.value.kind is TraceErrorKind.IN_PLACE_MUTATION
