"""6. A module that behaves differently in training is refused there; tracing changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import onemodel_tensors as om
from onemodel_trace import TraceErrorKind, TraceException
from onemodel_training import BatchNorm1d, Dropout, Linear, NnModule, ReLU, Sequential

TRAINING_ONLY: dict[str, Callable[[], NnModule]] = {
    "dropout": lambda: Dropout(0.5),
    "batch norm": lambda: BatchNorm1d(4),
}


@pytest.mark.parametrize("layer", TRAINING_ONLY)
def test_training_mode_is_refused_by_name(layer: str, example) -> None:
    model = Sequential(Linear(4, 4), TRAINING_ONLY[layer]())
    with pytest.raises(TraceException, match=r"\b1\b") as caught:
        model.trace(example(3, 4))
    assert caught.value.kind in (
        TraceErrorKind.INVALID_USAGE,
        TraceErrorKind.UNSUPPORTED_OPERATION,
    )


def test_training_mode_does_not_matter_where_nothing_depends_on_it(example) -> None:
    Sequential(Linear(4, 4), ReLU()).trace(example(3, 4))


def test_tracing_changes_no_buffer_flag_or_random_state(example) -> None:
    model = Sequential(Linear(4, 4), BatchNorm1d(4), Dropout(0.5)).eval()
    model.get_submodule("0").requires_grad_(False)
    before = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    flags = [parameter.requires_grad for parameter in model.parameters()]
    modes = [module.training for module in model.modules()]
    om.manual_seed(5)
    expected = om.rand(3).tolist()
    om.manual_seed(5)
    model.trace(example(3, 4), axis_names={"input": {0: "batch"}})
    assert om.rand(3).tolist() == expected
    assert {name: tensor.tolist() for name, tensor in model.state_dict().items()} == before
    assert [parameter.requires_grad for parameter in model.parameters()] == flags
    assert [module.training for module in model.modules()] == modes
    assert all(parameter.grad is None for parameter in model.parameters())
