"""Cases of Resize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import integers, normal

_SIZES = {"grow": (7, 11), "shrink": (3, 2), "mixed": (2, 13), "one": (1, 9)}
_NEAR = bound(absolute=1e-6, why="weights rounded to float32, one axis after the other")


def _source(place: int, n: int, m: int, transformation: str) -> float:
    if transformation == "align_corners":
        return place * (n - 1) / (m - 1) if m > 1 else 0.0
    if transformation == "asymmetric":
        return place * n / m
    if transformation == "pytorch_half_pixel" and m == 1:
        return 0.0
    return (place + 0.5) * n / m - 0.5


def _cubic(d: float, a: float = -0.75) -> float:
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _weights(n: int, m: int, mode: str, transformation: str) -> Tensor:
    out = np.zeros((m, n))
    for place in range(m):
        x = _source(place, n, m, transformation)
        low = int(np.floor(x))
        if mode == "nearest":
            out[place, min(max(low, 0), n - 1)] = 1
            continue
        reach = range(low, low + 2) if mode == "linear" else range(low - 1, low + 3)
        for at in reach:
            w = 1 - abs(x - at) if mode == "linear" else _cubic(x - at)
            out[place, min(max(at, 0), n - 1)] += w
    return out


def _resized(sizes: tuple[int, int], mode: str, transformation: str) -> Callable[..., Any]:
    def oracle(x: Tensor) -> Tensor:
        rows = _weights(x.shape[2], sizes[0], mode, transformation)
        columns = _weights(x.shape[3], sizes[1], mode, transformation)
        return np.asarray(np.einsum("ih,jw,nchw->ncij", rows, columns, x))

    return oracle


def _cases() -> list[Case]:
    found = []
    x = normal(2, 3, 5, 6, seed=1)
    for mode in ("nearest", "linear", "cubic"):
        for transformation in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
            for name, sizes in _SIZES.items():
                attributes = {
                    "mode": mode,
                    "coordinate_transformation_mode": transformation,
                    "nearest_mode": "floor",
                    "sizes": (2, 3, *sizes),
                }
                found.append(
                    Case(
                        f"Resize-{mode}-{transformation}-{name}",
                        "Resize",
                        (x,),
                        _resized(sizes, mode, transformation),
                        attributes,
                        bound() if mode == "nearest" else _NEAR,
                    )
                )
    whole = integers(1, 2, 4, 4, seed=2, low=0, high=255, dtype=np.uint8)
    found.append(
        Case(
            "Resize-uint8",
            "Resize",
            (whole,),
            lambda x: np.repeat(np.repeat(x, 2, 2), 3, 3),
            {
                "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "floor",
                "scales": (1.0, 1.0, 2.0, 3.0),
            },
            onnx=False,
        )
    )
    return found


CASES = _cases()
