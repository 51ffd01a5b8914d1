"""4. A buffer written in forward raises, naming the buffer by its state-dict path."""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_trace import TraceErrorKind, TraceException
from onemodel_training import Linear, NnModule, Sequential


class Counts(NnModule):
    """Counts its calls in a buffer."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.register_buffer("calls", om.zeros(1))

    def forward(self, x: om.Tensor) -> om.Tensor:
        if self.how == "assign":
            self.calls = self.calls + 1.0
        elif self.how == "add":
            self.calls += 1.0
        else:
            self.calls.fill_(7.0)
        return x * self.calls


@pytest.mark.parametrize("how", ["assign", "add", "fill"])
def test_a_written_buffer_is_named_by_its_path(how: str, example) -> None:
    model = Sequential(Linear(4, 4), Sequential(Counts(how))).eval()
    with pytest.raises(TraceException, match=r"1\.0\.calls") as caught:
        model.trace(example(3, 4))
    assert caught.value.kind in (TraceErrorKind.IN_PLACE_MUTATION, TraceErrorKind.INVALID_USAGE)


@pytest.mark.parametrize("how", ["assign", "add", "fill"])
def test_the_buffer_is_as_before(how: str, example) -> None:
    model = Sequential(Counts(how)).eval()
    with pytest.raises(TraceException):
        model.trace(example(3, 4))
    assert model.state_dict()["0.calls"].tolist() == [0.0]
