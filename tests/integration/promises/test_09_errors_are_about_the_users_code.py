"""9. The error is about the user's code: kind, operator, tensor name and shape, file:line."""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_trace import TraceErrorKind

CASES = {
    "item": (TraceErrorKind.DATA_DEPENDENT, lambda x: x.item(), "item"),
    "float": (TraceErrorKind.DATA_DEPENDENT, lambda x: float(x), "float"),
    "numpy": (TraceErrorKind.DATA_DEPENDENT, lambda x: x.numpy(), "numpy"),
    "fill_": (TraceErrorKind.IN_PLACE_MUTATION, lambda x: x.fill_(1.0), "fill_"),
    "zero_": (TraceErrorKind.IN_PLACE_MUTATION, lambda x: x.zero_(), "zero_"),
    "setitem": (TraceErrorKind.IN_PLACE_MUTATION, lambda x: x.__setitem__(0, 1.0), "setitem"),
}


@pytest.mark.parametrize("name", CASES)
def test_kind_operator_tensor_and_line_are_in_the_text(name, refused, example) -> None:
    kind, function, operator = CASES[name]
    text = refused(kind, function, example(1))
    assert kind.name in text
    assert operator in text
    assert "x" in text
    assert "float32" in text
    assert "(1,)" in text or "[1]" in text


def test_no_grad_is_refused_at_its_line(refused, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        with om.no_grad():
            return x * 2.0

    refused(TraceErrorKind.NO_GRAD_IN_TRACE, model, example(2))


def test_a_loss_is_refused_by_name(refused, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        return om.functional.nll_loss(x, om.tensor([0, 1]))

    text = refused(TraceErrorKind.UNSUPPORTED_OPERATION, model, example(2, 3))
    assert "nll" in text.lower()


def test_a_random_number_is_refused(refused, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        return x + om.rand(2)

    refused(TraceErrorKind.UNSUPPORTED_OPERATION, model, example(2))
