"""How forward values are compared with numpy's float64."""

from __future__ import annotations

import numpy as np

import onemodel_tensors as om

RNG = np.random.default_rng(7)


def draw(*shape):
    return RNG.uniform(-2, 2, shape)


def close(got, expected, rtol=1e-12, atol=1e-13):
    """float64 against numpy's float64, whose functions and sums round differently in the last bits."""
    got = got.detach().numpy() if isinstance(got, om.Tensor) else got
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def t(array):
    return om.from_numpy(np.asarray(array))
