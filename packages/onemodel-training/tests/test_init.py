"""Initial values: bounds, moments, structure and reproducibility."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_training import (
    LSTM,
    Conv2d,
    Embedding,
    Linear,
    MultiheadAttention,
    NnModule,
    Parameter,
    init,
    manual_seed,
)


def values(tensor: om.Tensor) -> np.ndarray:
    return tensor.detach().numpy().astype(np.float64)


@pytest.mark.parametrize(
    ("fill", "bound", "std"),
    [
        (lambda t, g: init.uniform_(t, -3.0, 5.0, generator=g), 5.0, 8.0 / math.sqrt(12.0)),
        (lambda t, g: init.normal_(t, 0.0, 2.0, generator=g), math.inf, 2.0),
        (lambda t, g: init.xavier_uniform_(t, generator=g), math.sqrt(6 / 500), math.sqrt(2 / 500)),
        (lambda t, g: init.xavier_normal_(t, 2.0, generator=g), math.inf, 2 * math.sqrt(2 / 500)),
        (
            lambda t, g: init.kaiming_uniform_(t, generator=g),
            math.sqrt(6 / 300),
            math.sqrt(2 / 300),
        ),
        (
            lambda t, g: init.kaiming_normal_(t, mode="fan_out", nonlinearity="tanh", generator=g),
            math.inf,
            5 / 3 / math.sqrt(200),
        ),
        (lambda t, g: init.trunc_normal_(t, generator=g), 2.0, 0.8796),
    ],
)
def test_moments(
    fill: Callable[[om.Tensor, om.Generator], om.Tensor], bound: float, std: float
) -> None:
    tensor = om.empty(200, 300)
    assert fill(tensor, om.Generator(3)) is tensor
    found = values(tensor)
    assert np.abs(found).max() <= bound
    # 60,000 samples: the standard deviation is within 2 % with overwhelming probability.
    assert found.std() == pytest.approx(std, rel=0.02)
    again = om.empty(200, 300)
    fill(again, om.Generator(3))
    assert (values(again) == found).all()


def test_structure() -> None:
    assert init.eye_(om.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    weight = init.dirac_(om.empty(4, 2, 3), groups=2)
    x = om.arange(20.0).reshape(1, 4, 5)
    out = om.functional.conv1d(x, weight, padding=1, groups=2)
    assert out.tolist() == x.tolist()
    sparse = values(init.sparse_(om.empty(10, 6), 0.35))
    assert ((sparse == 0).sum(0) == 4).all()


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (5, 5), (6, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    matrix = values(init.orthogonal_(om.empty(*shape, dtype="float64"), gain=2.0))
    matrix = matrix.reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    # Two Gram-Schmidt passes leave rounding errors of f64 only.
    np.testing.assert_allclose(product, 4.0 * np.eye(len(product)), atol=1e-12)


@pytest.mark.parametrize(
    ("layer", "bound"),
    [
        (lambda: Linear(25, 40), 0.2),
        (lambda: Conv2d(4, 8, 3), 1 / 6),
        (lambda: LSTM(7, 16, 2, bidirectional=True), 0.25),
    ],
)
def test_default_bounds_are_those_of_pytorch(layer: Callable[[], NnModule], bound: float) -> None:
    found = np.concatenate([values(p).ravel() for p in layer().parameters()])
    assert np.abs(found).max() <= bound
    assert np.abs(found).max() > 0.9 * bound


def test_other_defaults() -> None:
    assert values(Embedding(4, 3, padding_idx=1).weight)[1].tolist() == [0, 0, 0]
    attention = MultiheadAttention(8, 2)
    assert not values(attention.in_proj_bias).any()
    assert np.abs(values(attention.in_proj_weight)).max() <= math.sqrt(6 / 32)


def test_a_seed_gives_the_same_weights_on_every_machine() -> None:
    digests = set()
    for _ in range(2):
        manual_seed(2024)
        layers = [Linear(8, 8), Conv2d(2, 3, 3), LSTM(4, 4), Embedding(5, 6)]
        digest = hashlib.sha256()
        for layer in layers:
            for tensor in layer.state_dict().values():
                digest.update(tensor.numpy().tobytes())
        digests.add(digest.hexdigest())
    assert len(digests) == 1


def test_weights_are_filled_without_records() -> None:
    weight = Parameter(om.empty(2, 2))
    init.ones_(weight)
    assert weight.requires_grad
    assert weight.is_leaf
    assert weight.tolist() == [[1, 1], [1, 1]]


def test_bad_settings_say_what_is_allowed() -> None:
    with pytest.raises(AttributeValueError, match="leaky_relu, got 'softmax'"):
        init.calculate_gain("softmax")
    with pytest.raises(ShapeError, match="2 axes or more"):
        init.xavier_uniform_(om.empty(3))
    with pytest.raises(AttributeValueError, match="1 % of the distribution"):
        init.trunc_normal_(om.empty(3), a=8.0, b=9.0)
    with pytest.raises(AttributeValueError, match="fan_in or fan_out, got 'fan'"):
        init.kaiming_normal_(om.empty(3, 3), mode="fan")  # type: ignore[arg-type]
