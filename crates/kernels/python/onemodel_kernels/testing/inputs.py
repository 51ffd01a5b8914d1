"""Seeded inputs: ordinary numbers, edge values, strided and empty arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Tensor


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32, scale: float = 1.0) -> Tensor:
    """Normally distributed numbers."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


def uniform(
    *shape: int, seed: int = 0, low: float = 0.0, high: float = 1.0, dtype: Any = np.float32
) -> Tensor:
    """Evenly distributed numbers."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def integers(
    *shape: int, seed: int = 0, low: int = -10, high: int = 10, dtype: Any = np.int64
) -> Tensor:
    """Whole numbers from low to below high."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def booleans(*shape: int, seed: int = 0) -> Tensor:
    """True and false, half and half."""
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def edges(dtype: Any = np.float32) -> Tensor:
    """Every kind of number: zeros of both signs, denormals, limits, infinities, NaN, halves."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        values = {0, 1, 2, 3, 7, info.min, info.max, info.max - 1}
        if kind.kind == "i":
            values |= {-1, -2, -3, -7, info.min + 1}
        return np.array(sorted(values), dtype=kind)
    limits = np.finfo(kind)
    tiny, least = float(limits.tiny), float(limits.smallest_subnormal)
    values_ = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 10.0, 88.0, tiny, least, float(limits.max)]
    values_ += [float(limits.eps), 1.0 + float(limits.eps), np.inf]
    both = values_ + [-v for v in values_] + [np.nan]
    return np.array(both, dtype=kind)


def strided(a: Tensor) -> Tensor:
    """The same elements in memory with gaps, reversed along the last axis."""
    if a.ndim == 0:
        return a
    wide = np.zeros((*a.shape[:-1], a.shape[-1] * 2), dtype=a.dtype)
    view = wide[..., ::-2]
    view[...] = a
    return view


def transposed(a: Tensor) -> Tensor:
    """The same elements in memory in the reverse order of axes."""
    if a.ndim == 0:
        return a
    return np.ascontiguousarray(a.T).T


def empty(*shape: int, dtype: Any = np.float32) -> Tensor:
    """An array of which at least one extent is 0."""
    return np.zeros(shape, dtype=dtype)
