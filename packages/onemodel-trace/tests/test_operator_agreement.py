"""Each operator: eager, sessions (exact bits) and ONNX Runtime agree, or the trace refuses by name.

Every case is traced twice: with fixed axes, where it must work, and with every axis of every input
symbolic, where it must be right at other sizes or be refused.
"""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import TraceErrorKind, TraceException

X = (3, 5)
IMAGE = (2, 4, 9, 11)

UNARY = [
    "neg", "abs", "sign", "floor", "ceil", "trunc", "round", "sqrt", "rsqrt", "reciprocal",
    "square", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh", "sigmoid", "erf",
    "isnan", "isinf", "isfinite",
]  # fmt: skip
POSITIVE = {"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "acosh", "reciprocal"}
UNIT = {"asin", "acos", "atanh"}

ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 0.7),
    "celu": lambda x: F.celu(x, 1.3),
    "selu": F.selu,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": F.softplus,
    "softplus beta": lambda x: F.softplus(x, 2.0, 1.5),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "softsign": F.softsign,
    "hardshrink": lambda x: F.hardshrink(x, 0.4),
    "softshrink": lambda x: F.softshrink(x, 0.4),
    "tanhshrink": F.tanhshrink,
    "logsigmoid": F.logsigmoid,
    "threshold": lambda x: F.threshold(x, 0.3, -1.0),
    "glu": lambda x: F.glu(x.repeat(1, 2), 1),
    "relu inplace": lambda x: F.relu(x * 1.5, inplace=True),
    "dropout eval": lambda x: F.dropout(x, 0.5, training=False) * 2,
    "softmax": lambda x: F.softmax(x, -1),
    "softmax 0": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "softmin": lambda x: F.softmin(x, 1),
    "normalize": lambda x: F.normalize(x, dim=1),
}

CLAMPS = {
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp min": lambda x: x.clamp(min=0.1),
    "clamp max": lambda x: x.clamp(max=0.1),
    "float to int": lambda x: x.to("int64"),
    "to bool": lambda x: x.bool(),
    "to double": lambda x: x.double() * 2,
    "power": lambda x: (x.abs() + 0.1) ** 1.7,
    "power 2": lambda x: x**2,
    "power 3": lambda x: x**3,
    "power half": lambda x: x.abs() ** 0.5,
    "scalar arithmetic": lambda x: 2 - (x * 3 + 1) / 4,
    "reflected division": lambda x: 1 / (x + 5),
    "masked_fill": lambda x: x.masked_fill(x > 0, -1.0),
    "where": lambda x: om.where(x > 0.2, x, x * 0.1),
    "add in place": lambda x: (x * 2).add_(1.0),
}


def _augmented(x):
    y = x * 2
    y += 1
    y *= x
    y -= 0.5
    y /= 3
    return y


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum 1": lambda x: x.sum(1),
    "sum kept": lambda x: x.sum((0, 1), keepdim=True),
    "mean": lambda x: x.mean(),
    "mean 0": lambda x: x.mean(0, keepdim=True),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin((0, 1)),
    "max": lambda x: x.max(),
    "max 1": lambda x: tuple(x.max(1)),
    "min 0 kept": lambda x: tuple(x.min(0, keepdim=True)),
    "argmax": lambda x: x.argmax(1),
    "argmax flat": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(0, keepdim=True),
    "any": lambda x: (x > 1).any(1),
    "all": lambda x: (x > -1).all(),
    "var": lambda x: x.var(1),
    "var population": lambda x: x.var(1, correction=0),
    "std": lambda x: x.std(0, keepdim=True),
    "var all": lambda x: x.var(),
    "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: x.norm(dim=1),
    "norm 1": lambda x: om.norm(x, 1, dim=1),
    "norm inf": lambda x: om.norm(x, float("inf"), dim=1),
    "cumsum": lambda x: x.cumsum(1),
    "count_nonzero": lambda x: om.count_nonzero(x > 0, 1),
    "softmax of sum": lambda x: F.softmax(x.sum(1), 0),
}

SHAPES = {
    "view": lambda x: x.view(-1),
    "flatten": lambda x: x.flatten(),
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "permute": lambda x: x.permute(1, 0) * 2,
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(1),
    "squeeze all": lambda x: x.unsqueeze(1).squeeze(),
    "expand": lambda x: x.unsqueeze(1).expand(-1, 4, -1),
    "expand new": lambda x: x.expand(2, *x.shape),
    "slice": lambda x: x[1:],
    "slice step": lambda x: x[:, ::2],
    "slice ends": lambda x: x[:-1, 1:],
    "slice fixed": lambda x: x[:2, 1:3],
    "select": lambda x: x[0],
    "select last": lambda x: x[:, -1],
    "select middle": lambda x: x[:, 2],
    "none": lambda x: x[:, None],
    "ellipsis": lambda x: x[..., 0],
    "index list": lambda x: x[:, [0, 2, 1]],
    "index tensor": lambda x: x[om.tensor([0, 1, 1])],
    "two indices": lambda x: x[om.tensor([0, 1]), om.tensor([2, 0])],
    "cat": lambda x: om.cat([x, x * 2], 1),
    "stack": lambda x: om.stack([x, -x], 1),
    "split": lambda x: x.split(2, 1),
    "split sizes": lambda x: x.split([1, 4], 1),
    "chunk": lambda x: x.chunk(2, 0),
    "unbind": lambda x: x.unbind(0),
    "pad": lambda x: F.pad(x, (1, 2)),
    "pad value": lambda x: F.pad(x, (1, 0, 2, 1), value=3.0),
    "pad reflect": lambda x: F.pad(x.unsqueeze(0), (2, 1), mode="reflect"),
    "pad replicate": lambda x: F.pad(x.unsqueeze(0), (2, 1), mode="replicate"),
    "pad circular": lambda x: F.pad(x.unsqueeze(0), (2, 1), mode="circular"),
    "crop": lambda x: F.pad(x, (-1, -1)),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(2, 1),
    "roll back": lambda x: x.roll(-1, 0),
    "roll flat": lambda x: x.roll(1),
    "repeat": lambda x: x.repeat(2, 3),
    "repeat new": lambda x: x.repeat(2, 1, 1),
    "tile": lambda x: om.tile(x, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "movedim": lambda x: x.unsqueeze(0).movedim(0, -1),
    "diagonal": lambda x: x.diagonal(),
    "diagonal offset": lambda x: x.diagonal(1),
    "diagonal of batches": lambda x: om.stack([x, x * 2]).diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(1, 3, 1),
    "topk": lambda x: tuple(x.topk(2, 1)),
    "sort": lambda x: tuple(x.sort(1)),
    "argsort": lambda x: x.argsort(0, descending=True),
    "numel": lambda x: x * x.numel(),
    "reshape by shape": lambda x: x.reshape(x.shape[1], x.shape[0]),
    "zeros by shape": lambda x: x + om.zeros(x.shape[0], 1) + om.ones(x.shape[1]),
    "full by shape": lambda x: om.full((x.shape[1],), 2.5) * x,
    "arange by shape": lambda x: om.arange(x.shape[1]) + x,
    "arange float": lambda x: om.arange(x.shape[1], dtype="float32") * 0.5 + x,
    "zeros_like": lambda x: om.zeros_like(x) + x,
    "ones_like": lambda x: om.ones_like(x) - x,
    "full_like": lambda x: om.full_like(x, 0.5) + x,
    "size as value": lambda x: x / x.shape[1],
    "sizes as values": lambda x: x.sum() / (x.shape[0] * x.shape[1]) + (x.shape[1] - 1),
    "one_hot": lambda x: F.one_hot((x > 0).long(), 3),
    "outer": lambda x: om.outer(x[0], x[:, 0]),
    "meshgrid": lambda x: om.meshgrid(x[0], x[:, 0], indexing="ij"),
    "causal mask": lambda x: (
        (x @ x.T)
        .masked_fill(om.ones(x.shape[0], x.shape[0]).tril() == 0, float("-inf"))
        .softmax(-1)
    ),
}

BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": lambda x, y: om.fmod(x, y),
    "trunc division": lambda x, y: om.div(x, y, rounding_mode="trunc"),
    "maximum": lambda x, y: om.maximum(x, y),
    "minimum": lambda x, y: om.minimum(x, y),
    "pow": lambda x, y: x.abs() ** y,
    "atan2": lambda x, y: om.atan2(x, y),
    "eq": lambda x, y: x == y.round(),
    "ne": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "and or xor": lambda x, y: ((x > 0) & (y > 0)) | ((x < 1) ^ (y < 1)),
    "not": lambda x, y: ~(x > y),
    "where": lambda x, y: om.where(x > 0, x, y),
    "clamp by tensors": lambda x, y: x.clamp(min=-y.abs(), max=y.abs()),
    "addcmul": lambda x, y: om.addcmul(x, x, y, value=0.5),
    "lerp": lambda x, y: om.lerp(x, y, 0.3),
    "matmul": lambda x, y: x @ y.transpose(-1, -2),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, dim=-1),
    "mse": lambda x, y: F.mse_loss(x, y),
    "l1": lambda x, y: F.l1_loss(x, y),
    "smooth l1": lambda x, y: F.smooth_l1_loss(x, y),
    "bce with logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "einsum": lambda x, y: om.einsum("ij,kj->ik", x, y),
    "cat": lambda x, y: om.cat([x, y], 0),
    "outer sum": lambda x, y: x[:, None, :] + y[None, :, :],
    "broadcast row": lambda x, y: x + y[:1],
}

INTEGERS = {
    "int arithmetic": lambda i, j: (i + j) * 3 - i,
    "int floor": lambda i, j: (i - 2) // (j + 1),
    "int remainder": lambda i, j: (i - 2) % (j + 1),
    "int trunc": lambda i, j: om.div(i - 2, j + 1, rounding_mode="trunc"),
    "int true division": lambda i, j: i / (j + 1),
    "int sum": lambda i, j: i.sum(1) + j.amax(1),
    "int mixed": lambda i, j: i * 0.5 + j,
    "bit and": lambda i, j: i & j,
    "bit or xor": lambda i, j: (i | j) ^ 1,
    "bit not": lambda i, j: ~i,
    "int cumsum": lambda i, j: i.cumsum(0),
    "int comparison": lambda i, j: (i > j).long() + (i == j),
    "gather": lambda i, j: i.gather(1, j),
    "embedding": lambda i, j: F.embedding(i, om.arange(8, dtype="float32").reshape(4, 2)),
    "int to float": lambda i, j: i.float().sqrt(),
    "int where": lambda i, j: om.where(i > j, i, j),
    "int min max": lambda i, j: om.maximum(i, j) - om.minimum(i, 2),
    "scatter": lambda i, j: i.scatter(1, j, i * 10),
    "scatter_add": lambda i, j: om.zeros(3, 5).scatter_add(1, j, i.float()),
    "index_add": lambda i, j: om.zeros(4, 5).index_add(0, j[:, 0], i.float()),
    "take_along_dim": lambda i, j: om.take_along_dim(i, j, 1),
    "index_select": lambda i, j: i.index_select(0, om.tensor([2, 0])),
}


def _weights(*shape, seed=0):
    generator = np.random.Generator(np.random.PCG64(seed))
    return om.from_numpy(generator.standard_normal(shape, np.float32) * 0.5)


W = {
    "conv": _weights(6, 4, 3, 3),
    "bias": _weights(6, seed=1),
    "grouped": _weights(8, 2, 3, 3),
    "depthwise": _weights(4, 1, 3, 3),
    "transposed": _weights(4, 6, 4, 4),
    "conv1d": _weights(6, 4, 3),
    "channels": _weights(4, seed=3),
    "positive": _weights(4, seed=4).abs(),
    "linear": _weights(7, 11, seed=5),
    "linear bias": _weights(7, seed=6),
}

IMAGES = {
    "conv2d": lambda x: F.conv2d(x, W["conv"], W["bias"]),
    "conv2d stride": lambda x: F.conv2d(x, W["conv"], W["bias"], stride=2, padding=1),
    "conv2d dilation": lambda x: F.conv2d(x, W["conv"], None, dilation=2),
    "conv2d groups": lambda x: F.conv2d(x, W["grouped"], None, groups=2, padding=1),
    "conv2d depthwise": lambda x: F.conv2d(x, W["depthwise"], W["channels"], groups=4),
    "conv2d same": lambda x: F.conv2d(x, W["conv"], W["bias"], padding="same"),
    "conv1d": lambda x: F.conv1d(x[:, :, 0], W["conv1d"], padding=1),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, W["transposed"], stride=2, padding=1),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d overlapping": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
    "max_pool2d ceil": lambda x: F.max_pool2d(x, 2, ceil_mode=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "avg_pool2d padded": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1),
    "avg_pool2d without pads": lambda x: F.avg_pool2d(
        x, 3, stride=2, padding=1, count_include_pad=False
    ),
    "adaptive average 1": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "adaptive max 1": lambda x: F.adaptive_max_pool2d(x, 1),
    "batch_norm": lambda x: F.batch_norm(
        x, W["channels"], W["positive"], W["channels"], W["channels"]
    ),
    "batch_norm plain": lambda x: F.batch_norm(x, W["channels"], W["positive"]),
    "instance_norm": lambda x: F.instance_norm(x),
    "instance_norm affine": lambda x: F.instance_norm(x, weight=W["channels"], bias=W["channels"]),
    "group_norm": lambda x: F.group_norm(x, 2, W["channels"], W["channels"]),
    "group_norm plain": lambda x: F.group_norm(x, 2),
    "layer_norm": lambda x: F.layer_norm(x, (11,), _weights(11), _weights(11, seed=2)),
    "layer_norm plain": lambda x: F.layer_norm(x, (9, 11)),
    "rms_norm": lambda x: F.rms_norm(x, (11,), _weights(11)),
    "linear": lambda x: F.linear(x, W["linear"], W["linear bias"]),
    "linear without bias": lambda x: F.linear(x, W["linear"]),
    "linear of rows": lambda x: F.linear(x[:, 0, 0], W["linear"], W["linear bias"]),
    "matmul by constant": lambda x: x @ W["linear"].T,
    "prelu": lambda x: F.prelu(x, W["channels"]),
    "interpolate nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "interpolate bilinear": lambda x: F.interpolate(
        x, scale_factor=2, mode="bilinear", align_corners=False
    ),
    "interpolate size": lambda x: F.interpolate(x, size=(5, 7), mode="bilinear"),
    "interpolate corners": lambda x: F.interpolate(
        x, size=(13, 8), mode="bilinear", align_corners=True
    ),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[:, :, :8, :10], 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "unfold": lambda x: F.unfold(x, 3, padding=1, stride=2),
    "flatten 1": lambda x: x.flatten(1),
    "permute and join": lambda x: x.permute(3, 0, 1, 2).flatten(2),
    "mean over space": lambda x: x.mean((2, 3)),
    "spatial softmax": lambda x: x.flatten(2).softmax(-1).view(*x.shape),
    "glu of channels": lambda x: F.glu(x, 1),
    "shuffle by view": lambda x: (
        x.view(x.shape[0], 2, 2, *x.shape[2:]).transpose(1, 2).reshape(x.shape)
    ),
    "attention": lambda x: F.scaled_dot_product_attention(x, x * 0.5, x + 1),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(
        x, x, x, attn_mask=om.ones(9, 9).tril().bool()
    ),
}

NAMES = ("i", "j", "k", "l")


def check(agree, function, *examples):
    agree(function, *examples)


def check_symbolic(agree, function, *examples, peer=True):
    axes = {}
    names = ("x", "y") if examples[0].dtype == "float32" else ("i", "j")
    for name, tensor in zip(names, examples):
        axes[name] = tuple(None if size in (1, 4) else f"s{size}" for size in tensor._array.shape)
    try:
        agree(function, *examples, axes=axes, peer=peer)
    except TraceException as error:
        assert error.kind is TraceErrorKind.SYMBOLIC_SHAPE, error


@pytest.mark.parametrize("name", UNARY)
def test_unary(name, agree, example):
    x = example(*X)
    if name in POSITIVE:
        x = x.abs() + (1.0 if name == "acosh" else 0.1)
    if name in UNIT:
        x = x * 0.45

    def function(x):
        return getattr(om, name)(x)

    check(agree, function, x)
    check_symbolic(agree, function, x)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, agree, example):
    check(agree, ACTIVATIONS[name], example(*X))
    check_symbolic(agree, ACTIVATIONS[name], example(*X))


@pytest.mark.parametrize("name", CLAMPS)
def test_elementwise_with_numbers(name, agree, example):
    check(agree, CLAMPS[name], example(*X))
    check_symbolic(agree, CLAMPS[name], example(*X))


def test_augmented_assignment(agree, example):
    check(agree, _augmented, example(*X))
    check_symbolic(agree, _augmented, example(*X))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, agree, example):
    check(agree, REDUCTIONS[name], example(*X))
    check_symbolic(agree, REDUCTIONS[name], example(*X))


@pytest.mark.parametrize("name", SHAPES)
def test_shape_operators(name, agree, example):
    check(agree, SHAPES[name], example(*X))
    check_symbolic(agree, SHAPES[name], example(*X))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name, agree, example):
    x, y = example(*X), example(*X) * 0.7 + 0.3
    check(agree, BINARY[name], x, y)
    check_symbolic(agree, BINARY[name], x, y)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, agree, example):
    i, j = example(*X, dtype="int64", low=0, high=4), example(*X, dtype="int64", low=0, high=3)
    check(agree, INTEGERS[name], i, j)
    check_symbolic(agree, INTEGERS[name], i, j)


@pytest.mark.parametrize("name", IMAGES)
def test_images(name, agree, example):
    check(agree, IMAGES[name], example(*IMAGE))
    check_symbolic(agree, IMAGES[name], example(*IMAGE))
