"""Operators of one's own on tensors: values, gradients, several outputs, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels import Array
from onemodel_kernels.errors import OneModelError, ShapeError, UnsupportedError, UsageError
from onemodel_kernels.extension import register
from onemodel_kernels.ops import Attribute, Call, Emitter, InputSpec, OpSpec, extents
from onemodel_tensors.extension import GradientCall, operator


def _same(call: Call) -> list[Any]:
    return [(call.dtype(), call.shape())]


def _cube(x: Array) -> Any:
    return x.numpy() ** 3


def _split(emit: Emitter, call: Call, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """The positive part, and the rest scaled, written with other operators."""
    positive = emit.emit("Relu", inputs[0])
    rest = emit.emit("Sub", inputs[0], positive)
    scale = emit.constant(call["scale"], call.dtype())
    return positive, emit.emit("Mul", rest, scale)


ONE = (InputSpec("x"),)
register(OpSpec("Cube", ONE, (InputSpec("y"),), _same, domain="test.tensors"), _cube)
register(
    OpSpec(
        "Parts",
        ONE,
        (InputSpec("positive"), InputSpec("negative")),
        lambda call: _same(call) * 2,
        {"scale": Attribute("float", 1.0)},
        domain="test.tensors",
        decompose=_split,
    )
)
register(
    OpSpec(
        "Flat",
        ONE,
        (InputSpec("y"),),
        lambda call: [(call.dtype(), (extents.product(call.shape()),))],
        domain="test.tensors",
        decompose=lambda emit, call, inputs: emit.emit("Reshape", inputs[0], shape=(-1,)),
    )
)

register(
    OpSpec(
        "Pooled",
        ONE,
        (InputSpec("y"),),
        lambda call: [(call.dtype(), (*call.shape()[:-1], call.shape()[-1] // 2))],
        domain="test.tensors",
        decompose=lambda emit, call, inputs: emit.emit(
            "MaxPool", inputs[0], kernel_shape=(2,), strides=(2,)
        )[0],
    )
)


def _cube_gradient(call: GradientCall, dy: om.Tensor) -> om.Tensor:
    return 3.0 * call.inputs[0].square() * dy


def _parts_gradient(
    call: GradientCall, dp: om.Tensor | None, dn: om.Tensor | None
) -> om.Tensor | None:
    x = call.inputs[0]
    zero = om.zeros_like(x)
    above = zero if dp is None else om.where(x > 0, dp, zero)
    below = zero if dn is None else om.where(x > 0, zero, dn * call.attributes["scale"])
    return above + below


cube = operator("test.tensors::Cube", _cube_gradient)
parts = operator("test.tensors::Parts", _parts_gradient)


def _leaf(*values: float) -> om.Tensor:
    return om.tensor(list(values), dtype="float64").requires_grad_()


def test_values_and_gradients() -> None:
    x = _leaf(-2.0, 0.5, 3.0)
    assert cube(x).tolist() == [-8.0, 0.125, 27.0]
    assert om.gradcheck(cube, (x,))
    assert om.gradcheck(lambda x: cube(x) * x, (x,))


def test_a_decomposition_computes_eagerly_with_several_outputs() -> None:
    x = _leaf(-2.0, 3.0)
    positive, negative = parts(x, scale=0.5)
    assert (positive.tolist(), negative.tolist()) == ([0.0, 3.0], [-1.0, 0.0])
    assert om.gradcheck(lambda x: parts(x, scale=0.5), (x,))
    parts(x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 0.0]


def test_a_decomposition_may_use_an_operator_that_asks_which_outputs_are_wanted() -> None:
    x = om.tensor([[[1.0, 4.0, 3.0, 2.0]]])
    assert operator("test.tensors::Pooled")(x).tolist() == [[[4.0, 3.0]]]


def test_a_gradient_that_is_the_operands_memory_is_not_summed_into() -> None:
    same = operator("test.tensors::Cube", lambda call, dy: call.inputs[0])
    x = _leaf(2.0)
    (same(x).sum() + same(x).sum()).backward()
    assert x.tolist() == [2.0]
    assert x.grad is not None
    assert x.grad.tolist() == [4.0]


def test_a_result_shares_no_memory_with_an_operand() -> None:
    flat = operator("test.tensors::Flat", lambda call, dy: dy.reshape(call.inputs[0].shape))
    x = om.ones(2, 3)
    flat(x).fill_(5.0)
    assert x.tolist() == [[1.0] * 3] * 2
    leaf = om.ones(2, 3, dtype="float64").requires_grad_()
    assert om.gradcheck(lambda x: flat(x).square(), (leaf,))


def test_a_write_into_an_operand_before_the_backward_pass_is_an_error() -> None:
    x = _leaf(1.0, 2.0)
    h = x * 1.0
    y = cube(h)
    h.add_(1.0)
    with pytest.raises(OneModelError, match=r"test\.tensors::Cube.*written in place"):
        y.sum().backward()


def test_missing_pieces_are_named() -> None:
    bare = operator("test.tensors::Cube")
    x = _leaf(2.0)
    assert bare(x).tolist() == [8.0]
    with pytest.raises(OneModelError, match=r"test\.tensors::Cube: it has no gradient"):
        bare(x).sum().backward()
    with pytest.raises(UnsupportedError, match=r"extension\.register"):
        operator("test.tensors::Nobody")
    with pytest.raises(UsageError, match="the library's own"):
        operator("Relu")


@pytest.mark.parametrize(
    ("gradient", "error", "message"),
    [
        (lambda call, dy: (dy, dy), UsageError, "expected 1 gradients"),
        (lambda call, dy: dy.sum(), ShapeError, r"expected float64 \(1,\) for input 0"),
        (lambda call, dy: dy.float(), ShapeError, "got float32"),
        (lambda call, dy: np.ones(1), UsageError, "expected a tensor or None"),
    ],
)
def test_gradients_of_another_form_are_refused(
    gradient: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        operator("test.tensors::Cube", gradient)(_leaf(2.0)).sum().backward()


def test_inputs_are_checked() -> None:
    with pytest.raises(UsageError, match="expected a tensor as input 'x'"):
        cube()
    with pytest.raises(UsageError, match="at most 1 inputs, got 2"):
        cube(_leaf(1.0), _leaf(1.0))
    with pytest.raises(UsageError, match="expected tensors, got float"):
        cube(1.0)  # type: ignore[arg-type]
