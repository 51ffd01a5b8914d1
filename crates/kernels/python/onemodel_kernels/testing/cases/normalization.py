"""Cases of normalisations and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import normal, uniform

_EPSILON = 1e-3
_BOUND = bound(scaled=1e-6, absolute=1e-6, why="statistics in f64, then four roundings in f32")
_GRADIENT = bound(scaled=2e-6, absolute=2e-6, why="statistics in f64, then several roundings")


def _wide(c: Tensor, rank: int) -> Tensor:
    return c.reshape(1, -1, *(1,) * (rank - 2))


def _axes(x: Tensor) -> tuple[int, ...]:
    return tuple(a for a in range(x.ndim) if a != 1)


def _batch(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    r = 1 / np.sqrt(var + _EPSILON)
    hat = (x - _wide(mean, x.ndim)) * _wide(r, x.ndim)
    return np.asarray(hat * _wide(scale, x.ndim) + _wide(bias, x.ndim))


def _train(x: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    mean, var = x.mean(_axes(x)), x.var(_axes(x))
    return _batch(x, scale, bias, mean, var), mean, var, 1 / np.sqrt(var + _EPSILON)


def _batch_gradient(x: Tensor, scale: Tensor, mean: Tensor, r: Tensor, g: Tensor) -> Any:
    hat = (x - _wide(mean, x.ndim)) * _wide(r, x.ndim)
    n = x.size / x.shape[1]
    dscale, db = (g * hat).sum(_axes(x)), g.sum(_axes(x))
    inner = g - _wide(db, x.ndim) / n - hat * _wide(dscale, x.ndim) / n
    return _wide(scale * r, x.ndim) * inner, dscale, db


def _batches() -> Iterator[Case]:
    attributes = {"epsilon": _EPSILON}
    for shape in ((4, 3), (2, 3, 5), (3, 4, 6, 6), (2, 5, 28, 28), (64, 7, 3)):
        name = "x".join(map(str, shape))
        channels = shape[1]
        x, g = normal(*shape, seed=1, scale=3.0), normal(*shape, seed=2)
        scale, bias, mean = (normal(channels, seed=s) for s in (3, 4, 5))
        var = uniform(channels, seed=6, low=0.1, high=4.0)
        inputs = (x, scale, bias, mean, var)
        yield Case(
            f"BatchNormalization-{name}", "BatchNormalization", inputs, _batch, attributes, _BOUND
        )
        yield Case(
            f"BatchNormTrain-{name}",
            "BatchNormTrain",
            (x, scale, bias),
            _train,
            attributes,
            _BOUND,
            onnx=False,
        )
        inverse = (1 / np.sqrt(x.var(_axes(x)) + _EPSILON)).astype(np.float32)
        yield Case(
            f"BatchNormGrad-{name}",
            "BatchNormGrad",
            (x, scale, x.mean(_axes(x)).astype(np.float32), inverse, g),
            _batch_gradient,
            bound=_GRADIENT,
            onnx=False,
        )


def _layer(x: Tensor, scale: Tensor, bias: Tensor | None, centred: bool) -> tuple[Tensor, ...]:
    axes = tuple(range(x.ndim - scale.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True) if centred else np.zeros(())
    r = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + _EPSILON)
    y = (x - mean) * r * scale + (0 if bias is None else bias)
    return (y, mean, r) if centred else (y, r)


def _layer_gradient(
    x: Tensor, scale: Tensor, mean: Tensor, r: Tensor, g: Tensor, centred: bool
) -> tuple[Tensor, ...]:
    axes = tuple(range(x.ndim - scale.ndim, x.ndim))
    lead = tuple(range(x.ndim - scale.ndim))
    hat, u = (x - mean) * r, g * scale
    k1 = u.mean(axes, keepdims=True) if centred else 0.0
    dx = r * (u - k1 - hat * (u * hat).mean(axes, keepdims=True))
    dscale = (g * hat).sum(lead)
    return (dx, dscale, g.sum(lead)) if centred else (dx, dscale)


def _layers() -> Iterator[Case]:
    for shape, axis in (((4, 8), -1), ((3, 5, 768), -1), ((2, 3, 4, 5), 2), ((40, 130), 1)):
        name = f"{'x'.join(map(str, shape))}-{axis}"
        inner = shape[axis % len(shape) :]
        x, g = normal(*shape, seed=1, scale=3.0), normal(*shape, seed=2)
        scale, bias = normal(*inner, seed=3), normal(*inner, seed=4)
        how = {"axis": axis, "epsilon": _EPSILON}
        for label, b in (("", bias), ("-no-bias", None)):
            yield Case(
                f"LayerNormalization-{name}{label}",
                "LayerNormalization",
                (x, scale, b),
                lambda x, s, b: _layer(x, s, b, True),
                how,
                _BOUND,
            )
        yield Case(
            f"RMSNormalization-{name}",
            "RMSNormalization",
            (x, scale),
            lambda x, s: _layer(x, s, None, False),
            how,
            _BOUND,
            onnx=False,
        )
        wide, wide_scale = x.astype(np.float64), scale.astype(np.float64)
        _, mean, r = (a.astype(np.float32) for a in _layer(wide, wide_scale, None, True))
        yield Case(
            f"LayerNormGrad-{name}",
            "LayerNormGrad",
            (x, scale, mean, r, g),
            lambda x, s, m, r, g: _layer_gradient(x, s, m, r, g, centred=True),
            {"axis": axis},
            _GRADIENT,
            onnx=False,
        )
        _, r = (a.astype(np.float32) for a in _layer(wide, wide_scale, None, False))
        yield Case(
            f"RMSNormGrad-{name}",
            "RMSNormGrad",
            (x, scale, r, g),
            lambda x, s, r, g: _layer_gradient(x, s, np.zeros(()), r, g, centred=False),
            {"axis": axis},
            _GRADIENT,
            onnx=False,
        )


def _group(x: Tensor, scale: Tensor, bias: Tensor, groups: int) -> tuple[Tensor, ...]:
    rows = x.reshape(x.shape[0], groups, -1)
    mean, r = rows.mean(2), 1 / np.sqrt(rows.var(2) + _EPSILON)
    hat = ((rows - mean[..., None]) * r[..., None]).reshape(x.shape)
    return hat * _wide(scale, x.ndim) + _wide(bias, x.ndim), mean, r


def _group_gradient(
    x: Tensor, scale: Tensor, mean: Tensor, r: Tensor, g: Tensor, groups: int
) -> tuple[Tensor, ...]:
    def rows(a: Tensor) -> Tensor:
        return a.reshape(x.shape[0], groups, -1)

    hat = (rows(x) - mean[..., None]) * r[..., None]
    u = rows(g * _wide(scale, x.ndim))
    inner = u - u.mean(2, keepdims=True) - hat * (u * hat).mean(2, keepdims=True)
    dscale = (g * hat.reshape(x.shape)).sum(_axes(x))
    return (r[..., None] * inner).reshape(x.shape), dscale, g.sum(_axes(x))


def _groups() -> Iterator[Case]:
    for shape, groups in (((2, 6, 5), 3), ((3, 8, 7, 7), 4), ((2, 4, 28, 28), 2), ((2, 4, 9), 4)):
        name = f"{'x'.join(map(str, shape))}-{groups}"
        x, g = normal(*shape, seed=1, scale=3.0), normal(*shape, seed=2)
        scale, bias = normal(shape[1], seed=3), normal(shape[1], seed=4)
        yield Case(
            f"GroupNormalization-{name}",
            "GroupNormalization",
            (x, scale, bias),
            lambda x, s, b, n=groups: _group(x, s, b, n),
            {"num_groups": groups, "epsilon": _EPSILON},
            _BOUND,
            onnx=False,
        )
        wide = _group(x.astype(np.float64), scale, bias, groups)
        mean, r = (a.astype(np.float32) for a in wide[1:])
        yield Case(
            f"GroupNormGrad-{name}",
            "GroupNormGrad",
            (x, scale, mean, r, g),
            lambda x, s, m, r, g, n=groups: _group_gradient(x, s, m, r, g, groups=n),
            {"num_groups": groups},
            _GRADIENT,
            onnx=False,
        )
        yield Case(
            f"InstanceNormalization-{name}",
            "InstanceNormalization",
            (x, scale, bias),
            lambda x, s, b: _group(x, s, b, x.shape[1])[0],
            {"epsilon": _EPSILON},
            _BOUND,
        )


CASES = (*_batches(), *_layers(), *_groups())
