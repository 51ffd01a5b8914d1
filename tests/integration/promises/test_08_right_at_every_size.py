"""8. Exported once, right at every size: verify runs at several sizes, 1 included."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_tensors import functional as F
from onemodel_training import LSTM, BatchNorm2d, Conv2d, Linear, MaxPool2d, NnModule, Sequential


class Reader(NnModule):
    """Convolutions over a line, a bidirectional LSTM along it."""

    def __init__(self) -> None:
        super().__init__()
        self.features = Sequential(Conv2d(1, 4, 3, padding=1), BatchNorm2d(4), MaxPool2d(2))
        self.lstm = LSTM(16, 6, bidirectional=True)
        self.classify = Linear(12, 3)

    def forward(self, image: om.Tensor) -> om.Tensor:
        columns = F.relu(self.features(image)).permute(3, 0, 1, 2).flatten(2)
        steps, _ = self.lstm(columns)
        return F.log_softmax(self.classify(steps), dim=-1)


AXES = {"image": {0: "batch", 3: "width"}}


def test_verify_accepts_what_is_right(example) -> None:
    om.manual_seed(0)
    traced = Reader().eval().trace(example(3, 1, 8, 10), axis_names=AXES)
    traced.verify()


@pytest.mark.parametrize(("batch", "width"), [(1, 2), (1, 10), (2, 7), (5, 33)])
def test_session_equals_eager_at_other_sizes(batch: int, width: int, example) -> None:
    om.manual_seed(0)
    model = Reader().eval()
    traced = model.trace(example(3, 1, 8, 10), axis_names=AXES)
    image = example(batch, 1, 8, width)
    with om.no_grad():
        expected = model(image).numpy()
    (exact,) = Session(traced.graph, mode=ArithmeticMode.EXACT).run({"image": image.numpy()})
    assert exact.tobytes() == expected.tobytes()


def test_verify_finds_a_function_that_depends_on_the_number_of_calls(example) -> None:
    """A model whose answer changes between calls cannot equal its graph."""
    calls = iter(range(1, 100))

    class Drifts(NnModule):
        def forward(self, x: om.Tensor) -> om.Tensor:
            return x * float(next(calls))

    with pytest.raises(Exception, match="output"):
        Drifts().eval().trace(example(3, 4), axis_names={"x": {0: "batch"}})


def test_verify_takes_sizes(example) -> None:
    om.manual_seed(0)
    traced = Reader().eval().trace(example(3, 1, 8, 10), axis_names=AXES, verify=False)
    traced.verify(sizes=[{"batch": 1, "width": 4}, {"batch": 6, "width": 21}])


def test_outputs_have_the_size_of_the_run(trace, example) -> None:
    def model(x: om.Tensor) -> om.Tensor:
        return F.pad(x, (1, 2))[:, ::2]

    session = Session(trace(model, example(3, 7), axes={"x": {1: "width"}}).graph)
    for width in (1, 2, 8):
        x = np.arange(3 * width, dtype=np.float32).reshape(3, width)
        (y,) = session.run({"x": x})
        np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (1, 2)))[:, ::2])
