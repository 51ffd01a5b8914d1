"""Cases of activation functions and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import erf
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import empty, normal

STEPS = bound(ulp=4.0, absolute=3e-7, why="several roundings, each of them defined")
_GRADIENT = bound(scaled=2e-6, absolute=1e-6, why="several roundings, and cancellation near zeros")
_erf = np.vectorize(erf, otypes=[np.float64])
_ROOT = np.sqrt(2 / np.pi)


def _sigmoid(x: Tensor) -> Tensor:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu_tanh(x: Tensor) -> Tensor:
    return np.asarray(0.5 * x * (1 + np.tanh(_ROOT * (x + 0.044715 * x**3))))


def _selu(x: Tensor) -> Tensor:
    alpha, gamma = 1.6732631921768188, 1.0507010221481323
    return np.asarray(gamma * np.where(x > 0, x, alpha * np.expm1(x)))


_Row = tuple[Mapping[str, Any], Callable[[Tensor], Tensor]]
_FUNCTIONS: dict[str, _Row] = {
    "LeakyRelu": ({"alpha": 0.1}, lambda x: np.where(x < 0, np.float32(0.1) * x, x)),
    "Elu": ({"alpha": 1.5}, lambda x: np.where(x < 0, 1.5 * np.expm1(x), x)),
    "Celu": ({"alpha": 0.75}, lambda x: np.where(x < 0, 0.75 * np.expm1(x / 0.75), x)),
    "Selu": ({}, _selu),
    "Gelu": ({}, lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2)))),
    "Silu": ({}, lambda x: x * _sigmoid(x)),
    "Mish": ({}, lambda x: x * np.tanh(np.logaddexp(0, x))),
    "HardSigmoid": ({"alpha": 0.25, "beta": 0.5}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    "HardSwish": ({}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Softsign": ({}, lambda x: x / (1 + np.abs(x))),
    "Shrink": (
        {"lambd": 0.5, "bias": 0.25},
        lambda x: np.where(x < -0.5, x + 0.25, np.where(x > 0.5, x - 0.25, 0)),
    ),
    "ThresholdedRelu": ({"alpha": 1.0}, lambda x: np.where(x > 1, x, 0)),
}
_DIFFERENTIABLE = {
    "LeakyRelu",
    "Elu",
    "Gelu",
    "Silu",
    "Mish",
    "HardSigmoid",
    "HardSwish",
}


def _slope(function: Callable[[Tensor], Tensor], x: Tensor, g: Tensor) -> Tensor:
    """g times the derivative, by central differences."""
    step = 1e-5
    return np.asarray(g * (function(x + step) - function(x - step)) / (2 * step))


def _with_zeros(x: Tensor) -> Tensor:
    """Zeros of both signs and NaN among the elements."""
    x[::5], x[1::7], x[2::11] = 0.0, -0.0, np.nan
    return x


def _mask(x: Tensor) -> Tensor:
    """A bit for each element that is not at most 0, sixteen in a word, ones behind the last."""
    bits = np.ones(-(-x.size // 16) * 16, np.uint8)
    bits[: x.size] = ~(x <= 0)
    return np.packbits(bits, bitorder="little").view("<u2").astype(np.uint16)


def _cases() -> Iterator[Case]:
    x, g = normal(7, 45, seed=1, scale=3.0), normal(7, 45, seed=2)
    for name, (attributes, function) in _FUNCTIONS.items():
        onnx = name != "Silu"
        yield Case(f"{name}-float32", name, (x,), function, attributes, STEPS, onnx=onnx)
        wide = bound(ulp=16.0, absolute=1e-15, why="the oracle is f64 itself")
        if name != "LeakyRelu":
            doubled = (x.astype(np.float64),)
            yield Case(f"{name}-float64", name, doubled, function, attributes, wide, onnx=False)
        yield Case(f"{name}-empty", name, (empty(3, 0),), function, attributes, onnx=False)
        if name in _DIFFERENTIABLE:
            yield Case(
                f"{name}Grad",
                f"{name}Grad",
                (x, g),
                lambda x, g, f=function: _slope(f, x, g),
                attributes,
                _GRADIENT,
                onnx=False,
            )
    yield Case("Gelu-tanh", "Gelu", (x,), _gelu_tanh, {"approximate": "tanh"}, STEPS)
    tanh = {"approximate": "tanh"}
    yield Case(
        "GeluGrad-tanh",
        "GeluGrad",
        (x, g),
        lambda x, g: _slope(_gelu_tanh, x, g),
        tanh,
        _GRADIENT,
        onnx=False,
    )
    gradients: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "ReluGrad": lambda x, g: np.where(x > 0, g, 0),
        "SigmoidGrad": lambda y, g: g * y * (1 - y),
        "TanhGrad": lambda y, g: g * (1 - y * y),
        "SoftplusGrad": lambda x, g: g * _sigmoid(x),
        "ErfGrad": lambda x, g: g * 2 / np.sqrt(np.pi) * np.exp(-x * x),
    }
    for name, formula in gradients.items():
        yield Case(name, name, (x, g), formula, bound=_GRADIENT, onnx=False)
    for count in (0, 5, 16, 45 * 7):
        some = _with_zeros(normal(count, seed=4))
        yield Case(
            f"ReluMask-{count}",
            "ReluMask",
            (some,),
            lambda x: (np.where(x < 0, 0, x), _mask(x)),
            onnx=False,
        )
        yield Case(
            f"ReluMaskGrad-{count}",
            "ReluMaskGrad",
            (_mask(some), normal(count, seed=5)),
            lambda mask, g: np.where(
                np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(g)], g, 0
            ),
            onnx=False,
        )
    limits = {"min": -1.0, "max": 2.0}
    yield Case("Clip", "Clip", (x,), lambda x: np.clip(x, -1, 2), limits)
    yield Case("Clip-below", "Clip", (x,), lambda x: np.maximum(x, -1), {"min": -1.0}, onnx=False)
    yield Case(
        "ClipGrad",
        "ClipGrad",
        (x, g),
        lambda x, g: np.where((x >= -1) & (x <= 2), g, 0),
        limits,
        onnx=False,
    )
    slope = normal(45, seed=3)
    yield Case("PRelu", "PRelu", (x, slope), lambda x, s: np.where(x < 0, s * x, x), bound=STEPS)


CASES = tuple(_cases())
