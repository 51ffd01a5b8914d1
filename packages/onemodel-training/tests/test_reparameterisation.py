"""Weight norm and spectral norm."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_training import Conv2d, Linear, nn
from onemodel_training.reparameterisation import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)


def test_weight_norm_keeps_the_function_and_splits_its_gradient() -> None:
    plain = Linear(3, 4).double()
    layer = weight_norm(copy.deepcopy(plain))
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == (4, 1)
    x = om.rand(5, 3, dtype="float64")
    np.testing.assert_allclose(layer(x).detach().numpy(), plain(x).detach().numpy(), rtol=1e-12)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None
    # The direction's gradient has no component along the direction.
    along = (layer.weight_v.grad * layer.weight_v).sum(1)
    np.testing.assert_allclose(along.detach().numpy(), 0.0, atol=1e-12)
    remove_weight_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(layer(x).detach().numpy(), plain(x).detach().numpy(), rtol=1e-12)
    with pytest.raises(AttributeValueError, match="has no weight_norm"):
        remove_weight_norm(layer)


def test_spectral_norm_makes_the_largest_singular_value_one() -> None:
    layer = spectral_norm(Conv2d(3, 4, 2).double())
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    x = om.rand(1, 3, 4, 4, dtype="float64")
    for _ in range(30):
        layer(x)
    largest = np.linalg.svd(layer.weight.detach().numpy().reshape(4, -1))[1][0]
    assert largest == pytest.approx(1.0, rel=1e-6)
    layer.eval()
    before = layer.weight_u.tolist()
    layer(x).sum().backward()
    assert layer.weight_u.tolist() == before
    assert layer.weight_orig.grad is not None
    remove_spectral_norm(layer)
    assert layer.weight.requires_grad


def test_traces_hold_the_weight_itself() -> None:
    layer = weight_norm(Linear(3, 4)).eval()
    traced = layer.trace(om.rand(2, 3), axis_names=[("batch", None)])
    assert "weight_v" not in traced.graph.initializers


def test_names_of_torch_nn() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            self.scale = nn.Parameter(om.ones(3))

        def forward(self, x: om.Tensor) -> om.Tensor:
            return nn.functional.relu(self.layers(x) * self.scale)

    assert Net()(om.ones(1, 2)).shape == (1, 3)
    assert nn.MSELoss()(om.ones(1), om.ones(1)).item() == 0.0
    with pytest.raises(AttributeValueError, match="expected a parameter 'kernel'; it has weight"):
        nn.weight_norm(nn.Linear(1, 1), "kernel")
