"""Result types: PyTorch's rules."""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import DtypeError

TABLE = [
    ("int64", "float32", "float32"),
    ("int32", "int64", "int64"),
    ("uint8", "int8", "int32"),
    ("bool", "int32", "int32"),
    ("bool", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("uint8", "int32", "int32"),
    ("float16", "bfloat16", "float32"),
    ("float16", "float32", "float32"),
    ("int64", "float16", "float16"),
    ("uint8", "int64", "int64"),
    ("uint8", "uint8", "uint8"),
]


@pytest.mark.parametrize(("a", "b", "expected"), TABLE)
def test_tensors_with_axes(a, b, expected):
    assert om.promote_types(a, b) == om.promote_types(b, a) == expected
    assert om.result_type(om.zeros(2, dtype=a), om.zeros(2, dtype=b)) == expected


def test_numbers_and_0d_tensors_raise_only_the_category():
    x = om.ones(2, dtype="float32")
    i = om.ones(2, dtype="int32")
    assert (x * 2.5).dtype == "float32"
    assert (x + om.tensor(1.0, dtype="float64")).dtype == "float32"
    assert (i + 1).dtype == "int32"
    assert (i + om.tensor(1, dtype="int64")).dtype == "int32"
    assert (i + 1.5).dtype == "float32"
    assert (i + om.tensor(1.5, dtype="float64")).dtype == "float64"
    assert (om.ones(2, dtype="bool") + 1).dtype == "int64"
    assert (om.tensor(1) + om.tensor(1, dtype="int32")).dtype == "int64"


def test_division_of_integers_is_true():
    assert (om.tensor([3, 4]) / om.tensor([2, 2])).tolist() == [1.5, 2.0]
    assert (om.tensor([3, 4]) / 2).dtype == "float32"
    assert (om.tensor([-3, 4]) // 2).tolist() == [-2, 2]
    assert om.div(om.tensor([-3, 4]), 2, rounding_mode="trunc").tolist() == [-1, 2]


def test_comparison_is_bool():
    assert (om.tensor([1, 2]) < 1.5).tolist() == [True, False]
    assert (om.tensor([1, 2]) == om.tensor([1.0, 3.0])).dtype == "bool"
    assert (om.tensor([1]) == None) is False  # noqa: E711
    assert (om.tensor([1]) != None) is True  # noqa: E711


def test_functions_of_integers_are_float32():
    assert om.tensor([1, 4]).sqrt().tolist() == [1.0, 2.0]
    assert om.tensor([1]).exp().dtype == "float32"
    assert om.tensor([True]).sigmoid().dtype == "float32"


def test_default_dtype_is_used_for_floats():
    assert om.tensor(1.5).dtype == "float32"
    om.set_default_dtype("float64")
    try:
        assert om.tensor(1.5).dtype == "float64"
        assert om.zeros(2).dtype == "float64"
    finally:
        om.set_default_dtype("float32")
    with pytest.raises(DtypeError, match="floating-point"):
        om.set_default_dtype("int32")


def test_bool_arithmetic():
    a, b = om.tensor([True, False]), om.tensor([True, True])
    assert (a + b).tolist() == [True, True]
    assert (a * b).tolist() == [True, False]
    with pytest.raises(DtypeError, match="sub"):
        om.sub(a, b)
    with pytest.raises(DtypeError, match="neg"):
        om.neg(a)


def test_mixed_operands_carry_gradients_through_casts():
    x = om.tensor([1.0, 2.0], requires_grad=True)
    y = om.tensor([3.0, 4.0], dtype="float64", requires_grad=True)
    (x * y).backward(om.ones(2, dtype="float64"))
    assert x.grad.dtype == "float32"
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad.dtype == "float64"


def test_foreign_operands_are_named():
    with pytest.raises(TypeError, match="list"):
        om.add(om.tensor([1.0]), [1])
    with pytest.raises(TypeError, match="ndarray"):
        import numpy as np

        om.tensor([1.0, 2.0]) * np.ones(2)
    with pytest.raises(DtypeError, match="expected one of"):
        om.zeros(2, dtype="complex64")


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "int8", "uint8", "int64", "bool", "float64"]
)
def test_casts_there_and_back(dtype):
    x = om.tensor([0.0, 1.0, 1.0])
    assert x.to(dtype).dtype == dtype
    assert x.to(dtype).float().tolist() == [0.0, 1.0, 1.0]
    assert x.to("float32") is x
    assert om.tensor([2.7, -2.7]).long().tolist() == [2, -2]
