"""15. A gradient is right or an error; nothing that the backward pass needs changes unseen."""

from __future__ import annotations

import resource
import threading

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import functional as F

H = 1e-6


def f64(*shape: int, seed: int = 3) -> om.Tensor:
    generator = np.random.Generator(np.random.PCG64(seed))
    return om.from_numpy(generator.uniform(0.5, 1.5, shape))


def differences(function, x: np.ndarray) -> np.ndarray:
    """Central differences of a scalar function of one array."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[index] = H
        high = function(om.from_numpy(x + step)).item()
        low = function(om.from_numpy(x - step)).item()
        gradient[index] = (high - low) / (2 * H)
    return gradient


CASES = {
    "broadcasting": lambda x: (x * f64(4, seed=5) + x[:, :1]).sum(),
    "reuse": lambda x: (x * x + x.exp() * x).sum(),
    "stepped slice": lambda x: (x[:, ::2] * f64(3, 2, seed=5)).sum(),
    "negative slice": lambda x: (x.flip(1)[:, 1:] * x[:, -3:]).sum(),
    "index twice": lambda x: (x[[0, 0, 2]] * f64(3, 4, seed=5)).sum(),
    "slice set to zero": lambda x: _zeroed(x).square().sum(),
    "slice set to a tensor": lambda x: _replaced(x).square().sum(),
    "expand": lambda x: (x[:, :1].expand(3, 4) * f64(3, 4, seed=5)).sum(),
    "matrix product": lambda x: (x @ f64(4, 2, seed=5)).square().sum(),
    "softmax": lambda x: (F.softmax(x, 1) * f64(3, 4, seed=5)).sum(),
    "product with a zero": lambda x: ((x - x.detach()) * 1.0 + 0.0).prod(1).sum() + x.prod(),
}


def _zeroed(x: om.Tensor) -> om.Tensor:
    y = x * 2.0
    y[:, :2] = 0.0
    return y


def _replaced(x: om.Tensor) -> om.Tensor:
    y = x * 2.0
    y[:, 1:3] = x[:, :2] * 3.0
    return y


@pytest.mark.parametrize("name", CASES)
def test_gradient_equals_finite_differences(name: str) -> None:
    function = CASES[name]
    x = f64(3, 4)
    x.requires_grad_()
    function(x).backward()
    detached = {"product with a zero"}
    if name in detached:
        expected = differences(lambda y: y.prod(), x.detach().numpy())
    else:
        expected = differences(function, x.detach().numpy())
    # Central differences with this step err by about 1e-9 of values near 1.
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6, atol=1e-7)


def test_numpy_is_read_only() -> None:
    view = om.ones(3).numpy()
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2.0


def test_from_numpy_copies_unless_asked() -> None:
    source = np.ones(3, np.float32)
    tensor = om.from_numpy(source)
    source[0] = 7.0
    assert tensor.tolist() == [1.0, 1.0, 1.0]


def test_a_changed_operand_is_noticed_in_the_backward_pass() -> None:
    x = om.ones(3)
    x.requires_grad_()
    factor = om.full((3,), 2.0)
    y = (x * factor).sum()
    factor.fill_(5.0)
    with pytest.raises(OneModelError, match=r"version|changed|in place|in-place"):
        y.backward()


def test_a_write_to_a_leaf_raises_before_it_writes() -> None:
    x = om.ones(3)
    x.requires_grad_()
    for write in (lambda: x.fill_(2.0), lambda: x.zero_(), lambda: x.__setitem__(0, 2.0)):
        with pytest.raises(OneModelError, match="leaf"):
            write()
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_memory_is_flat_over_a_thousand_steps() -> None:
    weight = om.ones(64, 64)
    weight.requires_grad_()

    def steps(count: int) -> int:
        for _ in range(count):
            loss = F.relu(om.ones(256, 64) @ weight).mean()
            loss.backward()
            weight.grad = None
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = steps(100)
    # One leaked activation of a step has 64 KiB; a thousand would show as 64 MiB.
    assert steps(1000) - before < 8 * 1024


def test_no_grad_in_a_generator_leaks_nowhere() -> None:
    def values():
        with om.no_grad():
            yield 1
            yield 2

    x = om.ones(2)
    x.requires_grad_()
    for _ in values():
        (x * 2.0).sum().backward()
        break
    assert om.is_grad_enabled()
    assert x.grad is not None


def test_no_grad_in_a_thread_leaks_nowhere() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with om.no_grad():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    try:
        x = om.ones(2)
        x.requires_grad_()
        assert (x * 2.0).requires_grad
    finally:
        leave.set()
        thread.join()
