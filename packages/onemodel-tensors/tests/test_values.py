"""Forward values against numpy in float64: arguments, axes and defaults mean what PyTorch means by them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F

RNG = np.random.default_rng(7)


def draw(*shape):
    return RNG.uniform(-2, 2, shape)


def close(got, expected, rtol=1e-12, atol=1e-13):
    """float64 against numpy's float64, whose functions and sums round differently in the last bits."""
    got = got.detach().numpy() if isinstance(got, om.Tensor) else got
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def t(array):
    return om.from_numpy(np.asarray(array))


UNARY = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "neg": np.negative,
    "reciprocal": np.reciprocal,
    "round": np.round,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "rsqrt": lambda x: x**-0.5,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf),
    "frac": lambda x: x - np.trunc(x),
}
DOMAIN = {
    "acosh": (1.1, 4),
    "log": (0.1, 4),
    "log2": (0.1, 4),
    "log10": (0.1, 4),
    "sqrt": (0, 4),
    "rsqrt": (0.1, 4),
    "acos": (-0.9, 0.9),
    "asin": (-0.9, 0.9),
    "atanh": (-0.9, 0.9),
    "log1p": (-0.9, 3),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name):
    x = RNG.uniform(*DOMAIN.get(name, (-3, 3)), (3, 4))
    # The polynomials of erf are good to 1e-10 in float64.
    close(getattr(om, name)(t(x)), UNARY[name](x), rtol=1e-9)
    got = getattr(om, name)(t(x.astype(np.float32)))
    assert got.dtype == "float32"
    # float32 results are within 2 units in the last place, and the argument was rounded.
    close(
        got,
        UNARY[name](x.astype(np.float32).astype(np.float64)).astype(np.float32),
        rtol=3e-7,
        atol=1e-7,
    )


X = draw(3, 4)
POS = np.maximum(X, 0)
SOFTPLUS = np.log1p(np.exp(X))
PHI = 0.5 * (1 + np.vectorize(math.erf)(X / math.sqrt(2)))
ACTIVATIONS = {
    "relu": (F.relu, POS),
    "relu6": (lambda x: F.relu6(x * 5), np.clip(X * 5, 0, 6)),
    "hardtanh": (F.hardtanh, np.clip(X, -1, 1)),
    "leaky_relu": (F.leaky_relu, np.where(X > 0, X, 0.01 * X)),
    "elu": (lambda x: F.elu(x, 0.7), np.where(X > 0, X, 0.7 * np.expm1(X))),
    "celu": (lambda x: F.celu(x, 0.7), POS + np.minimum(0.7 * np.expm1(X / 0.7), 0)),
    "selu": (F.selu, 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    "gelu": (F.gelu, X * PHI),
    "gelu-tanh": (
        lambda x: F.gelu(x, "tanh"),
        0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    ),
    "silu": (F.silu, X / (1 + np.exp(-X))),
    "mish": (F.mish, X * np.tanh(SOFTPLUS)),
    "softplus": (F.softplus, SOFTPLUS),
    "softplus-beta": (
        lambda x: F.softplus(x, 2, 1),
        np.where(2 * X > 1, X, np.log1p(np.exp(2 * X)) / 2),
    ),
    "hardsigmoid": (F.hardsigmoid, np.clip(X / 6 + 0.5, 0, 1)),
    "hardswish": (F.hardswish, X * np.clip(X / 6 + 0.5, 0, 1)),
    "softsign": (F.softsign, X / (1 + np.abs(X))),
    "hardshrink": (F.hardshrink, np.where(np.abs(X) > 0.5, X, 0)),
    "softshrink": (F.softshrink, np.sign(X) * np.maximum(np.abs(X) - 0.5, 0)),
    "tanhshrink": (F.tanhshrink, X - np.tanh(X)),
    "logsigmoid": (F.logsigmoid, -np.log1p(np.exp(-X))),
    "threshold": (lambda x: F.threshold(x, 0.1, 9.0), np.where(X > 0.1, X, 9.0)),
    "glu": (F.glu, X[:, :2] / (1 + np.exp(-X[:, 2:]))),
    "prelu": (lambda x: F.prelu(x, t(np.full(4, 0.3))), np.where(X > 0, X, 0.3 * X)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    function, expected = ACTIVATIONS[name]
    close(function(t(X)), expected, rtol=1e-9)  # erf, as above


def test_rounding_to_decimals():
    x = np.array([1.25, -2.675, 0.5, 1234.5])
    close(om.round(t(x), decimals=1), np.round(x, 1))
    close(om.round(t(x), decimals=-2), np.round(x, -2))


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2,)), ((0, 3), (1, 3)), ((3,), (3,))]
)
def test_arithmetic(shapes):
    a, b = (RNG.uniform(0.5, 3, s) for s in shapes)
    x, y = t(a), t(b)
    for got, expected in [
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x / y, a / b),
        (x // y, a // b),
        (x % y, a % b),
        (om.fmod(x, y), np.fmod(a, b)),
        (x**y, a**b),
        (om.maximum(x, y), np.maximum(a, b)),
        (om.minimum(x, y), np.minimum(a, b)),
        (om.atan2(x, y), np.arctan2(a, b)),
        (om.hypot(x, y), np.hypot(a, b)),
        (om.logaddexp(x, y), np.logaddexp(a, b)),
        (om.where(x > y, x, y), np.where(a > b, a, b)),
        (2 - x, 2 - a),
        (2 / x, 2 / a),
        (2**x, 2**a),
        (x**2, a**2),
        (x**0.5, a**0.5),
        (-x, -a),
    ]:
        close(got, expected)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        numpy_name = {
            "eq": "equal",
            "ne": "not_equal",
            "lt": "less",
            "le": "less_equal",
            "gt": "greater",
            "ge": "greater_equal",
        }[name]
        np.testing.assert_array_equal(
            getattr(om, name)(x, y).numpy(), getattr(np, numpy_name)(a, b)
        )


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_integer_arithmetic(dtype):
    a = np.array([7, -7, 7, -7, 100, 3] if dtype != "uint8" else [7, 9, 7, 5, 100, 3], dtype=dtype)
    b = np.array([2, 2, -2, -2, 3, 5] if dtype != "uint8" else [2, 2, 3, 4, 3, 5], dtype=dtype)
    x, y = t(a), t(b)
    for got, expected in [
        (x + y, a + b),
        (x * y, a * b),
        (x // y, a // b),
        (x % y, a % b),
        (om.fmod(x, y), np.fmod(a, b)),
        (x & y, a & b),
        (x | y, a | b),
        (x ^ y, a ^ b),
        (~x, ~a),
        (x**2, a**2),
        (om.maximum(x, y), np.maximum(a, b)),
        (abs(x), np.abs(a)),
    ]:
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.numpy(), expected)


REDUCTION_AXES = [None, 0, -1, (0, 2), (0, 1, 2)]


@pytest.mark.parametrize("axes", REDUCTION_AXES)
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(axes, keep):
    a = draw(2, 3, 4)
    x = t(a)
    for got, expected in [
        (x.sum(axes, keep), a.sum(axes, keepdims=keep)),
        (x.mean(axes, keep), a.mean(axes, keepdims=keep)),
        (x.prod(axes, keep), a.prod(axes, keepdims=keep)),
        (x.amax(axes, keep), a.max(axes, keepdims=keep)),
        (x.amin(axes, keep), a.min(axes, keepdims=keep)),
        (x.var(axes, keepdim=keep), a.var(axes, ddof=1, keepdims=keep)),
        (x.std(axes, correction=0, keepdim=keep), a.std(axes, keepdims=keep)),
        (x.logsumexp(axes, keep), np.log(np.exp(a).sum(axes, keepdims=keep))),
        (x.norm(2, axes, keep), np.sqrt((a * a).sum(axes, keepdims=keep))),
        (x.norm(1, axes, keep), np.abs(a).sum(axes, keepdims=keep)),
        (x.norm(math.inf, axes, keep), np.abs(a).max(axes, keepdims=keep)),
        (x.norm(3, axes, keep), (np.abs(a) ** 3).sum(axes, keepdims=keep) ** (1 / 3)),
    ]:
        close(got, expected)
    np.testing.assert_array_equal((x > 0).any(axes, keep).numpy(), (a > 0).any(axes, keepdims=keep))
    np.testing.assert_array_equal(
        (x > -1.9).all(axes, keep).numpy(), (a > -1.9).all(axes, keepdims=keep)
    )


def test_positions_of_extrema():
    a = draw(2, 3, 4)
    x = t(a)
    assert x.argmax().item() == a.argmax()
    np.testing.assert_array_equal(x.argmin(1).numpy(), a.argmin(1))
    np.testing.assert_array_equal(x.argmax(-1, keepdim=True).numpy(), a.argmax(-1, keepdims=True))
    values, indices = x.max(1)
    np.testing.assert_array_equal(values.numpy(), a.max(1))
    np.testing.assert_array_equal(indices.numpy(), a.argmax(1))
    assert x.max().item() == a.max()
    np.testing.assert_array_equal(x.max(t(a[::-1].copy())).numpy(), np.maximum(a, a[::-1]))
    np.testing.assert_array_equal(x.cumsum(1).numpy(), a.cumsum(1))
    np.testing.assert_array_equal(t(np.array([3, 1, 2])).cumsum(0).numpy(), [3, 4, 6])


def test_sums_of_integers_are_int64():
    for dtype in ("bool", "uint8", "int32"):
        assert om.ones(3, dtype=dtype).sum().dtype == "int64"
        assert om.ones(3, dtype=dtype).prod().dtype == "int64"
    assert om.ones(3, dtype="uint8").sum(dtype="float32").dtype == "float32"


def test_order():
    a = draw(3, 5)
    x = t(a)
    np.testing.assert_array_equal(x.sort().values.numpy(), np.sort(a))
    np.testing.assert_array_equal(x.sort(0, descending=True).values.numpy(), -np.sort(-a, 0))
    np.testing.assert_array_equal(x.argsort(1).numpy(), np.argsort(a, 1, kind="stable"))
    values, indices = x.topk(2, 1)
    np.testing.assert_array_equal(values.numpy(), -np.sort(-a, 1)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(a, indices.numpy(), 1), values.numpy())
    np.testing.assert_array_equal(x.topk(2, 0, largest=False).values.numpy(), np.sort(a, 0)[:2])


PRODUCTS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((5, 2, 3), (3,)),
]


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_matrix_products(shapes):
    a, b = (draw(*s) for s in shapes)
    close(t(a) @ t(b), a @ b)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("bthd,bshd->bhts", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,kj", (2, 3), (4, 3)),
    ("ijk->", (2, 3, 4)),
    ("bi,ij,bj->b", (2, 3), (3, 4), (2, 4)),
    ("aB,Bc->ac", (2, 3), (3, 2)),
    ("...d,d->...", (2, 3, 4), (4,)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda case: case[0])
def test_einsum(case):
    equation, *shapes = case
    arrays = [draw(*s) for s in shapes]
    close(om.einsum(equation, *map(t, arrays)), np.einsum(equation, *arrays))


def test_other_products():
    a, b, c = draw(2, 3), draw(3, 4), draw(2, 4)
    close(om.addmm(t(c), t(a), t(b), beta=0.5, alpha=2), 0.5 * c + 2 * a @ b)
    close(om.outer(t(a[0]), t(b[0])), np.outer(a[0], b[0]))
    x, y = draw(2, 3, 4), draw(4, 3, 5)
    close(om.tensordot(t(x), t(y), ([1, 2], [1, 0])), np.tensordot(x, y, ([1, 2], [1, 0])))
    close(F.linear(t(a), t(b.T.copy()), t(c[0])), a @ b + c[0])
    close(om.cdist(t(a), t(draw(4, 3)) * 0), np.linalg.norm(a, axis=1)[:, None] * np.ones((1, 4)))


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
    padded = np.pad(np.ones_like(x), [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
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


def test_rearranging():
    x = draw(2, 3, 4)
    y = t(x)
    close(y.repeat(2, 1, 3), np.tile(x, (2, 1, 3)))
    close(y.tile(2, 2), np.tile(x, (2, 2)))
    close(y.repeat_interleave(2, 1), x.repeat(2, 1))
    close(y.repeat_interleave(t([2, 0, 1]), 1), x.repeat([2, 0, 1], 1))
    close(y.roll(1), np.roll(x, 1))
    close(y.roll((1, -2), (0, 2)), np.roll(x, (1, -2), (0, 2)))
    close(y.flip(0, 2), np.flip(x, (0, 2)))
    close(y.flip((1,)), np.flip(x, 1))
    close(y.rot90(1, (0, 1)), np.rot90(x))
    close(y.movedim((0, 1), (2, 0)), np.moveaxis(x, (0, 1), (2, 0)))
    close(om.hstack([y, y]), np.hstack([x, x]))
    close(om.vstack([y, y]), np.vstack([x, x]))
    close(om.dstack([y[..., 0], y[..., 0]]), np.dstack([x[..., 0], x[..., 0]]))
    close(y.take_along_dim(t(x.argsort(2)), 2), np.take_along_axis(x, x.argsort(2), 2))
    close(y.diagonal(1, 1, 2), x.diagonal(1, 1, 2))
    close(om.take(y, t([[0, 5]])), x.ravel()[[[0, 5]]])
    for parts, sizes in (
        (y.chunk(3, 2), [2, 2]),
        (y.split(3, 2), [3, 1]),
        (y.tensor_split(3, 2), [2, 1, 1]),
    ):
        assert [p.shape[2] for p in parts] == sizes
        close(om.cat(parts, 2), x)
    shuffled = F.pixel_shuffle(t(draw(1, 8, 2, 3)), 2)
    assert shuffled.shape == (1, 2, 4, 6)
    close(F.pixel_shuffle(F.pixel_unshuffle(shuffled, 2), 2), shuffled.numpy())
    image = np.arange(16.0).reshape(1, 4, 2, 2)
    assert F.pixel_shuffle(t(image), 2)[0, 0].tolist() == [
        [0, 4, 1, 5],
        [8, 12, 9, 13],
        [2, 6, 3, 7],
        [10, 14, 11, 15],
    ]


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


def test_norms():
    x, w, b = draw(3, 4, 5), draw(5), draw(5)

    def normal(a, axes):
        return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-5)

    close(F.layer_norm(t(x), (5,), t(w), t(b)), normal(x, 2) * w + b)
    close(F.layer_norm(t(x), (4, 5)), normal(x, (1, 2)))
    close(
        F.rms_norm(t(x), (5,), t(w), 1e-5), x / np.sqrt((x * x).mean(2, keepdims=True) + 1e-5) * w
    )
    c, d = draw(4), draw(4)
    close(
        F.group_norm(t(x), 2, t(c), t(d)),
        normal(x.reshape(3, 2, 10), 2).reshape(3, 4, 5) * c[:, None] + d[:, None],
    )
    close(F.instance_norm(t(x)), normal(x, 2))
    mean, var = t(draw(4)), t(np.abs(draw(4)))
    before = mean.clone(), var.clone()
    lift = (slice(None), None)
    close(
        F.batch_norm(t(x), mean, var, t(c), t(d)),
        (x - mean.numpy()[lift]) / np.sqrt(var.numpy()[lift] + 1e-5) * c[:, None] + d[:, None],
    )
    close(
        F.batch_norm(t(x), mean, var, t(c), t(d), True, 0.3),
        normal(x, (0, 2)) * c[:, None] + d[:, None],
    )
    close(mean, 0.7 * before[0].numpy() + 0.3 * x.mean((0, 2)))
    close(var, 0.7 * before[1].numpy() + 0.3 * x.var((0, 2), ddof=1))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_softmax_and_attention():
    x = draw(2, 3, 4)
    for axis in range(3):
        close(t(x).softmax(axis), softmax(x, axis))
        close(t(x).log_softmax(axis), np.log(softmax(x, axis)))
    q, k, v = draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 6)
    scores = q @ k.swapaxes(1, 2) / 2
    close(F.scaled_dot_product_attention(t(q), t(k), t(v)), softmax(scores, -1) @ v)
    causal = np.where(np.tril(np.ones((3, 5))), scores, -np.inf)
    close(F.scaled_dot_product_attention(t(q), t(k), t(v), is_causal=True), softmax(causal, -1) @ v)
    mask = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])
    with np.errstate(invalid="ignore"):
        expected = softmax(np.where(mask, scores, -np.inf), -1) @ v
    expected[:, 1] = 0
    close(F.scaled_dot_product_attention(t(q), t(k), t(v), t(mask)), expected)


def test_losses():
    a, b = draw(3, 4), draw(3, 4)
    d = np.abs(a - b)
    for reduction, total in (("mean", np.mean), ("sum", np.sum), ("none", lambda x: x)):
        close(F.mse_loss(t(a), t(b), reduction), total(d**2))
        close(F.l1_loss(t(a), t(b), reduction), total(d))
        close(
            F.smooth_l1_loss(t(a), t(b), reduction, 0.5), total(np.where(d < 0.5, d * d, d - 0.25))
        )
        close(
            F.huber_loss(t(a), t(b), reduction, 0.5),
            total(np.where(d < 0.5, d * d / 2, 0.5 * (d - 0.25))),
        )
    classes = np.array([0, 3, 1])
    logp = np.log(softmax(a, 1))
    picked = -logp[np.arange(3), classes]
    close(F.cross_entropy(t(a), t(classes)), picked.mean())
    weight = np.array([0.5, 2, 1, 3])
    close(
        F.cross_entropy(t(a), t(classes), t(weight)),
        (picked * weight[classes]).sum() / weight[classes].sum(),
    )
    ignored = np.array([0, -100, 1])
    close(F.nll_loss(t(logp), t(ignored)), (picked[0] + picked[2]) / 2)
    assert math.isnan(F.nll_loss(t(logp), t(np.full(3, -100))).item())
    smooth = 0.9 * picked + 0.1 * -logp.mean(1)
    close(F.cross_entropy(t(a), t(classes), label_smoothing=0.1), smooth.mean())
    p = softmax(b, 1)
    close(F.cross_entropy(t(a), t(p)), -(p * logp).sum(1).mean())
    close(F.kl_div(t(logp), t(p), "batchmean"), (p * (np.log(p) - logp)).sum() / 3)
    y = (b > 0).astype(float)
    s = 1 / (1 + np.exp(-a))
    bce = -(y * np.log(s) + (1 - y) * np.log(1 - s))
    close(F.binary_cross_entropy_with_logits(t(a), t(y)), bce.mean())
    close(F.binary_cross_entropy(t(s), t(y), reduction="none"), bce)
    assert F.binary_cross_entropy(t([0.0]), t([1.0])).item() == 100.0


def ctc(logp, labels, blank=0):
    """Sum over all alignments, by listing them."""
    total = 0.0
    steps, classes = logp.shape
    for path in itertools.product(range(classes), repeat=steps):
        folded = [c for i, c in enumerate(path) if (i == 0 or path[i - 1] != c) and c != blank]
        if folded == list(labels):
            total += math.exp(sum(logp[i, c] for i, c in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_sums_over_all_alignments():
    logp = np.log(softmax(draw(4, 3, 3), 2))
    targets = [[1, 2], [1, 1], [2, 2]]
    expected = [
        ctc(logp[:n, i], targets[i][:m]) for i, (n, m) in enumerate([(4, 2), (3, 2), (4, 1)])
    ]
    losses = F.ctc_loss(t(logp), t(targets), [4, 3, 4], [2, 2, 1], reduction="none")
    close(losses, expected)
    close(
        F.ctc_loss(t(logp), t(targets), [4, 3, 4], [2, 2, 1]),
        np.mean(np.array(expected) / [2, 2, 1]),
    )
    close(F.ctc_loss(t(logp[:, 0]), t([1, 2]), 4, 2, reduction="none"), expected[0])
    impossible = F.ctc_loss(
        t(logp[:1]), t(targets), [1, 1, 1], [2, 2, 2], reduction="none", zero_infinity=True
    )
    assert impossible.tolist() == [0, 0, 0]
    assert (
        F.ctc_loss(t(logp[:1]), t(targets), [1, 1, 1], [2, 2, 2], reduction="none").tolist()
        == [math.inf] * 3
    )


def lstm_by_hand(x, h, c, wi, wh, bi, bh):
    out = []
    for step in x:
        gates = step @ wi.T + bi + h @ wh.T + bh
        i, f, g, o = np.split(gates, 4, 1)
        i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        out.append(h)
    return np.stack(out), h, c


def test_lstm():
    x, h, c = draw(4, 2, 3), draw(2, 2, 5), draw(2, 2, 5)
    forward = [draw(20, 3), draw(20, 5), draw(20), draw(20)]
    reverse = [draw(20, 3), draw(20, 5), draw(20), draw(20)]
    y, hn, cn = F.lstm(t(x), (t(h), t(c)), [t(p) for p in forward + reverse], bidirectional=True)
    a, ha, ca = lstm_by_hand(x, h[0], c[0], *forward)
    b, hb, cb = lstm_by_hand(x[::-1], h[1], c[1], *reverse)
    close(y, np.concatenate([a, b[::-1]], 2))
    close(hn, np.stack([ha, hb]))
    close(cn, np.stack([ca, cb]))
    first, _, _ = F.lstm(
        t(x.swapaxes(0, 1).copy()), None, [t(p) for p in forward], batch_first=True
    )
    close(first, lstm_by_hand(x, np.zeros((2, 5)), np.zeros((2, 5)), *forward)[0].swapaxes(0, 1))
    short, hs, _ = F.lstm(t(x), None, [t(p) for p in forward], lengths=[4, 2])
    assert short[2:, 1].tolist() == [[0] * 5] * 2
    close(hs[0, 1], lstm_by_hand(x[:2], np.zeros((2, 5)), np.zeros((2, 5)), *forward)[1][1])


def test_gru_and_rnn():
    x, h = draw(4, 2, 3), draw(1, 2, 5)
    wi, wh, bi, bh = draw(15, 3), draw(15, 5), draw(15), draw(15)
    state = h[0]
    for step in x:
        a, b = step @ wi.T + bi, state @ wh.T + bh
        r, z = (1 / (1 + np.exp(-(a[:, s] + b[:, s]))) for s in (slice(0, 5), slice(5, 10)))
        n = np.tanh(a[:, 10:] + r * b[:, 10:])
        state = (1 - z) * n + z * state
    close(F.gru(t(x), t(h), [t(p) for p in (wi, wh, bi, bh)])[1][0], state)
    state = h[0]
    for step in x:
        state = np.tanh(step @ wi[:5].T + bi[:5] + state @ wh[:5].T + bh[:5])
    close(
        F.rnn_tanh(
            t(x), t(h), [t(p) for p in (wi[:5].copy(), wh[:5].copy(), bi[:5].copy(), bh[:5].copy())]
        )[1][0],
        state,
    )


def test_embedding_and_one_hot():
    table = draw(4, 3)
    ids = np.array([[0, 3], [1, 1]])
    close(F.embedding(t(ids), t(table)), table[ids])
    assert F.one_hot(t(ids), 4).tolist() == np.eye(4, dtype=int)[ids].tolist()
    assert F.one_hot(t(ids)).dtype == "int64"
    w = om.from_numpy(table).requires_grad_()
    F.embedding(t(ids), w, padding_idx=1).sum().backward()
    assert w.grad.tolist() == [[1] * 3, [0] * 3, [0] * 3, [1] * 3]


def test_scatter_family():
    x = np.zeros((2, 4))
    index = np.array([[0, 2, 2], [3, 0, 0]])
    src = draw(2, 3)
    added = x.copy()
    for i, j in itertools.product(range(2), range(3)):
        added[i, index[i, j]] += src[i, j]
    close(t(x).scatter_add(1, t(index), t(src)), added)
    replaced = x.copy()
    np.put_along_axis(replaced, index, src, 1)
    close(t(x).scatter(1, t(index), t(src)), replaced)
    assert t(x).scatter(1, t(index), 2.5)[0].tolist() == [2.5, 0, 2.5, 0]
    close(
        t(x).index_add(1, t([1, 1]), t(src[:, :2].copy())),
        np.stack([0 * x[:, 0], src[:, 0] + src[:, 1], x[:, 0], x[:, 0]], 1),
    )
    values, inverse, counts = om.unique(t([3, 1, 3, 2]), return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == (
        [1, 2, 3],
        [2, 0, 2, 1],
        [1, 1, 2],
    )
    assert om.bincount(t([0, 2, 2]), minlength=4).tolist() == [1, 0, 2, 0]
    assert om.nonzero(t([[0, 1], [2, 0]])).tolist() == [[0, 1], [1, 0]]
