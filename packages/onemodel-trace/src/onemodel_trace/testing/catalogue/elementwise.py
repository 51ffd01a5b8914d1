"""Functions of one tensor, elementwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace.testing.case import Case, cases, ints, real

X = real(3, 5)


def _named(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(om, name)
    return found


def _augmented(x: om.Tensor) -> om.Tensor:
    y = x * 2
    y += 1
    y *= x
    y -= 0.5
    y /= 3
    return y


_ANYWHERE = (
    "neg abs sign floor ceil trunc round square exp expm1 sin cos tan atan sinh cosh asinh tanh "
    "sigmoid erf isnan isinf isfinite frac"
)  # fmt: skip

CASES: list[Case] = [
    *[Case(name, _named(name), (X,)) for name in _ANYWHERE.split()],
    *[
        Case(name, _named(name), (real(3, 5, low=0.1, high=4.0),))
        for name in ("sqrt", "rsqrt", "log", "log2", "log10", "reciprocal")
    ],
    *[
        Case(name, _named(name), (real(3, 5, low=-0.9, high=0.9),))
        for name in ("asin", "acos", "atanh", "log1p")
    ],
    Case("acosh", _named("acosh"), (real(3, 5, low=1.0, high=4.0),)),
    Case("expm1: near 0", _named("expm1"), (real(3, 5, low=-1e-6, high=1e-6),)),
    Case("log1p: near 0", _named("log1p"), (real(3, 5, low=-1e-6, high=1e-6),)),
    *cases(
        {
            "round: decimals": lambda x: om.round(x, decimals=1),
            "relu": F.relu,
            "relu6": F.relu6,
            "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7),
            "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
            "elu": lambda x: F.elu(x, 0.7),
            "celu": lambda x: F.celu(x, 1.3),
            "selu": F.selu,
            "gelu": F.gelu,
            "gelu: tanh": lambda x: F.gelu(x, approximate="tanh"),
            "silu": F.silu,
            "mish": F.mish,
            "softplus": F.softplus,
            "softplus: beta": lambda x: F.softplus(x, 2.0, 1.5),
            "hardsigmoid": F.hardsigmoid,
            "hardswish": F.hardswish,
            "softsign": F.softsign,
            "hardshrink": lambda x: F.hardshrink(x, 0.4),
            "softshrink": lambda x: F.softshrink(x, 0.4),
            "tanhshrink": F.tanhshrink,
            "logsigmoid": F.logsigmoid,
            "threshold": lambda x: F.threshold(x, 0.3, -1.0),
            "glu": lambda x: F.glu(x.repeat(1, 2), 1),
            "prelu": lambda x: F.prelu(x, om.tensor([0.2])),
            "relu: inplace": lambda x: F.relu(x * 1.5, inplace=True),
            "dropout: evaluation": lambda x: F.dropout(x, 0.5, training=False) * 2,
            "dropout2d: evaluation": lambda x: F.dropout2d(x.unsqueeze(0), 0.5, training=False) * 2,
            "rrelu: evaluation": F.rrelu,
            "drop_path: evaluation": lambda x: F.drop_path(x, 0.5) * 2,
            "positive": lambda x: om.positive(x) * 2,
            "alpha_dropout: evaluation": lambda x: F.alpha_dropout(x, 0.5, training=False) * 2,
            "clamp": lambda x: x.clamp(-0.5, 0.5),
            "clamp_min": lambda x: x.clamp(min=0.1),
            "clamp_max": lambda x: x.clamp(max=0.1),
            "clamp: crossed": lambda x: x.clamp(0.5, -0.5),
            "to: int64": lambda x: x.to("int64"),
            "to: float64": lambda x: x.double() * 2,
            "bool": lambda x: x.bool(),
            "pow: 1.7": lambda x: (x.abs() + 0.1) ** 1.7,
            "pow: 2": lambda x: x**2,
            "pow: 3": lambda x: x**3,
            "pow: 0.5": lambda x: x.abs() ** 0.5,
            "pow: -1": lambda x: (x.abs() + 1) ** -1,
            "pow: -0.5": lambda x: (x.abs() + 1) ** -0.5,
            "float_power": lambda x: om.float_power(x, 2),
            "add: numbers": lambda x: 2 - (x * 3 + 1) / 4,
            "div: reflected": lambda x: 1 / (x + 5),
            "rsub": lambda x: om.rsub(x, 2),
            "masked_fill": lambda x: x.masked_fill(x > 0, -1.0),
            "where: number": lambda x: om.where(x > 0.2, x, 0.0),
            "nan_to_num": lambda x: om.nan_to_num(x / 0.0),
            "add_": lambda x: (x * 2).add_(1.0),
            "mul_: chain": _augmented,
            "clone": lambda x: x.clone() * 2,
            "zeros_like": lambda x: om.zeros_like(x) + x,
            "ones_like": lambda x: om.ones_like(x) - x,
            "full_like": lambda x: om.full_like(x, 0.5) + x,
        },
        X,
    ),
    *cases(
        {
            "logical_not": om.logical_not,
            "bitwise_not": lambda i: ~i,
            "float": lambda i: i.float().sqrt(),
            "neg: integers": lambda i: -i,
            "abs: integers": lambda i: (i - 2).abs(),
            "relu: integers": lambda i: F.relu(i - 2),
            "one_hot: one index": lambda x: F.one_hot(x[0, 0], 7),
            "one_hot": lambda i: F.one_hot(i, 5),
            "embedding": lambda i: F.embedding(i, om.arange(8, dtype="float32").reshape(4, 2)),
            "embedding_bag": lambda i: F.embedding_bag(
                i, om.arange(8, dtype="float32").reshape(4, 2), mode="mean"
            ),
        },
        ints(3, 5),
    ),
]
