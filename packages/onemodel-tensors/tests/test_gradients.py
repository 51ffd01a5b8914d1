"""Every differentiable operator against finite differences in float64, plain, strided and empty."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_cases import CASES

import onemodel_tensors as om
from onemodel_kernels import Array
from onemodel_tensors.tensor import Tensor


def strided(array: np.ndarray) -> Tensor:
    """A leaf whose elements lie apart, in reverse memory order of the axes."""
    wide = np.zeros(tuple(2 * n for n in reversed(array.shape)), dtype=array.dtype)
    view = Array.from_numpy(wide).permute(tuple(range(array.ndim - 1, -1, -1)))
    for axis, n in enumerate(array.shape):
        view = view.slice(axis, 0, 2 * n, 2)
    view.copy_from(Array.from_numpy(array))
    return Tensor(view, requires_grad=True)


def outputs(result):
    return [result] if isinstance(result, Tensor) else list(result)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradient_matches_finite_differences(case):
    leaves = [om.from_numpy(array).requires_grad_() for array in case.arrays()]
    assert om.gradcheck(case.function, leaves)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_strided_leaves_give_the_same_bits(case):
    arrays = case.arrays()
    plain = [om.from_numpy(array).requires_grad_() for array in arrays]
    apart = [strided(array) for array in arrays]
    for a, b in zip(outputs(case.function(*plain)), outputs(case.function(*apart))):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        if not a.requires_grad:
            assert not b.requires_grad
            continue
        weight = om.ones(a.shape, dtype=a.dtype)
        ga = om.autograd.grad(a, plain, weight, retain_graph=True, allow_unused=True)
        gb = om.autograd.grad(b, apart, weight, retain_graph=True, allow_unused=True)
        for x, y in zip(ga, gb):
            assert (x is None) == (y is None)
            if x is not None:
                np.testing.assert_array_equal(x.numpy(), y.numpy())
