"""Operators that are written with others: each is its definition."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import functional as F


def t(*shape, low=-2.0, high=2.0):
    rng = np.random.default_rng(sum(shape) + 1)
    return om.from_numpy(rng.uniform(low, high, shape))


def equal(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_logical_and_bitwise():
    a, b = om.tensor([True, True, False]), om.tensor([True, False, False])
    assert (
        om.logical_and(a, b).tolist()
        == (a & b).tolist()
        == om.bitwise_and(a, b).tolist()
        == [True, False, False]
    )
    assert (
        om.logical_or(a, b).tolist()
        == (a | b).tolist()
        == om.bitwise_or(a, b).tolist()
        == [True, True, False]
    )
    assert (
        om.logical_xor(a, b).tolist()
        == (a ^ b).tolist()
        == om.bitwise_xor(a, b).tolist()
        == [False, True, False]
    )
    assert (
        om.logical_not(a).tolist()
        == (~a).tolist()
        == om.bitwise_not(a).tolist()
        == [False, False, True]
    )
    assert om.logical_and(om.tensor([0, 2]), om.tensor([1.5, 1.0])).tolist() == [False, True]
    x = om.tensor([5, 12], dtype="uint8")
    assert (om.bitwise_and(x, 4).tolist(), om.bitwise_not(x).tolist()) == ([4, 4], [250, 243])
    assert om.bitwise_left_shift(x, om.tensor([1, 2], dtype="uint8")).tolist() == [10, 48]
    assert om.bitwise_right_shift(x, om.tensor([1, 2], dtype="uint8")).tolist() == [2, 3]
    with pytest.raises(OneModelError, match="integers or bools"):
        om.bitwise_and(om.tensor([1.0]), om.tensor([2.0]))


def test_closeness():
    a = om.tensor([1.0, float("nan"), float("inf"), 1.0])
    b = om.tensor([1.000001, float("nan"), float("inf"), 1.1])
    assert om.isclose(a, b).tolist() == [True, False, True, False]
    assert om.isclose(a, b, equal_nan=True).tolist() == [True, True, True, False]
    assert om.allclose(a[:1], b[:1])
    assert om.equal(om.tensor([1, 2]), om.tensor([1, 2]))
    assert not om.equal(om.tensor([1, 2]), om.tensor([1]))


def test_shapes():
    x = t(2, 3)
    assert om.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert [v.shape for v in om.broadcast_tensors(x, t(3))] == [(2, 3)] * 2
    assert om.atleast_1d(om.tensor(1)).shape == (1,)
    assert om.atleast_2d(om.tensor([1])).shape == (1, 1)
    equal(om.fliplr(x), x.flip(1))
    equal(om.flipud(x), x.flip(0))
    equal(om.narrow(x, 1, -2, 2), x[:, 1:])
    equal(om.select(x, 1, -1), x[:, -1])
    equal(x.adjoint(), x.t())
    equal(om.concat([x, x]), om.cat([x, x]))
    assert om.argwhere(om.tensor([0, 1])).tolist() == [[1]]
    assert om.zeros_like(x).tolist() == om.empty_like(x).tolist() == [[0] * 3] * 2
    assert om.scalar_tensor(2.5).shape == ()


def test_arithmetic_relatives():
    x, y = t(2, 3), t(2, 3, low=0.5)
    equal(om.floor_divide(x, y), x // y)
    equal(om.float_power(om.tensor([2, 3]), 2), om.tensor([4.0, 9.0], dtype="float64"))
    equal(om.clamp_min(x, 0.1), x.clamp(min=0.1))
    equal(om.clamp_max(x, 0.1), x.clamp(max=0.1))
    equal(om.fmin(x, om.full((2, 3), float("nan"), dtype="float64")), x)


def test_product_relatives():
    a, b, v = t(2, 3), t(3, 4), t(3)
    equal(om.mm(a, b), a @ b)
    equal(om.mv(a, v), a @ v)
    equal(om.vdot(v, v), om.dot(v, v))
    np.testing.assert_allclose(
        om.inner(a, a).numpy(), a.numpy() @ a.numpy().T, rtol=1e-14
    )  # order of sums differs


def test_reduction_relatives():
    x = t(3, 4)
    low, high = om.aminmax(x, dim=1)
    equal(low, x.amin(1))
    equal(high, x.amax(1))
    assert om.count_nonzero(om.tensor([[0, 1], [2, 3]]), 0).tolist() == [1, 2]
    assert om.nanmean(om.tensor([1.0, float("nan"), 3.0])).item() == 2.0
    spread, center = om.std_mean(x, 1)
    equal(spread, x.std(1))
    equal(center, x.mean(1))
    equal(om.vector_norm(x, 2, 1), x.norm(2, 1))
    equal(om.vector_norm(x, 0, 1), om.full((3,), 4.0, dtype="float64"))
    equal(F.pairwise_distance(x, x * 2, eps=0.0), (x - x * 2).norm(2, -1))


def test_pools_of_one_and_three_axes():
    x = t(2, 3, 6)
    equal(F.adaptive_avg_pool1d(x, 3), F.avg_pool1d(x, 2))
    equal(F.adaptive_max_pool1d(x, 3), F.max_pool1d(x, 2))
    y = t(1, 2, 4, 4, 2)
    equal(F.adaptive_avg_pool3d(y, 2), F.avg_pool3d(y, (2, 2, 1)))
    equal(F.adaptive_max_pool3d(y, 2), F.max_pool3d(y, (2, 2, 1)))
    p = t(1, 2, 6, low=0.5)
    np.testing.assert_allclose(
        F.lp_pool1d(p, 2.0, 2).numpy(),
        np.sqrt((p.numpy().reshape(1, 2, 3, 2) ** 2).sum(-1)),
        rtol=1e-12,
    )  # a mean times a count against a sum
    equal(F.upsample(x, scale_factor=2), F.interpolate(x, scale_factor=2))


def test_transposed_convolution_over_three_axes():
    x, w = t(1, 2, 2, 2, 2), t(2, 3, 2, 2, 2)
    y = F.conv_transpose3d(x, w, stride=2)
    assert y.shape == (1, 3, 4, 4, 4)
    probe = t(1, 3, 4, 4, 4)
    back = F.conv3d(probe, w, stride=2)
    np.testing.assert_allclose(
        (y * probe).sum().item(), (x * back).sum().item(), rtol=1e-12
    )  # order of sums differs


def test_dropouts_keep_shape_and_mean():
    g = om.Generator(9)
    for function, shape in ((F.dropout1d, (8, 64, 4)), (F.dropout3d, (8, 64, 2, 2, 1))):
        y = function(om.ones(shape), 0.5, generator=g).numpy().reshape(8 * 64, -1)
        assert all(len(set(row.tolist())) == 1 for row in y)
        assert abs(y.mean() - 1) < 0.2
    x = om.randn(20_000, generator=g)
    y = F.alpha_dropout(x, 0.2, True, generator=g).numpy()
    assert abs(y.mean()) < 0.05
    assert abs(y.std() - 1) < 0.05
    assert F.alpha_dropout(x, 0.2, False) is x


def test_cells_are_single_steps():
    x, h = t(2, 3), t(2, 4)
    w = [t(12, 3), t(12, 4), t(12), t(12)]
    equal(F.gru_cell(x, h, *w), F.gru(x.unsqueeze(0), h.unsqueeze(0), w)[0][0])
    w = [t(4, 3), t(4, 4), t(4), t(4)]
    equal(F.rnn_tanh_cell(x, h, *w), F.rnn_tanh(x.unsqueeze(0), h.unsqueeze(0), w)[0][0])
    equal(F.rnn_relu_cell(x, h, *w), F.rnn_relu(x.unsqueeze(0), h.unsqueeze(0), w)[0][0])
