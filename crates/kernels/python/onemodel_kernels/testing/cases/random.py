"""Cases of random kernels, with Philox4x32-10 written out in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound

_SEED, _COUNTER = 2**40 + 77, 3


def _words(blocks: int) -> Tensor:
    """The four words of each block, (blocks, 4)."""
    index = np.arange(blocks, dtype=np.uint64)
    low = np.uint64(2**32 - 1)
    a, b = index & low, index >> np.uint64(32)
    c = np.full(blocks, _COUNTER & 0xFFFFFFFF, np.uint64)
    d = np.full(blocks, _COUNTER >> 32, np.uint64)
    k0, k1 = _SEED & 0xFFFFFFFF, _SEED >> 32
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (
            (q >> np.uint64(32)) ^ b ^ np.uint64(k0),
            q & low,
            (p >> np.uint64(32)) ^ d ^ np.uint64(k1),
            p & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([a, b, c, d], 1)


def _wide(blocks: int) -> Tensor:
    words = _words(blocks)
    return np.asarray(words[:, 0::2] | words[:, 1::2] << np.uint64(32)).ravel()


def _uniform() -> Tensor:
    u = (_words(251).ravel()[:1001] >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    return np.asarray(np.float32(-1.5) + np.float32(4.0) * u).reshape(7, 143)


def _uniform_f64() -> Tensor:
    u = (_wide(501)[:1001] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return -1.5 + 4.0 * u


def _normal() -> Tensor:
    words = _words(251).astype(np.float64)
    u, v = (words[:, 0::2] + 1) * 2.0**-32, words[:, 1::2] * 2.0**-32
    r = np.sqrt(-2 * np.log(u))
    pairs = np.stack([r * np.cos(2 * np.pi * v), r * np.sin(2 * np.pi * v)], 2)
    return np.asarray(0.5 + 2.0 * pairs.reshape(-1)[:1001])


def _bernoulli() -> Tensor:
    return np.asarray(_words(251).ravel()[:1001].astype(np.float64) * 2.0**-32 < 0.3)


def _integers() -> Tensor:
    return np.array([-3 + (int(w) * 10 >> 64) for w in _wide(501)[:1001]])


def _permutation() -> Tensor:
    order = list(range(100))
    for word, i in zip(_wide(50), range(99, 0, -1), strict=False):
        j = int(word) * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return np.array(order)


def _case(name: str, operator: str, oracle: Callable[[], Tensor], **attributes: Any) -> Case:
    attributes = {"seed": _SEED, "counter": _COUNTER, **attributes}
    near = bound(absolute=1e-6, why="own logarithm, sine and cosine; one rounding to float32")
    return Case(
        name,
        operator,
        (),
        oracle,
        attributes,
        near if operator == "RandomNormal" else bound(),
        onnx=False,
    )


_BOUNDS = {"low": -1.5, "high": 2.5}
CASES = [
    _case("RandomUniform", "RandomUniform", _uniform, shape=(7, 143), **_BOUNDS),
    _case(
        "RandomUniform-float64",
        "RandomUniform",
        _uniform_f64,
        shape=(1001,),
        dtype="float64",
        **_BOUNDS,
    ),
    _case("RandomNormal", "RandomNormal", _normal, shape=(1001,), mean=0.5, std=2.0),
    _case("RandomBernoulli", "RandomBernoulli", _bernoulli, shape=(1001,), p=0.3),
    _case("RandomIntegers", "RandomIntegers", _integers, shape=(1001,), low=-3, high=7),
    _case("RandomPermutation", "RandomPermutation", _permutation, n=100),
]
