"""Elementwise operators against numpy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import RNG, close, draw, t

import onemodel_tensors as om
from onemodel_tensors import functional as F

UNARY = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "neg": np.negative,
    "reciprocal": np.reciprocal,
    "round": np.round,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "rsqrt": lambda x: x**-0.5,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf),
    "frac": lambda x: x - np.trunc(x),
}


DOMAIN = {
    "acosh": (1.1, 4),
    "log": (0.1, 4),
    "log2": (0.1, 4),
    "log10": (0.1, 4),
    "sqrt": (0, 4),
    "rsqrt": (0.1, 4),
    "acos": (-0.9, 0.9),
    "asin": (-0.9, 0.9),
    "atanh": (-0.9, 0.9),
    "log1p": (-0.9, 3),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name):
    x = RNG.uniform(*DOMAIN.get(name, (-3, 3)), (3, 4))
    # Both sides round in the last bits, and errors of the argument grow near zeros.
    close(getattr(om, name)(t(x)), UNARY[name](x), rtol=1e-11)
    got = getattr(om, name)(t(x.astype(np.float32)))
    assert got.dtype == "float32"
    # float32 results are within 2 units in the last place, and the argument was rounded.
    close(
        got,
        UNARY[name](x.astype(np.float32).astype(np.float64)).astype(np.float32),
        rtol=3e-7,
        atol=1e-7,
    )


X = draw(3, 4)


POS = np.maximum(X, 0)


SOFTPLUS = np.log1p(np.exp(X))


PHI = 0.5 * (1 + np.vectorize(math.erf)(X / math.sqrt(2)))


ACTIVATIONS = {
    "relu": (F.relu, POS),
    "relu6": (lambda x: F.relu6(x * 5), np.clip(X * 5, 0, 6)),
    "hardtanh": (F.hardtanh, np.clip(X, -1, 1)),
    "leaky_relu": (F.leaky_relu, np.where(X > 0, X, 0.01 * X)),
    "elu": (lambda x: F.elu(x, 0.7), np.where(X > 0, X, 0.7 * np.expm1(X))),
    "celu": (lambda x: F.celu(x, 0.7), POS + np.minimum(0.7 * np.expm1(X / 0.7), 0)),
    "selu": (F.selu, 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    "gelu": (F.gelu, X * PHI),
    "gelu-tanh": (
        lambda x: F.gelu(x, "tanh"),
        0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    ),
    "silu": (F.silu, X / (1 + np.exp(-X))),
    "mish": (F.mish, X * np.tanh(SOFTPLUS)),
    "softplus": (F.softplus, SOFTPLUS),
    "softplus-beta": (
        lambda x: F.softplus(x, 2, 1),
        np.where(2 * X > 1, X, np.log1p(np.exp(2 * X)) / 2),
    ),
    "hardsigmoid": (F.hardsigmoid, np.clip(X / 6 + 0.5, 0, 1)),
    "hardswish": (F.hardswish, X * np.clip(X / 6 + 0.5, 0, 1)),
    "softsign": (F.softsign, X / (1 + np.abs(X))),
    "hardshrink": (F.hardshrink, np.where(np.abs(X) > 0.5, X, 0)),
    "softshrink": (F.softshrink, np.sign(X) * np.maximum(np.abs(X) - 0.5, 0)),
    "tanhshrink": (F.tanhshrink, X - np.tanh(X)),
    "logsigmoid": (F.logsigmoid, -np.log1p(np.exp(-X))),
    "threshold": (lambda x: F.threshold(x, 0.1, 9.0), np.where(X > 0.1, X, 9.0)),
    "glu": (F.glu, X[:, :2] / (1 + np.exp(-X[:, 2:]))),
    "prelu": (lambda x: F.prelu(x, t(np.full(4, 0.3))), np.where(X > 0, X, 0.3 * X)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    function, expected = ACTIVATIONS[name]
    close(function(t(X)), expected, rtol=1e-11)


def test_rounding_to_decimals():
    x = np.array([1.25, -2.675, 0.5, 1234.5])
    close(om.round(t(x), decimals=1), np.round(x, 1))
    close(om.round(t(x), decimals=-2), np.round(x, -2))


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2,)), ((0, 3), (1, 3)), ((3,), (3,))]
)
def test_arithmetic(shapes):
    a, b = (RNG.uniform(0.5, 3, s) for s in shapes)
    x, y = t(a), t(b)
    for got, expected in [
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x / y, a / b),
        (x // y, a // b),
        (x % y, a % b),
        (om.fmod(x, y), np.fmod(a, b)),
        (x**y, a**b),
        (om.maximum(x, y), np.maximum(a, b)),
        (om.minimum(x, y), np.minimum(a, b)),
        (om.atan2(x, y), np.arctan2(a, b)),
        (om.hypot(x, y), np.hypot(a, b)),
        (om.logaddexp(x, y), np.logaddexp(a, b)),
        (om.where(x > y, x, y), np.where(a > b, a, b)),
        (2 - x, 2 - a),
        (2 / x, 2 / a),
        (2**x, 2**a),
        (x**2, a**2),
        (x**0.5, a**0.5),
        (-x, -a),
    ]:
        close(got, expected)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        numpy_name = {
            "eq": "equal",
            "ne": "not_equal",
            "lt": "less",
            "le": "less_equal",
            "gt": "greater",
            "ge": "greater_equal",
        }[name]
        np.testing.assert_array_equal(
            getattr(om, name)(x, y).numpy(), getattr(np, numpy_name)(a, b)
        )


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_integer_arithmetic(dtype):
    a = np.array([7, -7, 7, -7, 100, 3] if dtype != "uint8" else [7, 9, 7, 5, 100, 3], dtype=dtype)
    b = np.array([2, 2, -2, -2, 3, 5] if dtype != "uint8" else [2, 2, 3, 4, 3, 5], dtype=dtype)
    x, y = t(a), t(b)
    for got, expected in [
        (x + y, a + b),
        (x * y, a * b),
        (x // y, a // b),
        (x % y, a % b),
        (om.fmod(x, y), np.fmod(a, b)),
        (x & y, a & b),
        (x | y, a | b),
        (x ^ y, a ^ b),
        (~x, ~a),
        (x**2, a**2),
        (om.maximum(x, y), np.maximum(a, b)),
        (abs(x), np.abs(a)),
    ]:
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.numpy(), expected)
