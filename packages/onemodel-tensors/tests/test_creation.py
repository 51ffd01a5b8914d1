"""Factories and random generators."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError


def test_filled_tensors():
    assert om.zeros(2, 3).tolist() == [[0] * 3] * 2
    assert om.ones((2,), dtype="int32").dtype == "int32"
    assert om.full((2,), 7).dtype == "int64"
    assert om.full((2,), 7.5).tolist() == [7.5, 7.5]
    assert om.empty(3).tolist() == [0, 0, 0]
    x = om.zeros(2, dtype="float64")
    assert om.ones_like(x).dtype == "float64"
    assert om.full_like(x, 2).tolist() == [2, 2]
    assert x.new_zeros(1).dtype == "float64"
    assert x.new_full((2,), 3).tolist() == [3, 3]
    assert om.zeros(0, 3).shape == (0, 3)
    assert om.zeros(()).shape == ()


def test_ranges():
    assert om.arange(4).tolist() == [0, 1, 2, 3]
    assert om.arange(1, 4).dtype == "int64"
    assert om.arange(4, 0, -2).tolist() == [4, 2]
    np.testing.assert_array_equal(
        om.arange(0, 1, 0.25).numpy(), np.arange(0, 1, 0.25, dtype=np.float32)
    )
    with pytest.raises(AttributeValueError, match="step"):
        om.arange(0, 1, 0)
    np.testing.assert_array_equal(om.linspace(0, 1, 5).numpy(), [0, 0.25, 0.5, 0.75, 1])
    assert om.linspace(3, 9, 1).tolist() == [3]
    np.testing.assert_allclose(
        om.logspace(0, 2, 3).numpy(), [1, 10, 100], rtol=1e-6
    )  # float32 rounding of powers


def test_matrices():
    assert om.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    x = om.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(x.tril(-1).numpy(), np.tril(x.numpy(), -1))
    np.testing.assert_array_equal(x.triu(1).numpy(), np.triu(x.numpy(), 1))
    np.testing.assert_array_equal(om.diag(om.tensor([1, 2]), 1).numpy(), np.diag([1, 2], 1))
    assert om.diag(x, 1).tolist() == [1, 5]
    a, b = om.meshgrid(om.arange(2), om.arange(3), indexing="xy")
    np.testing.assert_array_equal(a.numpy(), np.meshgrid(np.arange(2), np.arange(3))[0])
    np.testing.assert_array_equal(b.numpy(), np.meshgrid(np.arange(2), np.arange(3))[1])
    assert om.tril(om.ones(2, 2, dtype="bool")).tolist() == [[True, False], [True, True]]


def test_seeded_draws_are_repeatable_and_move_on():
    om.manual_seed(5)
    first, second = om.rand(4), om.rand(4)
    om.manual_seed(5)
    assert om.rand(4).tolist() == first.tolist()
    assert om.rand(4).tolist() == second.tolist() != first.tolist()
    a, b = om.Generator(7), om.Generator(7)
    assert om.randn(3, 2, generator=a).tolist() == om.randn(3, 2, generator=b).tolist()
    state = a.get_state()
    value = om.randint(0, 100, (5,), generator=a).tolist()
    assert om.randint(0, 100, (5,), generator=a.set_state(state)).tolist() == value


def test_distributions():
    g = om.Generator(1)
    uniform = om.rand(20_000, generator=g).numpy()
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    normal = om.randn(20_000, generator=g).numpy()
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    whole = om.randint(2, 5, (1000,), generator=g).numpy()
    assert set(whole.tolist()) == {2, 3, 4}
    assert sorted(om.randperm(10, generator=g).tolist()) == list(range(10))
    coins = om.bernoulli(om.full((10_000,), 0.25), generator=g).numpy()
    assert abs(coins.mean() - 0.25) < 0.02
    shifted = om.normal(3.0, 0.5, (10_000,), generator=g).numpy()
    assert abs(shifted.mean() - 3) < 0.03


def test_in_place_draws():
    g = om.Generator(2)
    x = om.zeros(1000)
    assert x.uniform_(2, 3, generator=g).numpy().min() >= 2
    assert abs(x.normal_(1, 2, generator=g).numpy().std() - 2) < 0.2
    assert set(x.bernoulli_(0.5, generator=g).tolist()) == {0.0, 1.0}


def test_multinomial():
    g = om.Generator(3)
    weights = om.tensor([0.0, 1.0, 3.0])
    drawn = om.multinomial(weights, 4000, replacement=True, generator=g).numpy()
    assert 0 not in drawn
    assert abs((drawn == 2).mean() - 0.75) < 0.03
    assert sorted(om.multinomial(om.ones(2, 5), 5, generator=g)[1].tolist()) == [0, 1, 2, 3, 4]


def test_threads_draw_apart():
    g = om.Generator(4)
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append(tuple(om.rand(8, generator=g).tolist())))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 8


def test_bad_arguments_are_named():
    with pytest.raises(AttributeValueError, match="low < high"):
        om.randint(3, 3, (2,))
    with pytest.raises(AttributeValueError, match="zeros: expected device 'cpu', got 'cuda:0'"):
        om.zeros(2, device="cuda:0")
    with pytest.raises(AttributeValueError, match="to: expected device"):
        om.zeros(2).to("cuda")
    assert om.zeros(2, device="cpu").to("cpu").shape == (2,)
    with pytest.raises(TypeError, match=r"tensor\(\) makes"):
        om.Tensor(2)
    with pytest.raises(ShapeError, match="normal"):
        om.normal(0.0, 1.0)


def test_dropout():
    x = om.ones(1000, requires_grad=True)
    g = om.Generator(6)
    y = om.functional.dropout(x, 0.25, generator=g)
    assert set(y.detach().tolist()) == {0.0, float(np.float32(1) / np.float32(0.75))}
    y.backward(om.ones(1000))
    assert x.grad.tolist() == y.detach().tolist()
    assert om.functional.dropout(x, 0.5, training=False) is x
    assert set(om.functional.dropout(x, 1.0).detach().tolist()) == {0.0}
    planes = om.functional.dropout2d(om.ones(4, 8, 2, 2), 0.5, generator=g).numpy()
    assert all(len(set(plane.ravel().tolist())) == 1 for plane in planes.reshape(32, 4))
    with pytest.raises(AttributeValueError, match="dropout"):
        om.functional.dropout(x, 1.5)


def test_the_class_takes_values_as_the_default_dtype():
    assert om.Tensor([[1, 2], [3, 4]]).dtype == "float32"
    assert om.Tensor(np.arange(3)).tolist() == [0.0, 1.0, 2.0]
    x = om.tensor([1.0])
    y = om.Tensor(x)
    y[0] = 2.0
    assert x.tolist() == [1.0]


def test_the_device_is_the_cpu():
    device = om.device("cuda" if om.cuda.is_available() else "cpu")
    assert (device, device.type, om.cuda.device_count()) == ("cpu", "cpu", 0)
    assert om.zeros(1, device=device).device.type == "cpu"
    om.cuda.manual_seed_all(1)
    with pytest.raises(AttributeError, match="no device but the CPU"):
        om.cuda.synchronize()
