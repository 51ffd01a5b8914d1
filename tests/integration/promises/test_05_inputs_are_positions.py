"""5. Inputs are positions, not objects: the same tensor for two inputs is two inputs."""

from __future__ import annotations

import numpy as np

import onemodel_tensors as om
from onemodel_graph import Session


def test_the_same_object_twice_gives_the_graph_of_two(trace, example) -> None:
    def model(a: om.Tensor, b: om.Tensor) -> om.Tensor:
        return a - 2.0 * b

    x = example(3, 4)
    same = trace(model, x, x)
    distinct = trace(model, x, example(3, 4) + 1.0)
    assert same.to_onnx().SerializeToString() == distinct.to_onnx().SerializeToString()
    one, two = np.ones((3, 4), np.float32), np.full((3, 4), 5, np.float32)
    (y,) = Session(same.graph).run({"a": one, "b": two})
    np.testing.assert_array_equal(y, one - 2 * two)


def test_an_input_that_is_also_a_view_of_another_stays_an_input(trace, example) -> None:
    def model(a: om.Tensor, b: om.Tensor) -> om.Tensor:
        return a + b

    x = example(4, 4)
    traced = trace(model, x, x.transpose(0, 1))
    a, b = np.ones((4, 4), np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)
    (y,) = Session(traced.graph).run({"a": a, "b": b})
    np.testing.assert_array_equal(y, a + b)
