"""The table of eager cases: one line an operator form, from which the gradient tests are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import onemodel_tensors as om
from onemodel_tensors import functional as F

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def near_zero(rng, shape):
    """Both signs, no element closer than 0.05 to 0, where many functions have a corner."""
    values = rng.uniform(-2, 2, shape)
    return np.where(np.abs(values) < 0.05, 0.3, values)


def positive(rng, shape):
    return rng.uniform(0.3, 2.5, shape)


def unit(rng, shape):
    return rng.uniform(-0.9, 0.9, shape)


def above_one(rng, shape):
    return rng.uniform(1.1, 3.0, shape)


def probability(rng, shape):
    return rng.uniform(0.05, 0.95, shape)


def distinct(rng, shape):
    """All elements different by at least 0.1, and by 0.001 from other arrays': a maximum stays where it is."""
    count = int(np.prod(shape))
    return (rng.permutation(count).reshape(shape) - count / 2) * 0.1 + rng.uniform(0.01, 0.09)


@dataclass(frozen=True)
class Case:
    """One form of one operator.

    function gets one float64 tensor for each shape; every one requires a gradient.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    draw: Draw = near_zero
    options: dict[str, Any] = field(default_factory=dict)

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(sum(map(ord, self.name)))
        return [np.asarray(self.draw(rng, shape), dtype=np.float64) for shape in self.shapes]


def ints(*values: Any) -> om.Tensor:
    return om.tensor(values[0] if len(values) == 1 else values, dtype="int64")


MASK = om.tensor([[True, False, True], [False, False, True]])

UNARY = [
    ("abs", om.abs, near_zero),
    ("neg", om.neg, near_zero),
    ("square", om.square, near_zero),
    ("sign", om.sign, near_zero),
    ("floor", om.floor, near_zero),
    ("ceil", om.ceil, near_zero),
    ("round", om.round, near_zero),
    ("trunc", om.trunc, near_zero),
    ("frac", om.frac, near_zero),
    ("sqrt", om.sqrt, positive),
    ("rsqrt", om.rsqrt, positive),
    ("reciprocal", om.reciprocal, near_zero),
    ("exp", om.exp, near_zero),
    ("expm1", om.expm1, near_zero),
    ("log", om.log, positive),
    ("log2", om.log2, positive),
    ("log10", om.log10, positive),
    ("log1p", om.log1p, positive),
    ("sin", om.sin, near_zero),
    ("cos", om.cos, near_zero),
    ("tan", om.tan, unit),
    ("asin", om.asin, unit),
    ("acos", om.acos, unit),
    ("atan", om.atan, near_zero),
    ("sinh", om.sinh, near_zero),
    ("cosh", om.cosh, near_zero),
    ("asinh", om.asinh, near_zero),
    ("acosh", om.acosh, above_one),
    ("atanh", om.atanh, unit),
    ("tanh", om.tanh, near_zero),
    ("sigmoid", om.sigmoid, near_zero),
    ("erf", om.erf, near_zero),
    ("relu", F.relu, near_zero),
    ("relu6", F.relu6, near_zero),
    ("hardtanh", F.hardtanh, near_zero),
    ("leaky_relu", F.leaky_relu, near_zero),
    ("elu", F.elu, near_zero),
    ("celu", lambda x: F.celu(x, 1.3), near_zero),
    ("selu", F.selu, near_zero),
    ("gelu", F.gelu, near_zero),
    ("gelu-tanh", lambda x: F.gelu(x, approximate="tanh"), near_zero),
    ("silu", F.silu, near_zero),
    ("mish", F.mish, near_zero),
    ("softplus", F.softplus, near_zero),
    ("softplus-beta", lambda x: F.softplus(x, 2.0, 1.0), near_zero),
    ("hardsigmoid", F.hardsigmoid, near_zero),
    ("hardswish", F.hardswish, near_zero),
    ("softsign", F.softsign, near_zero),
    ("hardshrink", F.hardshrink, near_zero),
    ("softshrink", F.softshrink, near_zero),
    ("tanhshrink", F.tanhshrink, near_zero),
    ("logsigmoid", F.logsigmoid, near_zero),
    ("threshold", lambda x: F.threshold(x, 0.2, 1.5), near_zero),
    ("glu", lambda x: F.glu(x, 0), near_zero),
    ("clone", om.clone, near_zero),
    ("clamp", lambda x: x.clamp(-1.02, 0.97), near_zero),
    ("clamp-min", lambda x: x.clamp(min=0.11), near_zero),
    ("clamp-max", lambda x: x.clamp(max=0.11), near_zero),
    ("pow-2", lambda x: x**2, near_zero),
    ("pow-3", lambda x: x**3, near_zero),
    ("pow-half", lambda x: x**0.5, positive),
    ("pow-minus", lambda x: x**-1.5, positive),
    ("rpow", lambda x: 2.0**x, near_zero),
    ("scalar-mul", lambda x: x * 2.5, near_zero),
    ("scalar-rsub", lambda x: 1 - x, near_zero),
    ("scalar-rdiv", lambda x: 1 / x, near_zero),
    ("masked_fill", lambda x: x.masked_fill(x > 0, 2.0), near_zero),
    ("nan_to_num", om.nan_to_num, near_zero),
]

BINARY = [
    ("add", om.add),
    ("sub", om.sub),
    ("mul", om.mul),
    ("div", om.div),
    ("maximum", om.maximum),
    ("minimum", om.minimum),
    ("fmod", om.fmod),
    ("remainder", om.remainder),
    ("where", lambda a, b: om.where(a > b, a, b * 2)),
    ("add-alpha", lambda a, b: om.add(a, b, alpha=2.5)),
    ("lerp", lambda a, b: om.lerp(a, b, 0.3)),
    ("mse", lambda a, b: (a - b) ** 2),
    ("fmax", om.fmax),
]
BROADCAST = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((3, 1), (1, 4))]

CASES: list[Case] = [Case(name, function, ((2, 3),), draw) for name, function, draw in UNARY]
CASES += [
    Case(
        f"{name}-{'x'.join(map(str, a)) or 's'}-{'x'.join(map(str, b))}", function, (a, b), distinct
    )
    for name, function in BINARY
    for a, b in BROADCAST
]
CASES += [
    Case("div-floor", lambda a, b: om.div(a, b, rounding_mode="floor"), ((2, 3), (3,)), positive),
    Case("atan2", lambda a, b: om.atan2(a, b), ((2, 3), (3,))),
    Case("pow-tensor", lambda a, b: a**b, ((2, 3), (2, 3)), positive),
    Case("addcmul", lambda a, b, c: om.addcmul(a, b, c, value=0.5), ((2, 3), (2, 3), (3,))),
    Case(
        "addcdiv", lambda a, b, c: om.addcdiv(a, b, c, value=0.5), ((2, 3), (2, 3), (3,)), positive
    ),
    Case(
        "clamp-tensors", lambda x, lo, hi: x.clamp(lo - 1, hi + 1), ((2, 3), (3,), (2, 1)), distinct
    ),
    Case("prelu", F.prelu, ((2, 3, 4), (3,))),
    Case("prelu-one", F.prelu, ((2, 3), (1,))),
    Case("double use", lambda x: x * x + x, ((2, 3),)),
    Case("cast", lambda x: x.double() * 2, ((2, 3),)),
    # reductions
    Case("sum", lambda x: x.sum(), ((2, 3),)),
    Case("sum-dim", lambda x: x.sum((0, 2), keepdim=True), ((2, 3, 2),)),
    Case("sum-0d", lambda x: x.sum(), ((),)),
    Case("mean", lambda x: x.mean(), ((2, 3),)),
    Case("mean-dim", lambda x: x.mean(1), ((2, 3, 2),)),
    Case("prod", lambda x: x.prod(), ((2, 3),)),
    Case("prod-dim", lambda x: x.prod(1), ((2, 3, 2),)),
    Case("prod-zero", lambda x: (x * ints([0, 1, 2])).prod(1), ((2, 3),)),
    Case("amax", lambda x: x.amax(1), ((2, 3),), distinct),
    Case("amin", lambda x: x.amin((0, 1)), ((2, 3),), distinct),
    Case("max", lambda x: x.max(), ((2, 3),), distinct),
    Case("max-dim", lambda x: x.max(1).values, ((2, 3),), distinct),
    Case("min-dim", lambda x: x.min(0, keepdim=True)[0], ((2, 3),), distinct),
    Case("var", lambda x: x.var(), ((2, 3),)),
    Case("var-dim", lambda x: x.var(1, unbiased=False), ((2, 3),)),
    Case("std", lambda x: x.std(0), ((3, 2),)),
    Case("var_mean", lambda x: om.var_mean(x, 1), ((2, 3),)),
    Case("logsumexp", lambda x: x.logsumexp(1), ((2, 3),)),
    Case("norm", lambda x: x.norm(), ((2, 3),)),
    Case("norm-1", lambda x: x.norm(1, 1), ((2, 3),)),
    Case("norm-3", lambda x: x.norm(3, 1), ((2, 3),)),
    Case("norm-inf", lambda x: x.norm(float("inf"), 1), ((2, 3),), distinct),
    Case("cumsum", lambda x: x.cumsum(1), ((2, 3),)),
    Case("normalize", lambda x: F.normalize(x, dim=1), ((2, 3),)),
    Case("cosine_similarity", F.cosine_similarity, ((2, 3), (2, 3))),
    Case("cdist", om.cdist, ((2, 3), (4, 3))),
    Case("nansum", om.nansum, ((2, 3),)),
    # products
    Case("matmul", om.matmul, ((2, 3), (3, 4))),
    Case("matmul-batch", om.matmul, ((2, 1, 2, 3), (4, 3, 2))),
    Case("matmul-vector", om.matmul, ((3,), (3,))),
    Case("matmul-left-vector", om.matmul, ((3,), (2, 3, 4))),
    Case("matmul-right-vector", om.matmul, ((2, 2, 3), (3,))),
    Case("matmul-flat", om.matmul, ((2, 2, 3), (3, 2))),
    Case("linear", F.linear, ((2, 3), (4, 3), (4,))),
    Case("linear-3d", F.linear, ((2, 2, 3), (4, 3), (4,))),
    Case("linear-no-bias", F.linear, ((2, 3), (4, 3))),
    Case("linear-1d", F.linear, ((3,), (4, 3), (4,))),
    Case("bmm", om.bmm, ((2, 2, 3), (2, 3, 2))),
    Case("addmm", lambda a, b, c: om.addmm(a, b, c, beta=0.5, alpha=2), ((4,), (2, 3), (3, 4))),
    Case("baddbmm", om.baddbmm, ((2, 2, 4), (2, 2, 3), (2, 3, 4))),
    Case("outer", om.outer, ((2,), (3,))),
    Case("dot", om.dot, ((3,), (3,))),
    Case("tensordot", lambda a, b: om.tensordot(a, b, ([0, 2], [1, 0])), ((2, 3, 4), (4, 2, 2))),
    Case(
        "einsum-attention",
        lambda a, b: om.einsum("bthd,bshd->bhts", a, b),
        ((2, 2, 2, 3), (2, 3, 2, 3)),
    ),
    Case("einsum-trace", lambda a: om.einsum("ii->", a), ((3, 3),)),
    Case(
        "einsum-ellipsis", lambda a, b: om.einsum("...ij,...jk->...ik", a, b), ((2, 2, 3), (3, 2))
    ),
    Case(
        "einsum-three", lambda a, b, c: om.einsum("ab,bc,cd->ad", a, b, c), ((2, 3), (3, 2), (2, 2))
    ),
    Case("einsum-outer", lambda a, b: om.einsum("i,j->ij", a, b), ((2,), (3,))),
    Case("bilinear", F.bilinear, ((2, 3), (2, 2), (4, 3, 2), (4,))),
    # shapes
    Case("reshape", lambda x: x.reshape(3, -1), ((2, 3),)),
    Case("reshape-strided", lambda x: x.t().reshape(2, 3), ((2, 3),)),
    Case("flatten", lambda x: x.flatten(1), ((2, 3, 2),)),
    Case("unflatten", lambda x: x.unflatten(1, (2, -1)), ((2, 4),)),
    Case("permute", lambda x: x.permute(2, 0, 1), ((2, 3, 2),)),
    Case("transpose", lambda x: x.transpose(0, 1), ((2, 3),)),
    Case("movedim", lambda x: x.movedim(0, -1), ((2, 3, 2),)),
    Case("squeeze", lambda x: x.squeeze(1), ((2, 1, 3),)),
    Case("unsqueeze", lambda x: x.unsqueeze(-1), ((2, 3),)),
    Case("expand", lambda x: x.expand(4, -1, 3), ((2, 1),)),
    Case("repeat", lambda x: x.repeat(2, 1, 2), ((2, 3),)),
    Case("tile", lambda x: x.tile(2), ((2, 3),)),
    Case("repeat_interleave", lambda x: x.repeat_interleave(2, 1), ((2, 3),)),
    Case("repeat_interleave-tensor", lambda x: x.repeat_interleave(ints(1, 0, 2), 1), ((2, 3),)),
    Case("cat", lambda a, b: om.cat([a, b], 1), ((2, 3), (2, 1))),
    Case("stack", lambda a, b: om.stack([a, b], -1), ((2, 3), (2, 3))),
    Case("split", lambda x: x.split(2, 1), ((2, 5),)),
    Case("split-part", lambda x: x.split([1, 4], 1)[1], ((2, 5),)),
    Case("chunk", lambda x: x.chunk(2, 0)[0], ((3, 2),)),
    Case("unbind", lambda x: x.unbind(1)[1], ((2, 3),)),
    Case("cumprod", lambda x: x.cumprod(1), ((2, 4),)),
    Case("median", lambda x: x.median(1).values, ((2, 5),), distinct),
    Case("column_stack", lambda a, b: om.column_stack([a, b]), ((3,), (3, 2))),
    Case("sum_to_size", lambda x: x.sum_to_size(3, 1), ((2, 3, 4),)),
    Case("diag_embed-offset", lambda x: om.diag_embed(x, 1), ((2, 3),)),
    Case("fill_diagonal_", lambda x: (x * 2).fill_diagonal_(1.5), ((3, 3),)),
    Case("atleast_3d", om.atleast_3d, ((2, 3),)),
    Case("affine_grid", lambda t: F.affine_grid(t, (2, 1, 3, 2)), ((2, 2, 3),)),
    Case("affine_grid-3d", lambda t: F.affine_grid(t, (1, 1, 2, 2, 2), True), ((1, 3, 4),)),
    Case("grid_sample", F.grid_sample, ((1, 2, 3, 4), (1, 2, 3, 2)), unit),
    Case(
        "grid_sample-bicubic",
        lambda x, g: F.grid_sample(x, g, "bicubic", "border"),
        ((1, 1, 4, 4), (1, 2, 2, 2)),
        unit,
    ),
    Case(
        "grid_sample-3d",
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=True),
        ((1, 1, 2, 3, 3), (1, 1, 2, 2, 3)),
        unit,
    ),
    Case("rrelu", F.rrelu, ((2, 3),)),
    Case(
        "rrelu-training",
        lambda x: F.rrelu(x, 0.2, 0.5, True, generator=om.Generator(3)),
        ((2, 3),),
    ),
    Case("multi_margin_loss", lambda x: F.multi_margin_loss(x, ints(1, 0, 2)), ((3, 4),), distinct),
    Case(
        "multi_margin_loss-2",
        lambda x, w: F.multi_margin_loss(x, ints(1, 0, 2), p=2, margin=0.7, weight=w),
        ((3, 4), (4,)),
        distinct,
    ),
    Case("unbind-all", lambda x: om.stack(x.unbind(1)[::-1]), ((2, 3),)),
    Case("tril", lambda x: x.tril(), ((3, 3),)),
    Case("triu", lambda x: x.triu(1), ((2, 3, 3),)),
    Case("diagonal", lambda x: x.diagonal(1), ((3, 3),)),
    Case("diag_embed", lambda x: om.diag_embed(x, -1), ((2, 3),)),
    Case("trace", om.trace, ((3, 3),)),
    Case("flip", lambda x: x.flip(0, 1), ((2, 3),)),
    Case("roll", lambda x: x.roll(1, 0), ((3, 2),)),
    Case("roll-flat", lambda x: x.roll(-2), ((3, 2),)),
    Case("rot90", lambda x: x.rot90(1), ((3, 2),)),
    Case("pad", lambda x: F.pad(x, (1, 2, 0, 1)), ((2, 3),)),
    Case("pad-reflect", lambda x: F.pad(x, (2, 1), mode="reflect"), ((2, 2, 4),)),
    Case("pad-replicate", lambda x: F.pad(x, (2, 1, 1, 0), mode="replicate"), ((1, 2, 2, 3),)),
    Case("pad-circular", lambda x: F.pad(x, (2, 1), mode="circular"), ((2, 2, 3),)),
    Case("pad-negative", lambda x: F.pad(x, (-1, 1)), ((2, 4),)),
    Case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), ((1, 4, 2, 2),)),
    Case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), ((1, 1, 4, 2),)),
    Case("channel_shuffle", lambda x: F.channel_shuffle(x, 2), ((1, 4, 2, 2),)),
    Case("unfold", lambda x: F.unfold(x, 2, padding=1, stride=2), ((1, 2, 4, 3),)),
    Case("fold", lambda x: F.fold(x, (3, 4), 2), ((1, 8, 6),)),
    Case("Tensor.unfold", lambda x: x.unfold(1, 3, 2), ((2, 5),)),
    # indexing
    Case("int", lambda x: x[1], ((3, 2),)),
    Case("slice", lambda x: x[:, 1:3], ((2, 4),)),
    Case("slice-step", lambda x: x[::2, 1::2], ((3, 4),)),
    Case("slice-negative", lambda x: x[::-1, ::-2], ((3, 4),)),
    Case("ellipsis", lambda x: x[..., None, 0], ((2, 3),)),
    Case("index", lambda x: x[ints([2, 0, 2])], ((3, 2),)),
    Case("index-negative", lambda x: x[:, ints([[-1, 0]])], ((2, 3),)),
    Case("index-two", lambda x: x[ints([0, 1]), ints([1, 1])], ((2, 3),)),
    Case("index-two-inner", lambda x: x[:, ints([0, 1]), ints([[1], [0]])], ((2, 2, 3),)),
    Case("index-apart", lambda x: x[ints([0, 1]), :, ints([1, 1])], ((2, 2, 3),)),
    Case("mask", lambda x: x[MASK], ((2, 3),)),
    Case("mask-rows", lambda x: x[om.tensor([True, False, True])], ((3, 2),)),
    Case("index_select", lambda x: x.index_select(1, ints([0, 0, 2])), ((2, 3),)),
    Case("gather", lambda x: x.gather(1, ints([[0, 0], [2, 1]])), ((2, 3),)),
    Case("gather-small", lambda x: x.gather(0, ints([[1, 0]])), ((2, 3),)),
    Case("take_along_dim", lambda x: om.take_along_dim(x, ints([[1], [0]]), 1), ((2, 3),)),
    Case("scatter", lambda x, s: x.scatter(1, ints([[0, 2], [1, 0]]), s), ((2, 3), (2, 2))),
    Case("scatter_add", lambda x, s: x.scatter_add(1, ints([[0, 0], [1, 0]]), s), ((2, 3), (2, 3))),
    Case(
        "scatter_reduce-amax",
        lambda x, s: x.scatter_reduce(1, ints([[0, 0], [1, 0]]), s, "amax"),
        ((2, 3), (2, 2)),
        distinct,
    ),
    Case(
        "scatter_reduce-prod",
        lambda x, s: x.scatter_reduce(1, ints([[0, 0], [1, 0]]), s, "prod"),
        ((2, 3), (2, 2)),
    ),
    Case("index_add", lambda x, s: x.index_add(0, ints([1, 1]), s), ((3, 2), (2, 2))),
    Case("index_copy", lambda x, s: x.index_copy(0, ints([2, 1]), s), ((3, 2), (2, 2))),
    Case("index_fill", lambda x: x.index_fill(1, ints([1]), 3.0), ((2, 3),)),
    Case(
        "index_put",
        lambda x, v: x.index_put((ints([0, 1, 0]), ints([1, 1, 1])), v, accumulate=True),
        ((2, 3), (3,)),
    ),
    Case("masked_select", lambda x: x.masked_select(MASK), ((2, 3),)),
    Case("topk", lambda x: x.topk(2).values, ((2, 4),), distinct),
    Case("sort", lambda x: x.sort(0, descending=True)[0], ((3, 2),), distinct),
    Case("embedding", lambda w: F.embedding(ints([[0, 2], [2, 1]]), w), ((3, 2),)),
    Case("embedding_bag", lambda w: F.embedding_bag(ints([[0, 2], [2, 1]]), w), ((3, 2),)),
    # softmax, norms
    Case("softmax", lambda x: x.softmax(-1), ((2, 3),)),
    Case("softmax-axis", lambda x: x.softmax(0), ((2, 3, 2),)),
    Case("log_softmax", lambda x: x.log_softmax(1), ((2, 3),)),
    Case("softmin", lambda x: F.softmin(x, 1), ((2, 3),)),
    Case("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), ((2, 3), (3,), (3,))),
    Case("layer_norm-two", lambda x, w: F.layer_norm(x, (2, 3), w), ((2, 2, 3), (2, 3))),
    Case("rms_norm", lambda x, w: F.rms_norm(x, (3,), w, 1e-5), ((2, 3), (3,))),
    Case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), ((2, 4, 3), (4,), (4,))),
    Case(
        "instance_norm",
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
        ((2, 2, 3), (2,), (2,)),
    ),
    Case(
        "batch_norm-train",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        ((3, 2, 2), (2,), (2,)),
    ),
    Case(
        "batch_norm-eval",
        lambda x, w, b: F.batch_norm(
            x, om.tensor([0.1, 0.2]).double(), om.tensor([1.5, 0.7]).double(), w, b
        ),
        ((3, 2, 2), (2,), (2,)),
    ),
    Case("local_response_norm", lambda x: F.local_response_norm(x, 3, 0.5), ((1, 4, 2),)),
    # convolutions and pools
    Case("conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 1), ((2, 2, 5), (3, 2, 3), (3,))),
    Case("conv2d", F.conv2d, ((1, 2, 4, 3), (3, 2, 2, 2), (3,))),
    Case(
        "conv2d-all",
        lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 0), (1, 2), 2),
        ((2, 4, 4, 5), (2, 2, 3, 2)),
    ),
    Case("conv2d-same", lambda x, w: F.conv2d(x, w, padding="same"), ((1, 1, 3, 4), (1, 1, 2, 3))),
    Case(
        "conv2d-depthwise",
        lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=3),
        ((1, 3, 3, 3), (3, 1, 3, 3), (3,)),
    ),
    Case("conv2d-single", F.conv2d, ((2, 4, 3), (3, 2, 2, 2), (3,))),
    Case("conv3d", F.conv3d, ((1, 1, 3, 3, 2), (2, 1, 2, 2, 2), (2,))),
    Case(
        "conv_transpose1d",
        lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1),
        ((1, 2, 3), (2, 2, 3), (2,)),
    ),
    Case(
        "conv_transpose2d",
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2),
        ((1, 2, 2, 3), (2, 2, 2, 2), (2,)),
    ),
    Case(
        "conv_transpose2d-groups",
        lambda x, w: F.conv_transpose2d(x, w, None, 1, 1, 0, 2, 2),
        ((1, 2, 3, 3), (2, 1, 2, 2)),
    ),
    Case("max_pool1d", lambda x: F.max_pool1d(x, 2), ((1, 2, 5),), distinct),
    Case("max_pool2d", lambda x: F.max_pool2d(x, 2), ((1, 2, 4, 4),), distinct),
    Case("max_pool2d-all", lambda x: F.max_pool2d(x, 3, 2, 1, 1, True), ((1, 1, 4, 5),), distinct),
    Case("max_pool3d", lambda x: F.max_pool3d(x, 2), ((1, 1, 2, 4, 2),), distinct),
    Case("avg_pool1d", lambda x: F.avg_pool1d(x, 2, 1), ((1, 2, 4),)),
    Case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), ((1, 1, 4, 5),)),
    Case("avg_pool2d-divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), ((1, 1, 4, 4),)),
    Case("adaptive_avg_pool2d-1", lambda x: F.adaptive_avg_pool2d(x, 1), ((1, 2, 3, 2),)),
    Case(
        "adaptive_avg_pool2d-none", lambda x: F.adaptive_avg_pool2d(x, (1, None)), ((1, 2, 3, 2),)
    ),
    Case("adaptive_avg_pool2d-uneven", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), ((1, 2, 3, 4),)),
    Case(
        "adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 3)), ((1, 2, 3, 4),), distinct
    ),
    Case("lp_pool2d", lambda x: F.lp_pool2d(x, 2.0, 2), ((1, 1, 4, 2),), positive),
    Case("interpolate-nearest", lambda x: F.interpolate(x, scale_factor=2), ((1, 1, 2, 3),)),
    Case(
        "interpolate-bilinear", lambda x: F.interpolate(x, (5, 4), mode="bilinear"), ((1, 2, 3, 3),)
    ),
    Case(
        "interpolate-corners",
        lambda x: F.interpolate(x, (5, 4), mode="bilinear", align_corners=True),
        ((1, 2, 3, 3),),
    ),
    Case(
        "interpolate-bicubic", lambda x: F.interpolate(x, (5, 4), mode="bicubic"), ((1, 1, 3, 3),)
    ),
    Case("interpolate-linear", lambda x: F.interpolate(x, 5, mode="linear"), ((1, 1, 3),)),
    Case("interpolate-area", lambda x: F.interpolate(x, (2, 2), mode="area"), ((1, 1, 3, 4),)),
    # attention
    Case("attention", F.scaled_dot_product_attention, ((2, 3, 4), (2, 2, 4), (2, 2, 5))),
    Case(
        "attention-causal",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ((2, 3, 4), (2, 3, 4), (2, 3, 2)),
    ),
    Case(
        "attention-masked",
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, om.tensor([[True, False], [False, False]])
        ),
        ((1, 2, 2), (1, 2, 2), (1, 2, 3)),
    ),
    Case(
        "attention-groups",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ((1, 4, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2)),
    ),
    # losses
    Case("mse_loss", F.mse_loss, ((2, 3), (2, 3))),
    Case("l1_loss", F.l1_loss, ((2, 3), (2, 3)), distinct),
    Case(
        "smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, beta=0.33), ((2, 3), (2, 3)), distinct
    ),
    Case("huber_loss", lambda a, b: F.huber_loss(a, b, delta=0.33), ((2, 3), (2, 3)), distinct),
    Case(
        "bce",
        lambda a: F.binary_cross_entropy(a, om.tensor([[0.0, 1, 0.3]]).double()),
        ((1, 3),),
        probability,
    ),
    Case(
        "bce-logits",
        lambda a: F.binary_cross_entropy_with_logits(
            a, om.tensor([[0.0, 1, 0.3]]).double(), pos_weight=om.tensor([2.0]).double()
        ),
        ((1, 3),),
    ),
    Case(
        "kl_div",
        lambda a, b: F.kl_div(a.log_softmax(1), b.softmax(1), "batchmean"),
        ((2, 3), (2, 3)),
    ),
    Case(
        "gaussian_nll",
        lambda a, v: F.gaussian_nll_loss(a, om.zeros(2, 3).double(), v),
        ((2, 3), (2, 3)),
        positive,
    ),
    Case(
        "poisson_nll",
        lambda a: F.poisson_nll_loss(a, om.tensor([[1.0, 2, 0]]).double(), full=True),
        ((1, 3),),
    ),
    Case("triplet", F.triplet_margin_loss, ((2, 3), (2, 3), (2, 3))),
    Case(
        "cosine_embedding",
        lambda a, b: F.cosine_embedding_loss(a, b, ints([1, -1])),
        ((2, 3), (2, 3)),
    ),
    Case(
        "margin_ranking",
        lambda a, b: F.margin_ranking_loss(a, b, ints([1, -1, 1]), 0.7),
        ((3,), (3,)),
    ),
    Case("hinge_embedding", lambda a: F.hinge_embedding_loss(a, ints([1, -1, -1])), ((3,),)),
    Case("soft_margin", lambda a: F.soft_margin_loss(a, ints([1, -1, -1])), ((3,),)),
    Case("nll", lambda a: F.nll_loss(a.log_softmax(1), ints([1, 0])), ((2, 3),)),
    Case(
        "nll-weights",
        lambda a: F.nll_loss(
            a.log_softmax(1), ints([[1, 0], [2, -100]]), om.tensor([0.5, 1, 2]).double()
        ),
        ((2, 3, 2),),
    ),
    Case(
        "cross_entropy", lambda a: F.cross_entropy(a, ints([1, 0]), label_smoothing=0.1), ((2, 3),)
    ),
    Case(
        "cross_entropy-smooth-weights",
        lambda a: F.cross_entropy(
            a, ints([1, 0]), om.tensor([0.5, 1, 2]).double(), label_smoothing=0.1
        ),
        ((2, 3),),
    ),
    Case(
        "cross_entropy-probabilities",
        lambda a, b: F.cross_entropy(a, b.softmax(1)),
        ((2, 3), (2, 3)),
    ),
    Case(
        "ctc",
        lambda a: F.ctc_loss(a.log_softmax(2), ints([[1, 2], [1, 1]]), ints([4, 4]), ints([2, 2])),
        ((4, 2, 3),),
    ),
    Case(
        "ctc-lengths",
        lambda a: F.ctc_loss(a.log_softmax(2), ints([1, 2, 1]), [4, 3], [2, 1], reduction="sum"),
        ((4, 2, 3),),
    ),
    # recurrent
    Case(
        "lstm",
        lambda x, a, b, c, d: F.lstm(x, None, [a, b, c, d]),
        ((3, 2, 2), (12, 2), (12, 3), (12,), (12,)),
    ),
    Case(
        "lstm-states",
        lambda x, h, c, a, b: F.lstm(x, (h, c), [a, b], has_biases=False),
        ((3, 2, 2), (1, 2, 2), (1, 2, 2), (8, 2), (8, 2)),
    ),
    Case(
        "lstm-lengths-both",
        lambda x, a, b, c, d: F.lstm(
            x,
            None,
            [a, b, c, d],
            has_biases=False,
            bidirectional=True,
            batch_first=True,
            lengths=[3, 2],
        ),
        ((2, 3, 2), (8, 2), (8, 2), (8, 2), (8, 2)),
    ),
    Case(
        "lstm-two-layers",
        lambda x, a, b, c, d: F.lstm(x, None, [a, b, c, d], has_biases=False, num_layers=2),
        ((3, 1, 2), (8, 2), (8, 2), (8, 2), (8, 2)),
    ),
    Case(
        "gru",
        lambda x, h, a, b, c, d: F.gru(x, h, [a, b, c, d]),
        ((3, 2, 2), (1, 2, 2), (6, 2), (6, 2), (6,), (6,)),
    ),
    Case(
        "rnn_tanh",
        lambda x, a, b, c, d: F.rnn_tanh(x, None, [a, b, c, d]),
        ((3, 2, 2), (3, 2), (3, 3), (3,), (3,)),
    ),
    Case(
        "rnn_relu",
        lambda x, a, b: F.rnn_relu(x, None, [a, b], has_biases=False),
        ((3, 2, 2), (3, 2), (3, 3)),
    ),
    Case(
        "lstm_cell",
        lambda x, h, c, a, b: F.lstm_cell(x, (h, c), a, b),
        ((2, 2), (2, 2), (2, 2), (8, 2), (8, 2)),
    ),
]
