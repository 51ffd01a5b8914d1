"""Hooks of modules around forward and backward."""

from __future__ import annotations

from typing import Any

import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_training import nn


def layer() -> nn.Module:
    made = nn.Linear(3, 2)
    nn.init.ones_(made.weight)
    nn.init.zeros_(made.bias)
    return made


def test_a_full_backward_hook_sees_and_replaces_gradients() -> None:
    module, seen = layer(), []

    def look(owner: Any, grad_input: Any, grad_output: Any) -> Any:
        assert owner is module
        assert not om.is_grad_enabled()
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    handle = module.register_full_backward_hook(look)
    x = om.ones(1, 3, requires_grad=True)
    module(x).backward(om.tensor([[1.0, 2.0]]))
    assert seen == [([[3.0, 3.0, 3.0]], [[1.0, 2.0]])]
    assert x.grad is not None
    assert x.grad.tolist() == [[30.0, 30.0, 30.0]]
    assert module.bias.grad.tolist() == [1.0, 2.0]
    handle.remove()
    module(x).sum().backward()
    assert len(seen) == 1


def test_the_first_layer_has_no_gradient_of_its_input() -> None:
    module, seen = layer(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].shape)))
    module(om.ones(1, 3)).sum().backward()
    assert seen == [((None,), (1, 2))]


def test_a_pre_hook_replaces_the_gradient_of_the_output() -> None:
    module = layer()
    module.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    module.register_full_backward_pre_hook(lambda m, go: go[0] + 1, prepend=True)
    x = om.ones(1, 3, requires_grad=True)
    module(x).sum().backward()
    assert module.bias.grad.tolist() == [4.0, 4.0]
    assert x.grad.tolist() == [[8.0, 8.0, 8.0]]


def test_several_inputs_and_outputs_keep_their_places() -> None:
    seen = []

    class Both(nn.Module):
        def forward(self, a: om.Tensor, flag: bool, b: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
            return a * b, a.detach()

    module = Both()
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    a, b = om.tensor(2.0, requires_grad=True), om.tensor(3.0, requires_grad=True)
    module(a, True, b)[0].backward()
    ((grad_input, grad_output),) = seen
    assert [g if g is None else g.item() for g in grad_input] == [3.0, None, 2.0]
    assert [g if g is None else g.item() for g in grad_output] == [1.0, None]


def test_what_a_hook_returns_must_fit() -> None:
    module = layer()
    module.register_full_backward_hook(lambda m, gi, go: (om.zeros(2, 2),))
    with pytest.raises(ShapeError, match=r"full backward hook of Linear: .*\(1, 3\).*\(2, 2\)"):
        module(om.ones(1, 3, requires_grad=True)).sum().backward()


def test_forward_hooks_with_keywords_and_in_front() -> None:
    order = []

    class Scaled(nn.Module):
        def forward(self, x: om.Tensor, *, scale: float = 1.0) -> om.Tensor:
            return x * scale

    module = Scaled()
    module.register_forward_pre_hook(lambda m, a: order.append("second"))
    module.register_forward_pre_hook(lambda m, a: order.append("first"), prepend=True)
    module.register_forward_pre_hook(
        lambda m, a, k: (a, {"scale": k["scale"] + 1}), with_kwargs=True
    )
    module.register_forward_hook(lambda m, a, k, r: r + k["scale"], with_kwargs=True)
    assert module(om.tensor(5.0), scale=2.0).item() == 18.0
    assert order == ["first", "second"]


def test_moving_a_module_to_the_only_device() -> None:
    module = layer()
    assert module.to("cpu").to(om.device("cpu")).cpu() is module
    assert module.to(device="cpu", dtype=om.float64).weight.dtype == "float64"
    assert module.to(om.zeros(1)).weight.dtype == "float32"
    assert module.half().weight.dtype == "float16"
    assert module.bfloat16().weight.dtype == "bfloat16"
    with pytest.raises(AttributeValueError, match="expected device 'cpu', got 'cuda'"):
        module.to("cuda")


def test_parameters_as_one_vector() -> None:
    module = layer()
    vector = nn.utils.parameters_to_vector(module.parameters())
    assert vector.tolist() == [1.0] * 6 + [0.0] * 2
    nn.utils.vector_to_parameters(om.arange(8.0), module.parameters())
    assert module.weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert module.bias.tolist() == [6.0, 7.0]
    with pytest.raises(ShapeError, match="8 elements"):
        nn.utils.vector_to_parameters(om.zeros(7), module.parameters())
