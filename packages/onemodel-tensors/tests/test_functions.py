"""Functions with a gradient of their own."""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_tensors.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        assert not om.is_grad_enabled()
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return 3 * ctx.scale * x * x * g, None


class SumAndSign(Function):
    @staticmethod
    def forward(a, b):
        return a + b, (a > b), a - b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.inputs = inputs
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, total, sign, difference):
        assert sign is None
        return total + difference, total - difference


def test_a_function_is_part_of_the_graph():
    x = om.randn(3, dtype="float64", requires_grad=True, generator=om.Generator(1))
    assert om.gradcheck(lambda t: Cube.apply(t.exp(), 2.0) * t, (x,))
    with om.no_grad():
        assert not Cube.apply(x, 2.0).requires_grad
    assert not Cube.apply(x.detach(), 2.0).requires_grad


def test_several_outputs_and_a_context_of_its_own():
    a = om.randn(2, 3, dtype="float64", requires_grad=True, generator=om.Generator(2))
    b = om.randn(2, 3, dtype="float64", requires_grad=True, generator=om.Generator(3))
    total, sign, difference = SumAndSign.apply(a, b)
    assert (sign.dtype, sign.requires_grad, total.requires_grad) == ("bool", False, True)
    assert om.gradcheck(lambda x, y: SumAndSign.apply(x, y)[0], (a, b))
    (total * 2 + difference * 3).sum().backward()
    assert a.grad.tolist() == [[5.0] * 3] * 2
    assert b.grad.tolist() == [[-1.0] * 3] * 2


def test_what_was_saved_is_checked():
    x = om.ones(2, requires_grad=True) * 1
    y = Cube.apply(x, 1.0)
    x.add_(1)
    with pytest.raises(om.OneModelError, match=r"backward of Cube.*written in place"):
        y.sum().backward()


def test_errors_name_the_function():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return Wrong.answer

    x = om.ones(2, requires_grad=True)
    Wrong.answer = om.ones(3)
    with pytest.raises(om.ShapeError, match=r"Wrong.backward: .*shape \(2,\), got \(3,\)"):
        Wrong.apply(x).sum().backward()
    Wrong.answer = om.ones(2, dtype="float64")
    with pytest.raises(om.DtypeError, match=r"Wrong\.backward: .*float32, got float64"):
        Wrong.apply(x).sum().backward()
    Wrong.answer = (None, om.ones(2))
    with pytest.raises(om.ShapeError, match="expected 1 gradients, one for each argument, got 2"):
        Wrong.apply(x).sum().backward()
    with pytest.raises(om.UnsupportedError, match="mark_dirty"):
        om.autograd.function.FunctionContext((True,)).mark_dirty(x)
    with pytest.raises(om.OneModelError, match="static forward"):
        Function.apply(x)


def test_a_gradient_that_the_user_keeps_is_not_written_into():
    class Kept(Function):
        gradient = om.ones(2)

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return Kept.gradient

    x = om.zeros(2, requires_grad=True)
    for _ in range(2):
        Kept.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert Kept.gradient.tolist() == [1.0, 1.0]


def test_outputs_without_a_gradient_come_as_zeros_or_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append(None if b is None else b.tolist())
            return a, None

    x = om.ones(1, requires_grad=True)
    for materialize in (True, False):
        Two.apply(x, materialize)[0].sum().backward()
    assert seen == [[0.0], None]
