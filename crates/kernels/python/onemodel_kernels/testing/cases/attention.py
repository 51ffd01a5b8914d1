"""Cases of attention by one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import empty, normal

NEAR = bound(
    scaled=3e-6,
    why="scores of up to about 10 in float32, then two chains; measured against the largest value",
)

_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "one": ((1, 1), (1, 1), (1, 1)),
    "heads": ((2, 6, 33, 32), (2, 6, 40, 32), (2, 6, 40, 32)),
    "odd": ((3, 5, 7), (3, 9, 7), (3, 9, 11)),
    "tiles": ((2, 50, 64), (2, 600, 64), (2, 600, 64)),
    "query": ((4, 1, 64), (4, 300, 64), (4, 300, 64)),
    "broadcast": ((4, 3, 17, 8), (3, 20, 8), (4, 1, 20, 5)),
}


def attention(scale: float | None = None, causal: bool = False) -> Callable[..., Any]:
    """The formula."""

    def oracle(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
        scores = factor * (q @ np.swapaxes(k, -1, -2))
        if mask is not None:
            scores = scores + mask
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
        if scores.shape[-1] == 0:
            return np.asarray(scores @ v)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(weights / weights.sum(-1, keepdims=True) @ v)

    return oracle


def _cases() -> list[Case]:
    found = []

    def add(name: str, given: tuple[Tensor, ...], **attributes: Any) -> None:
        oracle = attention(attributes.get("scale"), bool(attributes.get("causal")))
        label = f"FusedAttention-{name}"
        case = Case(label, "FusedAttention", given, oracle, attributes, NEAR, onnx=False)
        found.append(case)

    for name, shapes in _SHAPES.items():
        given = tuple(normal(*shape, seed=seed) for seed, shape in enumerate(shapes, 1))
        add(name, given)
        add(f"{name}-causal", given, causal=1)
        keys = shapes[1][-2]
        add(f"{name}-masked", (*given, normal(shapes[0][-2], keys, seed=4)), scale=0.25)
        padding = np.where(np.arange(keys) < (keys + 1) // 2, 0.0, -np.inf).astype(np.float32)
        add(f"{name}-padded", (*given, padding))
    q, k, v = normal(3, 5, seed=5), normal(4, 5, seed=6), normal(4, 6, seed=7)
    hidden = normal(3, 4, seed=8)
    hidden[1] = -np.inf
    add("hidden", (q, k, v, hidden))
    edge = k.copy()
    edge[2, 1] = np.nan
    add("not-a-number", (q, edge, v))
    add("no-keys", (q, empty(0, 5), empty(0, 6)))
    add("no-queries", (empty(0, 5), k, v))
    return found


CASES = _cases()
