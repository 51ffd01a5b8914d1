"""The blocked channel layout: the same bits as the plain one, explicit conversions, named refusals."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_tensors.layouts import BlockedTensor, LayoutError, is_blocked, to_blocked, to_plain


def draw(*shape):
    return om.randn(*shape, generator=om.Generator(sum(shape)))


def same_bits(a, b):
    assert a.shape == b.shape
    assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


WEIGHT, BIAS = draw(8, 20, 3, 3), draw(8)
DEPTHWISE = draw(20, 1, 3, 3)
STATISTICS = (draw(20), draw(20).abs())
OPERATORS = {
    "conv2d": lambda x: F.conv2d(x, WEIGHT, BIAS, stride=2, padding=1),
    "conv2d-depthwise": lambda x: F.conv2d(x, DEPTHWISE, groups=20),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, draw(20, 5, 2, 2), stride=2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2, 1, 1),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    "batch_norm": lambda x: F.batch_norm(x, *STATISTICS, draw(20), draw(20)),
    "batch_norm-training": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 4),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "silu": F.silu,
    "gelu": F.gelu,
    "hardswish": F.hardswish,
    "sigmoid": lambda x: x.sigmoid() * F.tanh(x),
    "prelu": lambda x: F.prelu(x, draw(20)),
    "arithmetic": lambda x: (x + x * 2 - 1) / 3 + (1 - x) - (2 / (x.abs() + 1)) + -x,
    "functions": lambda x: om.add(x, om.mul(x, x), alpha=2) + om.sub(x, 1),
    "extrema": lambda x: x.maximum(x * 2).minimum(x + 1),
    "a block of a net": lambda x: F.relu(F.conv2d(F.relu(x), DEPTHWISE, groups=20, padding=1) + x),
}  # fmt: skip


@pytest.mark.parametrize("block", [16, 8, 3])
@pytest.mark.parametrize("name", list(OPERATORS))
def test_operators_give_the_bits_of_the_plain_layout(name, block):
    function = OPERATORS[name]
    plain = draw(2, 20, 8, 7).requires_grad_()
    apart = plain.detach().clone().requires_grad_()
    wanted = function(plain)
    found = function(to_blocked(apart, block))
    assert found.layout == f"blocked{block}"
    assert found.requires_grad
    same_bits(found.to_plain(), wanted)
    weight = draw(*wanted.shape)
    wanted.backward(weight)
    found.to_plain().backward(weight)
    same_bits(plain.grad, apart.grad)


@pytest.mark.parametrize("shape", [(2, 16, 4), (1, 5, 3, 4), (2, 33, 2, 2, 3), (0, 4, 2)])
def test_conversions_keep_every_element(shape):
    x = draw(*shape)
    there = to_blocked(x)
    assert (there.shape, there.ndim, there.dtype, there.block) == (shape, len(shape), "float32", 16)
    assert there.blocks.shape == (shape[0], -(-shape[1] // 16), *shape[2:], 16)
    same_bits(there.to_plain(), x)
    assert to_plain(x) is x
    assert is_blocked(there)
    assert not is_blocked(x)
    last = there.blocks[:, -1].numpy()
    assert not np.any(last[..., (shape[1] - 1) % 16 + 1 :])


def test_indices_of_a_pool_stay_plain():
    values, indices = F.max_pool2d(to_blocked(draw(1, 4, 4, 4)), 2, return_indices=True)
    assert (is_blocked(values), is_blocked(indices)) == (True, False)


REFUSED = {
    "softmax": lambda x: F.softmax(x, 1),
    "reshape": lambda x: x.reshape(2, -1),
    "matmul": lambda x: om.matmul(x, om.zeros(7, 2)),
    "sum": om.sum,
    "numpy": lambda x: x.numpy(),
    "item": lambda x: x.item(),
    "cat": lambda x: om.cat([x, x]),
    "backward": lambda x: x.backward(),
    "add": lambda x: draw(2, 20, 8, 7) + x,
    "mul": lambda x: x * draw(2, 20, 8, 7),
    "relu": lambda x: F.relu(x, inplace=True),
    "to_blocked": to_blocked,
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_other_operators_refuse_it_by_name(name):
    x = to_blocked(draw(2, 20, 8, 7))
    with pytest.raises((LayoutError, TypeError), match=rf"{name}.*(to_plain|plain layout|blocked)"):
        REFUSED[name](x)


def test_errors_name_what_came():
    x = to_blocked(draw(2, 20, 8, 7))
    with pytest.raises(
        om.ShapeError, match=r"add: .*\(2, 20, 8, 7\) in blocked16 and .* in blocked4"
    ):
        x + to_blocked(draw(2, 20, 8, 7), 4)
    with pytest.raises(om.ShapeError, match=r"expected \(N, C, spatial axes\), got shape \(2, 3\)"):
        to_blocked(om.zeros(2, 3))
    with pytest.raises(om.AttributeValueError, match="block of at least 1, got 0"):
        to_blocked(om.zeros(2, 3, 4), 0)
    with pytest.raises(LayoutError, match="=="):
        _ = x == 1
    with pytest.raises(LayoutError, match="__bool__"):
        bool(x)
    assert repr(x) == "BlockedTensor(shape=(2, 20, 8, 7), dtype=float32, layout=blocked16)"
    assert isinstance(x.detach(), BlockedTensor)
