"""NaN, infinities, zeros, ties, empty tensors and integers at their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import OneModelError, ShapeError
from onemodel_tensors import functional as F

NAN, INF = math.nan, math.inf


def same(got, expected):
    np.testing.assert_array_equal(got.numpy(), np.asarray(expected, dtype=got.numpy().dtype))


def test_nan_goes_through_extrema_clips_and_pools():
    x = om.tensor([1.0, NAN, 3.0])
    for got in (x.max(), x.min(), x.amax(0), x.amin(0), x.max(0).values):
        assert math.isnan(got.item())
    assert x.argmax().item() == x.argmin().item() == 1
    same(om.maximum(x, om.tensor(2.0)), [2, NAN, 3])
    same(om.minimum(om.tensor(2.0), x), [1, NAN, 2])
    same(x.clamp(0, 2), [1, NAN, 2])
    same(x.clamp(min=2), [2, NAN, 3])
    same(F.relu(x), [1, NAN, 3])
    same(F.relu6(x), [1, NAN, 3])
    assert math.isnan(F.max_pool1d(x.reshape(1, 1, 3), 3).item())
    assert math.isnan(x.sum().item())
    same(x.sort().values, [1, 3, NAN])
    same(om.fmax(x, om.tensor(2.0)), [2, 2, 3])
    same(om.nan_to_num(om.tensor([NAN, INF, -INF]), 1.0, 2.0, 3.0), [1, 2, 3])


def test_tests_for_special_values():
    x = om.tensor([1.0, NAN, INF, -INF])
    assert x.isnan().tolist() == [False, True, False, False]
    assert x.isinf().tolist() == [False, False, True, True]
    assert x.isfinite().tolist() == [True, False, False, False]
    assert om.tensor([1]).isnan().tolist() == [False]
    assert (x == x).tolist() == [True, False, True, True]
    assert (x != x).tolist() == [False, True, False, False]


def test_infinities():
    assert F.gelu(om.tensor(INF)).item() == INF
    assert F.gelu(om.tensor(-INF)).item() == 0
    assert F.silu(om.tensor(INF)).item() == INF
    assert om.tensor([-INF, -INF]).logsumexp(0).item() == -INF
    assert om.tensor([INF, 1.0]).logsumexp(0).item() == INF
    same(om.tensor([0.0, -INF]).softmax(0), [1, 0])
    assert np.isnan(om.tensor([-INF, -INF]).softmax(0).numpy()).all()
    same(om.tensor([-INF, INF]).tanh(), [-1, 1])
    same(om.tensor([-INF, INF]).sigmoid(), [0, 1])
    same(1 / om.tensor([0.0, -0.0]), [INF, -INF])
    assert om.logaddexp(om.tensor(-INF), om.tensor(-INF)).item() == -INF


def test_rounding_is_half_to_even():
    same(om.tensor([0.5, 1.5, 2.5, -0.5, -1.5]).round(), [0, 2, 2, -0.0, -2])


def test_ties_take_the_lowest_index():
    x = om.tensor([2.0, 1.0, 2.0, 1.0])
    assert x.argmax().item() == 0
    assert x.argmin().item() == 1
    assert x.topk(2).indices.tolist() == [0, 2]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]
    assert x.argsort().tolist() == [1, 3, 0, 2]
    assert x.max(0).indices.item() == 0


def test_gradient_at_ties():
    x = om.tensor([2.0, 2.0, 1.0], requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [0.5, 0.5, 0]
    x.grad = None
    x.max(0).values.backward()
    assert x.grad.tolist() == [1, 0, 0]
    x.grad = None
    om.maximum(x, om.tensor(2.0)).sum().backward()
    assert x.grad.tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (F.relu, 0.0, 0.0),
        (F.relu6, 6.0, 0.0),
        (F.hardtanh, -1.0, 0.0),
        (lambda x: F.leaky_relu(x, 0.1), 0.0, 0.1),
        (om.abs, 0.0, 0.0),
        (lambda x: x.clamp(0, 1), 0.0, 1.0),
        (lambda x: x.clamp(0, 1), 1.0, 1.0),
        (lambda x: x.clamp(min=0), 0.0, 1.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x.norm(), 0.0, 0.0),
        (om.sign, 3.0, 0.0),
    ],
)
def test_gradient_at_corners(function, at, expected):
    x = om.tensor([at], requires_grad=True)
    function(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.float32([expected]))


def test_gradient_of_powers_of_zero():
    x = om.tensor([0.0, 2.0], requires_grad=True)
    y = om.tensor([0.0, 3.0], requires_grad=True)
    (x**y).sum().backward()
    assert x.grad.tolist() == [0.0, 12.0]
    assert y.grad[0].item() == 0.0


def test_gradients_masked_by_where_carry_no_nan():
    x = om.tensor([-1.0, 4.0], requires_grad=True)
    om.where(x > 0, x.clamp(min=0).sqrt() + 1, 0.0)[1].backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_empty_tensors():
    x = om.zeros(0, 3)
    assert x.sum().item() == 0
    assert x.prod().item() == 1
    assert math.isnan(x.mean().item())
    assert x.sum(0).tolist() == [0, 0, 0]
    assert x.any().item() is False
    assert x.all().item() is True
    for function in (om.amax, om.amin, om.argmax, om.max):
        with pytest.raises(ShapeError, match="elements"):
            function(x)
    assert x.amax(1).shape == (0,)
    assert (x + 1).shape == (0, 3)
    assert (x @ om.zeros(3, 2)).shape == (0, 2)
    assert (om.zeros(2, 0) @ om.zeros(0, 3)).tolist() == [[0] * 3] * 2
    assert om.cat([x, om.ones(1, 3)]).shape == (1, 3)
    assert x.softmax(1).shape == (0, 3)
    assert x.reshape(3, 0).shape == (3, 0)
    assert x[:, 1:].shape == (0, 2)
    assert F.conv2d(om.zeros(0, 1, 3, 3), om.ones(2, 1, 2, 2)).shape == (0, 2, 2, 2)
    y = om.zeros(0, 3, requires_grad=True)
    (y * 2).sum().backward()
    assert y.grad.shape == (0, 3)
    w = om.ones(2, 3, requires_grad=True)
    F.linear(x, w).sum().backward()
    assert w.grad.tolist() == [[0] * 3] * 2


def test_0d_tensors():
    x = om.tensor(2.0, requires_grad=True)
    y = (x * 3).exp().sum() + x.mean() + x.max()
    y.backward()
    assert x.grad.shape == ()
    assert om.tensor(3).argmax().item() == 0
    assert om.tensor(3.0).softmax(0).item() == 1
    assert om.tensor([1.0, 2.0])[om.tensor(1)].shape == ()
    assert om.tensor(5).reshape(1, 1).shape == (1, 1)
    assert om.tensor(1.0).cumsum(0).item() == 1


def test_integers_wrap_and_divide_like_python():
    big = om.tensor([2**31 - 1], dtype="int32")
    assert (big + 1).tolist() == [-(2**31)]
    assert (om.tensor([200], dtype="uint8") + 100).tolist() == [44]
    assert (om.tensor([7, -7, 7, -7]) // om.tensor([2, 2, -2, -2])).tolist() == [3, -4, -4, 3]
    assert (om.tensor([7, -7, 7, -7]) % om.tensor([2, 2, -2, -2])).tolist() == [1, 1, -1, -1]
    assert om.div(om.tensor([7, -7]), 2, rounding_mode="trunc").tolist() == [3, -3]
    least = om.tensor([-(2**63)])
    assert (least // om.tensor([-1])).tolist() == [-(2**63)]
    assert abs(least).tolist() == [-(2**63)]


def test_integer_division_by_zero_is_an_error():
    for operator in (
        lambda x: x // 0,
        lambda x: x % 0,
        lambda x: om.div(x, 0, rounding_mode="trunc"),
    ):
        with pytest.raises((OneModelError, ZeroDivisionError)):
            operator(om.tensor([1]))


def test_float_modulo():
    same(om.tensor([5.5, -5.5]) % 2, [1.5, 0.5])
    same(om.fmod(om.tensor([5.5, -5.5]), 2), [1.5, -1.5])
    assert math.isnan((om.tensor([1.0]) % 0).item())


def test_fully_masked_attention_row_gives_zeros_and_no_gradient():
    q, k, v = (om.ones(1, 2, 3, requires_grad=True) for _ in range(3))
    mask = om.tensor([[True, False], [False, False]])
    y = F.scaled_dot_product_attention(q, k, v, mask)
    assert y[0, 1].tolist() == [0, 0, 0]
    y.sum().backward()
    assert q.grad[0, 1].tolist() == [0, 0, 0]
    for leaf in (q, k, v):
        assert np.isfinite(leaf.grad.numpy()).all()


def test_product_gradient_with_zeros():
    x = om.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [0, 6, 0]
    z = om.tensor([0.0, 0.0, 3.0], requires_grad=True)
    z.prod().backward()
    assert z.grad.tolist() == [0, 0, 0]


def test_variance_of_one_element_is_nan():
    assert math.isnan(om.tensor([1.0]).var().item())
    assert om.tensor([1.0]).var(unbiased=False).item() == 0
