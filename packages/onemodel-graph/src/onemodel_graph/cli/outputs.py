"""Outputs of a run as named arrays, and how far two of them are apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(name, array) of an output: one, or those in a sequence, or in dicts of numbers by label.

    Texts are arrays of ``str``, so that they can be written without pickling.
    """
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from leaves(f"{name}[{index}]", entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(f"{name}[{key!r}]", entry)
    elif value is not None:
        array = np.asarray(value)
        yield name, array.astype(str) if array.dtype == object else array


def numbers_of(array: Any) -> list[str]:
    """The least, the mean and the greatest number; nothing for other arrays and empty ones."""
    if not array.size or array.dtype.kind not in "fiub":
        return []
    wide = array.astype(np.float64)
    return [f"{wide.min():.6g}", f"{wide.mean():.6g}", f"{wide.max():.6g}"]


def difference(a: Any, b: Any, tolerance: float) -> tuple[bool, float, str]:
    """(equal bits, largest difference over the largest value, the first place beyond tolerance)."""
    if a.shape != b.shape or (a.dtype != b.dtype and a.dtype.kind + b.dtype.kind != "UU"):
        return False, float("inf"), f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return True, 0.0, ""
    if a.dtype.kind == "U":
        relative = np.where(a == b, 0.0, np.inf)
    else:
        x, y = a.astype(np.float64), b.astype(np.float64)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        finite = np.isfinite(x) & np.isfinite(y)
        scale = max(float(np.abs(y[np.isfinite(y)]).max(initial=0.0)), 1e-30)
        relative = np.where(same, 0.0, np.inf)
        relative[finite] = np.abs(x[finite] - y[finite]) / scale
    beyond = np.argwhere(relative > tolerance)
    place = ""
    if len(beyond):
        at = tuple(int(i) for i in beyond[0])
        place = f"{at}: {a[at]} and {b[at]}"
    largest = float(relative.max(initial=0.0))
    return a.dtype.kind == "U" and largest == 0.0, largest, place
