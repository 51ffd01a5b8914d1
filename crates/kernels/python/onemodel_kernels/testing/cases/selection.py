"""Cases of what depends on values: positions of non-zeros, selections, distinct values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor
from onemodel_kernels.testing.inputs import booleans, integers, normal


def _nonzero() -> Iterator[Case]:
    inputs: dict[str, Tensor] = {
        "bool": booleans(4, 5, seed=1),
        "int64": integers(3, 2, 4, seed=2, low=-1, high=2),
        "float32": np.array([0.0, -0.0, np.nan, 1e-45, -2.0], np.float32),
        "none": np.zeros((3, 3), np.float32),
        "empty": np.zeros((0, 2), np.int64),
    }
    for name, x in inputs.items():
        yield Case(f"NonZero-{name}", "NonZero", (x,), lambda x: np.stack(np.nonzero(x)))


def _compress() -> Iterator[Case]:
    x = normal(3, 4, 5, seed=1)
    for axis in (0, 1, 2, -1):
        condition = booleans(x.shape[axis], seed=4 + axis)
        yield Case(
            f"Compress-{axis}",
            "Compress",
            (x, condition),
            lambda x, c, axis=axis: np.compress(c.astype(bool), x, axis),
            {"axis": axis},
        )
    yield Case(
        "Compress-flat",
        "Compress",
        (x, booleans(60, seed=3)),
        lambda x, c: np.compress(c.astype(bool), x),
    )


def _unique() -> Iterator[Case]:
    def sorted_values(x: Tensor) -> tuple[Tensor, ...]:
        values, first, inverse, counts = np.unique(x, True, True, True)
        return values, first, inverse.ravel(), counts

    for name, x in (
        ("float32", np.round(normal(40, seed=1)) + np.float32(0.0)),
        ("int64", integers(5, 6, seed=2, low=-3, high=4)),
        ("one", integers(1, seed=3)),
    ):
        yield Case(f"Unique-{name}", "Unique", (x,), sorted_values, {"sorted": 1})


CASES = [*_nonzero(), *_compress(), *_unique()]
