"""Cases of products of 8-bit integers and of the LSTM with 8-bit weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import integers, normal


def _bytes(*shape: int, seed: int, dtype: Any) -> Tensor:
    info = np.iinfo(dtype)
    return integers(*shape, seed=seed, low=info.min, high=info.max + 1, dtype=dtype)


def _product(a: Tensor, b: Tensor, a_zero: Any = 0, b_zero: Any = 0) -> Tensor:
    wide = a.astype(np.int64) - np.int64(a_zero)
    return np.asarray(wide @ (b.astype(np.int64) - np.asarray(b_zero, np.int64)))


def _products() -> list[Case]:
    found = []
    for left in (np.uint8, np.int8):
        for right in (np.uint8, np.int8):
            a = _bytes(3, 5, 70, seed=1, dtype=left)
            b = _bytes(70, 37, seed=2, dtype=right)
            zeros = np.array(7, left), _bytes(37, seed=3, dtype=right)
            name = f"MatMulInteger-{a.dtype.name}-{b.dtype.name}"
            found.append(Case(name, "MatMulInteger", (a, b), _product))
            one = (a[0], b, zeros[0], np.array(5, right))
            found.append(Case(f"{name}-zeros", "MatMulInteger", one, _product))
            found.append(
                Case(
                    f"{name}-zero-each",
                    "MatMulInteger",
                    (a, b, *zeros),
                    _product,
                    onnx=left is np.uint8,
                )
            )
    return found


def _quantised(x: Tensor) -> tuple[Tensor, float]:
    """Numbers less their zero point, and the scale, by DynamicQuantizeLinear in f32."""
    x = x.astype(np.float32)
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = np.float32(1) if high == low else (high - low) / np.float32(255)
    zero = np.rint(np.clip(0 - low / scale, 0, 255))
    return np.clip(np.rint(x / scale) + zero, 0, 255) - zero, float(scale)


def _sigmoid(x: Tensor) -> Tensor:
    return np.asarray(1 / (1 + np.exp(-x)))


def _lstm(*inputs: Any) -> tuple[Tensor, ...]:
    """DynamicQuantizeLSTM, forward: quantisations as defined, everything else in f64."""
    x, w, r, b, _, h, c, _, w_scale, w_zero, r_scale, r_zero = inputs
    hidden = r.shape[1]
    h = np.zeros((x.shape[1], hidden)) if h is None else h[0]
    c = np.zeros_like(h) if c is None else c[0]
    bias = np.zeros(4 * hidden) if b is None else b[0, : 4 * hidden] + b[0, 4 * hidden :]
    of_w, of_r = (m[0].astype(np.float64) - z[0] for m, z in ((w, w_zero), (r, r_zero)))
    ints, scale = _quantised(x)
    y = []
    for step in ints:
        small, h_scale = _quantised(h)
        gates = step @ of_w * (scale * w_scale[0]) + small @ of_r * (h_scale * r_scale[0]) + bias
        i, o, f, g = np.split(gates, 4, -1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        y.append(h)
    return np.stack(y)[:, None], h[None], c[None]


def _lstms() -> list[Case]:
    found = []
    for dtype in (np.int8, np.uint8):
        for each in (False, True):
            hidden, width, batch = 21, 10, 3
            w = _bytes(1, width, 4 * hidden, seed=1, dtype=dtype)
            r = _bytes(1, hidden, 4 * hidden, seed=2, dtype=dtype)
            per = (1, 4 * hidden) if each else (1,)
            scale = np.full(per, 0.01, np.float32)
            zero = np.full(per, 3, dtype)
            bias = normal(1, 8 * hidden, seed=3) if each else None
            state = normal(1, batch, hidden, seed=4, scale=0.4) if each else None
            x = normal(4, batch, width, seed=5)
            inputs = (x, w, r, bias, None, state, state, None, scale, zero, scale, zero)
            found.append(
                Case(
                    f"DynamicQuantizeLSTM-{w.dtype.name}{'-each' if each else ''}",
                    "DynamicQuantizeLSTM",
                    inputs,
                    _lstm,
                    {"direction": "forward"},
                    bound(absolute=1e-5, why="f32, and rational functions of the operator"),
                    onnx=False,
                )
            )
    return found


CASES = [*_products(), *_lstms()]
