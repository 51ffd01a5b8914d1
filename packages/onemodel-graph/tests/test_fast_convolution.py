"""Convolutions of 3 by 3 taps: the chain in exact mode, fewer products in fast mode."""

import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_kernels import Array, Kernel

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 32, 20, 24)).astype(np.float32)
W = RANDOM.standard_normal((40, 32, 3, 3)).astype(np.float32)
B = RANDOM.standard_normal(40).astype(np.float32)


def run(mode, constant=True):
    """The convolution with its weights known to the session, or given at each run."""
    nodes = [node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1])]
    inputs = {"x": (np.float32, ("N", 32, "H", "W"))}
    constants = {"w": W, "b": B}
    if not constant:
        inputs |= {"w": (np.float32, W.shape)}
        constants.pop("w")
    feeds = {"x": X} | ({} if constant else {"w": W})
    proto = model(nodes, inputs, ["y"], constants)
    return og.Session(proto.SerializeToString(), mode=mode).run(feeds)[0]


@pytest.mark.parametrize("constant", [True, False])
def test_exact_mode_has_the_bits_of_the_kernel(constant):
    arrays = [Array.from_numpy(a) for a in (X, W, B)]
    want = Kernel("Conv", pads=(1, 1, 1, 1))(*arrays).numpy()
    assert run("exact", constant).tobytes() == want.tobytes()


def test_fast_mode_is_near_with_other_roundings():
    exact, fast = run("exact"), run("fast")
    assert exact.tobytes() != fast.tobytes()
    # The bound that fast arithmetic promises, over the largest result.
    assert np.abs(exact - fast).max() <= 1e-5 * np.abs(exact).max()


def test_weights_given_at_a_run_are_not_transformed():
    assert run("fast", constant=False).tobytes() == run("exact").tobytes()
