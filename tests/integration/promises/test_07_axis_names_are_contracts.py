"""7. An axis name is never merged or renamed; one value per run, checked before computing."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_kernels.errors import OneModelError


def add(a: om.Tensor, b: om.Tensor) -> om.Tensor:
    return a.sum(1, keepdim=True) + b


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_names_are_in_the_file_verbatim(trace, example) -> None:
    axes = {"a": ("batch of lines", "breite"), "b": ("batch of lines", None)}
    model = trace(add, example(3, 5), example(3, 4), axes=axes).to_onnx()
    dimensions = [
        [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    ]
    assert dimensions == [["batch of lines", "breite"], ["batch of lines", 4]]


def test_one_name_has_one_value_in_a_run(trace, example) -> None:
    axes = {"a": ("batch", None), "b": ("batch", None)}
    session = Session(trace(add, example(3, 5), example(3, 4), axes=axes).graph)
    session.run({"a": zeros(7, 5), "b": zeros(7, 4)})
    with pytest.raises(OneModelError, match="batch"):
        session.run({"a": zeros(7, 5), "b": zeros(6, 4)})


def test_one_is_no_exception_to_that(trace, example) -> None:
    axes = {"a": ("batch", None), "b": ("batch", None)}
    session = Session(trace(add, example(3, 5), example(3, 4), axes=axes).graph)
    with pytest.raises(OneModelError, match="batch"):
        session.run({"a": zeros(1, 5), "b": zeros(6, 4)})


def test_a_fixed_axis_is_fixed(trace, example) -> None:
    session = Session(trace(add, example(3, 5), example(3, 4)).graph)
    with pytest.raises(OneModelError, match="4"):
        session.run({"a": zeros(3, 5), "b": zeros(3, 3)})
