"""Convolutions, pools, resizing and padding against their definitions in float64."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracle import close, draw, t

from onemodel_tensors import functional as F


def convolve(x, w, b, stride, pad, dilation, groups):
    """The definition, for any number of axes."""
    nd = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in pad]])
    n = len(x)
    m, cg = w.shape[:2]
    sizes = [
        (x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1
        for i in range(nd)
    ]
    out = np.zeros((n, m, *sizes))
    for place in itertools.product(*[range(k) for k in w.shape[2:]]):
        part = x[
            (
                slice(None),
                slice(None),
                *[
                    slice(p * d, p * d + (s - 1) * st + 1, st)
                    for p, d, s, st in zip(place, dilation, sizes, stride)
                ],
            )
        ]
        for g in range(groups):
            rows = slice(g * m // groups, (g + 1) * m // groups)
            out[:, rows] += np.einsum(
                "nc...,mc->nm...", part[:, g * cg : (g + 1) * cg], w[(rows, slice(None), *place)]
            )
    return out if b is None else out + b.reshape(1, -1, *[1] * nd)


@pytest.mark.parametrize(
    ("x", "w", "stride", "pad", "dilation", "groups"),
    [
        ((2, 3, 8), (4, 3, 3), (2,), (1,), (1,), 1),
        ((2, 4, 6, 5), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2),
        ((1, 3, 5, 5), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),
        ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), (1, 2, 1), (0, 1, 0), (1, 1, 1), 1),
        ((2, 3, 4, 4), (5, 3, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ],
)
def test_convolution(x, w, stride, pad, dilation, groups):
    nd = len(x) - 2
    a, b, c = draw(*x), draw(*w), draw(w[0])
    conv = getattr(F, f"conv{nd}d")
    close(
        conv(t(a), t(b), t(c), stride, pad, dilation, groups),
        convolve(a, b, c, stride, pad, dilation, groups),
    )
    close(
        conv(t(a[0]), t(b), None, stride, pad, dilation, groups),
        convolve(a[:1], b, None, stride, pad, dilation, groups)[0],
    )


def test_same_padding_adds_the_odd_position_at_the_end():
    a, w = draw(1, 1, 5), draw(1, 1, 4)
    expected = convolve(np.pad(a, [(0, 0), (0, 0), (1, 2)]), w, None, (1,), (0,), (1,), 1)
    close(F.conv1d(t(a), t(w), padding="same"), expected)


def test_transposed_convolution_is_the_transpose():
    x, w = draw(2, 4, 3, 4), draw(4, 3, 3, 2)
    y = F.conv_transpose2d(t(x), t(w), None, (2, 1), (1, 0), (1, 0), 2, (1, 2))
    probe = draw(*y.shape)
    back = convolve(probe, w, None, (2, 1), (1, 0), (1, 2), 2)
    np.testing.assert_allclose((y.numpy() * probe).sum(), (x * back).sum(), rtol=1e-10)


def pool(x, window, stride, pad, dilation, ceil, fill):
    """The windows of a pool as (…, positions, elements), padding as ``fill``."""
    sizes = []
    for n, k, s, p, d in zip(x.shape[2:], window, stride, pad, dilation):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil else room // s) + 1
        sizes.append(count - 1 if ceil and (count - 1) * s >= n + p else count)
    wide = np.pad(
        x,
        [
            (0, 0),
            (0, 0),
            *[(p, p + k * d + s) for p, k, d, s in zip(pad, window, dilation, stride)],
        ],
        constant_values=fill,
    )
    parts = [
        wide[
            (
                slice(None),
                slice(None),
                *[
                    slice(q * d, q * d + (n - 1) * s + 1, s)
                    for q, d, n, s in zip(place, dilation, sizes, stride)
                ],
            )
        ]
        for place in itertools.product(*[range(k) for k in window])
    ]
    return np.stack(parts, -1)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("k", "s", "p"), [((2, 2), (2, 2), (0, 0)), ((3, 2), (2, 1), (1, 1)), ((3, 3), (1, 2), (1, 0))]
)
def test_pools(ceil, k, s, p):
    x = draw(2, 3, 7, 6)
    close(
        F.max_pool2d(t(x), k, s, p, ceil_mode=ceil), pool(x, k, s, p, (1, 1), ceil, -np.inf).max(-1)
    )
    windows = pool(x, k, s, p, (1, 1), ceil, 0.0)
    counts = pool(np.ones_like(x), k, s, p, (1, 1), ceil, 0.0).sum(-1)
    close(F.avg_pool2d(t(x), k, s, p, ceil, False), windows.sum(-1) / counts)
    edges = [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])]
    padded = np.pad(np.ones_like(x), edges, constant_values=1.0)
    inside = pool(padded, k, s, (0, 0), (1, 1), ceil, 0.0).sum(-1)[
        :, :, : windows.shape[2], : windows.shape[3]
    ]
    close(F.avg_pool2d(t(x), k, s, p, ceil, True), windows.sum(-1) / inside)


def test_dilated_pool_and_its_positions():
    x = draw(1, 2, 7, 8)
    y, places = F.max_pool2d(t(x), 2, 2, 0, 3, return_indices=True)
    close(y, pool(x, (2, 2), (2, 2), (0, 0), (3, 3), False, -np.inf).max(-1))
    np.testing.assert_array_equal(
        np.take_along_axis(x.reshape(1, 2, -1), places.numpy().reshape(1, 2, -1), 2),
        y.numpy().reshape(1, 2, -1),
    )


@pytest.mark.parametrize("size", [1, (2, 3), (None, 1), (3, None), 7])
def test_adaptive_pools(size):
    x = draw(2, 3, 6, 7)
    wanted = [
        n if n is not None else e
        for n, e in zip((size,) * 2 if isinstance(size, int) else size, (6, 7))
    ]
    mean, largest = np.zeros((2, 3, *wanted)), np.zeros((2, 3, *wanted))
    for i, j in itertools.product(range(wanted[0]), range(wanted[1])):
        part = x[
            :,
            :,
            i * 6 // wanted[0] : -(-(i + 1) * 6 // wanted[0]),
            j * 7 // wanted[1] : -(-(j + 1) * 7 // wanted[1]),
        ]
        mean[:, :, i, j], largest[:, :, i, j] = part.mean((2, 3)), part.max((2, 3))
    close(F.adaptive_avg_pool2d(t(x), size), mean)
    close(F.adaptive_max_pool2d(t(x), size), largest)


def resized(x, n, mode, corners):
    """One axis, the last, by its definition."""
    m = x.shape[-1]
    out = np.zeros((*x.shape[:-1], n))
    for i in range(n):
        if mode == "nearest":
            out[..., i] = x[..., min(int(i * m / n), m - 1)]
            continue
        at = (
            i * (m - 1) / (n - 1)
            if corners and n > 1
            else 0.0
            if corners
            else (i + 0.5) * m / n - 0.5
        )
        if mode == "linear":
            at = max(at, 0.0)
            low = min(int(at), m - 1)
            high = min(low + 1, m - 1)
            out[..., i] = x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)
        else:
            base, a = math.floor(at), -0.75
            for k in range(base - 1, base + 3):
                d = abs(at - k)
                weight = (
                    (a + 2) * d**3 - (a + 3) * d**2 + 1
                    if d <= 1
                    else a * (d**3 - 5 * d**2 + 8 * d - 4)
                )
                out[..., i] += weight * x[..., min(max(k, 0), m - 1)]
    return out


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(7, 3), (2, 8), (5, 1)])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolate(mode, size, corners):
    if mode == "nearest" and corners:
        pytest.skip("nearest has no corners")
    x = draw(2, 2, 5, 4)
    axis = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[mode]
    expected = resized(
        resized(x, size[1], axis, corners).swapaxes(2, 3), size[0], axis, corners
    ).swapaxes(2, 3)
    got = F.interpolate(t(x), size, mode=mode, align_corners=corners if mode != "nearest" else None)
    close(got, expected, rtol=1e-6, atol=1e-6)  # coordinates are computed in float32


def test_interpolate_by_factor():
    x = draw(1, 1, 3, 3)
    close(F.interpolate(t(x), scale_factor=2), x.repeat(2, 2).repeat(2, 3))


PADS = [
    ((1, 2), "constant"),
    ((1, 0, 2, 1), "constant"),
    ((-1, 1), "constant"),
    ((2, 1), "reflect"),
    ((1, 1, 2, 0), "replicate"),
    ((2, 3), "circular"),
]


@pytest.mark.parametrize(("amounts", "mode"), PADS)
def test_pad(amounts, mode):
    x = draw(2, 2, 3, 4)
    widths = [(0, 0)] * (4 - len(amounts) // 2) + [
        tuple(amounts[i : i + 2]) for i in range(len(amounts) - 2, -1, -2)
    ]
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[
        mode
    ]
    cut = tuple(slice(max(0, -b), n - max(0, -a)) for n, (b, a) in zip(x.shape, widths))
    positive = [(max(0, b), max(0, a)) for b, a in widths]
    options = {"constant_values": 1.5} if mode == "constant" else {}
    close(
        F.pad(t(x), amounts, mode, 1.5 if mode == "constant" else None),
        np.pad(x[cut], positive, kind, **options),
    )


def test_patches():
    x = draw(2, 3, 5, 6)
    got = F.unfold(t(x), (2, 3), 1, (1, 0), (2, 1)).numpy()
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)])
    columns = [
        wide[:, :, i : i + 2, j : j + 3].reshape(2, -1) for i in range(0, 6, 2) for j in range(4)
    ]
    np.testing.assert_array_equal(got, np.stack(columns, 2))
    back = F.fold(t(got), (5, 6), (2, 3), 1, (1, 0), (2, 1)).numpy()
    probe = draw(2, 3, 5, 6)
    np.testing.assert_allclose(
        (F.unfold(t(probe), (2, 3), 1, (1, 0), (2, 1)).numpy() * got).sum(),
        (probe * back).sum(),
        rtol=1e-10,
    )
    np.testing.assert_array_equal(
        t(x).unfold(3, 2, 2).numpy(),
        np.lib.stride_tricks.sliding_window_view(x, 2, 3)[:, :, :, ::2],
    )
