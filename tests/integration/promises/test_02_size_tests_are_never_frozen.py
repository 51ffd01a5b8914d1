"""2. A test on a size holds over the declared range, or raises SYMBOLIC_SHAPE with the relation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_trace import TraceErrorKind

FROZEN: dict[str, Callable[[om.Tensor], object]] = {
    "greater": lambda x: x if x.shape[1] > 6 else -x,
    "remainder": lambda x: x if x.shape[1] % 2 else -x,
    "equal": lambda x: x if x.shape[1] == 7 else -x,
    "range": lambda x: om.stack([x[:, t] for t in range(x.shape[1])]),
    "list": lambda x: x * len([0] * x.shape[1]),
    "true division": lambda x: x * float(x.shape[1] / 2 > 3),
    "power": lambda x: x * float(x.shape[1] ** -0.5),
    "square root": lambda x: x * (1 / math.sqrt(x.shape[1])),
    "ceiling": lambda x: x * math.ceil(x.shape[1] / 2),
    "integer": lambda x: x * int(x.shape[1]),
    "float": lambda x: x * float(x.shape[1]),
    "fixed slice": lambda x: x[:, :5],
    "format": lambda x: x * len(f"{x.shape[1]:d}"),
    "minimum": lambda x: x[:, : min(x.shape[1], 5)],
}


@pytest.mark.parametrize("name", FROZEN)
def test_a_decision_on_a_size_is_refused(name, refused, example) -> None:
    text = refused(
        TraceErrorKind.SYMBOLIC_SHAPE, FROZEN[name], example(3, 7), axes={"x": (None, "width")}
    )
    assert "width" in text


def test_the_relation_is_in_the_message(refused, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        return x if x.shape[1] > 6 else -x

    text = refused(TraceErrorKind.SYMBOLIC_SHAPE, model, example(3, 7), axes={"x": {1: "width"}})
    assert "width > 6" in text


def test_what_holds_for_every_size_is_answered(trace, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        width = x.shape[1]
        doubled = om.cat([x, x], 1)
        if doubled.shape[1] == 2 * width and width >= 0 and doubled.shape[1] % 2 == 0:
            return doubled
        return x

    session = Session(trace(model, example(3, 7), axes={"x": {1: "width"}}).graph)
    for width in (1, 4, 9):
        x = np.arange(3 * width, dtype=np.float32).reshape(3, width)
        (y,) = session.run({"x": x})
        np.testing.assert_array_equal(y, np.concatenate([x, x], 1))


def test_a_size_used_as_a_value_follows_the_run(trace, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        return x.sum(1) / x.shape[1]

    session = Session(trace(model, example(3, 7), axes={"x": {1: "width"}}).graph)
    for width in (1, 4, 9):
        x = np.ones((3, width), np.float32)
        (y,) = session.run({"x": x})
        np.testing.assert_array_equal(y, np.ones(3, np.float32))


def test_a_size_used_as_a_size_follows_the_run(trace, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        batch, width = x.shape
        return om.zeros(batch, width).flatten() + x.reshape(batch * width)

    axes = {"x": ("batch", "width")}
    session = Session(trace(model, example(3, 7), axes=axes).graph)
    for shape in ((1, 1), (2, 9), (5, 4)):
        x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
        (y,) = session.run({"x": x})
        np.testing.assert_array_equal(y, x.ravel())
