"""Cases of losses with their own kernels, optimiser steps and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import integers, normal


def _nll() -> list[Case]:
    scores = normal(4, 5, 3, seed=1)
    target = integers(4, 3, seed=2, low=0, high=5)
    target[0, 1] = -100
    weight = np.abs(normal(5, seed=3))

    def loss(logp: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        kept = target >= 0
        index = np.where(kept, target, 0)
        share = np.where(kept, weight[index], 0)
        picked = np.take_along_axis(logp, index[:, None], 1)[:, 0]
        return np.where(kept, -share * picked, 0), share

    def slope(g: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        out = np.zeros((4, 5, 3))
        for at in np.ndindex(target.shape):
            if target[at] >= 0:
                out[at[0], target[at], at[1]] = -(weight[target[at]] * g[at])
        return out

    ignored: dict[str, Any] = {"ignore_index": -100}
    return [
        Case("NllLoss", "NllLoss", (scores, target, weight), loss, ignored, onnx=False),
        Case(
            "NllLossGrad",
            "NllLossGrad",
            (normal(4, 3, seed=4), target, weight),
            slope,
            {**ignored, "input_shape": (4, 5, 3)},
            onnx=False,
        ),
    ]


def _ctc_row(logp: Tensor, labels: list[int], blank: int) -> tuple[float, Tensor]:
    """Loss and gradient of one sample by plain (unlogged) sums in f64."""
    steps, classes = logp.shape
    states = [blank]
    for label in labels:
        states += [label, blank]
    count = len(states)
    p = np.exp(logp)[:, states]
    step = np.zeros((count, count))
    for s in range(count):
        step[s, s] = 1
        if s >= 1:
            step[s - 1, s] = 1
        if s >= 2 and states[s] != blank and states[s] != states[s - 2]:
            step[s - 2, s] = 1
    alpha = np.zeros((steps, count))
    alpha[0, :2] = p[0, :2]
    for t in range(1, steps):
        alpha[t] = (alpha[t - 1] @ step) * p[t]
    beta = np.zeros((steps, count))
    beta[-1, -2:] = 1
    for t in range(steps - 2, -1, -1):
        beta[t] = step @ (beta[t + 1] * p[t + 1])
    total = alpha[-1, -2:].sum()
    gradient = np.zeros((steps, classes))
    for s, label in enumerate(states):
        gradient[:, label] -= alpha[:, s] * beta[:, s] / total
    return -float(np.log(total)), gradient


def _ctc() -> list[Case]:
    found = []
    for dtype in (np.float32, np.float64):
        logits = normal(12, 4, 7, seed=5).astype(np.float64)
        logp = (logits - np.log(np.exp(logits).sum(-1, keepdims=True))).astype(dtype)
        targets = integers(4, 5, seed=6, low=1, high=7)
        lengths, counts = np.array([12, 9, 12, 5]), np.array([5, 3, 0, 2])

        def oracle(
            logp: Tensor, targets: Tensor, lengths: Tensor, counts: Tensor
        ) -> tuple[Tensor, Tensor]:
            losses = np.zeros(4)
            gradient = np.zeros(logp.shape)
            for b in range(4):
                n = lengths[b]
                labels = [int(v) for v in targets[b, : counts[b]]]
                losses[b], gradient[:n, b] = _ctc_row(logp[:n, b], labels, 0)
            return losses, gradient

        near = bound(absolute=2e-6 if dtype == np.float32 else 1e-13, why="sums in log space")
        found.append(
            Case(
                f"CTCLoss-{np.dtype(dtype).name}",
                "CTCLoss",
                (logp, targets, lengths, counts),
                oracle,
                {"blank": 0},
                near,
                onnx=False,
            )
        )
    return found


def _steps() -> list[Case]:
    p, g, m = normal(40, 9, seed=7), normal(40, 9, seed=8), normal(40, 9, seed=9, scale=0.1)
    v = np.abs(normal(40, 9, seed=10, scale=0.01))
    near = bound(scaled=3e-7, why="one rounding for each of the formula's operations")

    def sgd(p: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        g = g + 0.01 * p
        b = 0.9 * b + g
        return p - 0.1 * (g + 0.9 * b), b

    def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        p = p * (1 - 1e-3 * 0.05)
        m, v = m + 0.1 * (g - m), 0.999 * v + 0.001 * g * g
        root = np.sqrt(v / (1 - 0.999**3))
        return p - 1e-3 * (m / (1 - 0.9**3)) / (root + 1e-8), m, v

    def norm(*arrays: Tensor) -> Tensor:
        return np.asarray(np.sqrt(sum((a * a).sum() for a in arrays)))

    momentum = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": 1}
    rates = {"lr": 1e-3, "weight_decay": 0.05, "step": 3}
    one = bound(ulp=1, why="one rounding of a sum in f64")
    return [
        Case("SgdStep", "SgdStep", (p, g, m), sgd, momentum, near, onnx=False),
        Case("AdamWStep", "AdamWStep", (p, g, m, v), adam, rates, near, onnx=False),
        Case("GlobalNorm", "GlobalNorm", (p, g, m), norm, {}, one, onnx=False),
    ]


CASES = [*_nll(), *_ctc(), *_steps()]
