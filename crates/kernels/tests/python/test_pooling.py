"""Maxima with their places and without them."""

import itertools

import numpy as np
import pytest

from onemodel_kernels import Array, Kernel

NANS = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "dilations"),
    [case for case in itertools.product((2, 3), (1, 2, 3), (0, 1), (1, 2)) if case[2] < case[0]],
)
def test_maxima_have_the_same_bits_without_their_places(kernel, strides, pads, dilations):
    random = np.random.default_rng(3)
    x = random.choice([-1.0, -0.0, 0.0, 2.0, -np.inf], (2, 3, 9, 37)).astype(np.float32)
    rare = random.random(x.shape) < 0.1
    x[rare] = random.choice(NANS, int(rare.sum()))
    window = {
        "kernel_shape": (kernel, kernel),
        "strides": (strides, strides),
        "pads": (pads,) * 4,
        "dilations": (dilations, dilations),
    }
    given = Array.from_numpy(x)
    best, places = Kernel("MaxPool", **window)(given)
    alone = Kernel("MaxPool", with_indices=0, **window)(given)
    assert alone.tobytes() == best.tobytes()
    # What is found is what stands at the place.
    found = np.asarray(places)
    taken = x.reshape(-1)[found[found >= 0]]
    assert taken.tobytes() == np.asarray(best)[found >= 0].tobytes()
