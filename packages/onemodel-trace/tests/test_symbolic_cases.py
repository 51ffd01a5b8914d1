"""Programs over symbolic axes: each traced once and run at many sizes, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import Axis, TraceErrorKind, TraceException


def weights(*shape, seed=0):
    generator = np.random.Generator(np.random.PCG64(seed))
    return om.from_numpy(generator.standard_normal(shape, np.float32) * 0.3)


W24 = weights(24, 24)
W12 = weights(12, 12)
TABLE = weights(64, 24)
CLS = weights(1, 1, 24)
BIAS = weights(127)


def multi_head(x):
    b, t, c = x.shape
    q, k, v = (
        F.linear(x, weights(24, 24, seed=s)).view(b, t, 4, 6).transpose(1, 2) for s in range(3)
    )
    scores = (q @ k.transpose(-2, -1)) * 6**-0.5
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)


def relative_bias(x):
    t = x.shape[1]
    distance = om.arange(t)[:, None] - om.arange(t)[None, :]
    return (x @ x.transpose(1, 2)) + BIAS[distance + 63]


def crnn(x):
    y = F.relu(F.conv2d(x, weights(4, 1, 3, 3), stride=2, padding=1))
    y = F.conv2d(y, weights(6, 4, 3, 3), stride=2, padding=1)
    b, _, _, w = y.shape
    y = y.permute(3, 0, 1, 2).reshape(w, b, -1)
    one_way = [weights(16, 12), weights(16, 4), weights(16), weights(16)]
    y, _, _ = F.lstm(y, None, [*one_way, *[-w for w in one_way]], bidirectional=True)
    return F.log_softmax(F.linear(y, weights(5, 8), weights(5)), -1)


def windows(x, k=4):
    b, h, w, c = x.shape
    parts = x.view(b, h // k, k, w // k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, k * k, c)
    parts = parts * 2.0
    back = parts.view(b, h // k, w // k, k, k, c).permute(0, 1, 3, 2, 4, 5)
    return back.reshape(b, h, w, c)


def merged(x):
    parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
    return om.cat(parts, -1).flatten(1, 2)


def grouped_queries(x):
    b, t, _ = x.shape
    keys = x.view(b, t, 2, 12).transpose(1, 2)
    keys = keys.repeat_interleave(3, 1)
    return keys.reshape(b, 6, t, 12)


def repeat_kv(x):
    b, h, t, d = x.shape
    return x[:, :, None].expand(b, h, 3, t, d).reshape(b, h * 3, t, d)


def channel_shuffle(x):
    b, c, h, w = x.shape
    return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


def groups(x):
    b, c, h, w = x.shape
    rows = x.reshape(b, 4, -1)
    rows = rows - rows.mean(-1, keepdim=True)
    return rows.reshape(b, c, h, w)


BT = {"x": ("B", "T", None)}
BHW = {"x": ("B", None, "H", "W")}
MULTIPLES = {"x": ("B", Axis("H", multiple=4), Axis("W", multiple=4), None)}

RIGHT = {
    "flatten channels": (lambda x: x.flatten(1), (2, 3, 8, 8), {"x": {0: "B"}}),
    "heads and back": (
        lambda x: x.view(*x.shape[:2], 3, 4).transpose(1, 2).reshape(x.shape[0], 3, x.shape[1] * 4),
        (2, 5, 12),
        BT,
    ),
    "rows and back": (
        lambda x: F.linear(x.reshape(-1, 12), W12).view(*x.shape[:2], -1),
        (2, 5, 12),
        BT,
    ),
    "batch as large as the heads": (lambda x: x.view(*x.shape[:2], 4, 4), (4, 5, 16), BT),
    "length as large as the width": (
        lambda x: x.view(x.shape[0], x.shape[1], 2, 4).flatten(2),
        (3, 8, 8),
        BT,
    ),
    "an axis of the example's size beside axes of one": (
        lambda x: x[:, :1].squeeze() + x.squeeze().sum(1),
        (2, 5, 1, 24),
        {"x": ("B", "T", None, None)},
    ),
    "one axis and back": (
        lambda x: x.flatten(0, 1).view(x.shape[0], -1, 12),
        (2, 5, 12),
        BT,
    ),
    "all in one": (lambda x: x.flatten(), (2, 5, 12), BT),
    "token in front": (
        lambda x: om.cat([CLS.expand(x.shape[0], -1, -1), x], 1) + TABLE[: x.shape[1] + 1],
        (2, 5, 24),
        BT,
    ),
    "token in front, heads": (
        lambda x: om.cat([CLS.expand(x.shape[0], -1, -1), x], 1).view(x.shape[0], -1, 4, 6),
        (2, 5, 24),
        BT,
    ),
    "strided convolutions": (crnn, (2, 1, 8, 37), {"x": {0: "B", 3: "W"}}),
    "windows": (windows, (2, 8, 12, 3), MULTIPLES),
    "patch merging": (merged, (2, 8, 12, 3), MULTIPLES),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (2, 8, 5, 7), BHW),
    "mean over space by sum": (
        lambda x: x.sum((2, 3)) / (x.shape[2] * x.shape[3]),
        (2, 3, 5, 7),
        BHW,
    ),
    "scale by a size": (
        lambda x: (x @ x.transpose(1, 2)) * om.as_tensor(x.shape[1]).float().rsqrt(),
        (2, 5, 12),
        BT,
    ),
    "causal mask by tril": (
        lambda x: (
            (x @ x.transpose(1, 2))
            .masked_fill(om.ones(x.shape[1], x.shape[1]).tril() == 0, -1e9)
            .softmax(-1)
        ),
        (2, 5, 12),
        BT,
    ),
    "causal mask by comparison": (
        lambda x: om.where(
            om.arange(x.shape[1])[:, None] >= om.arange(x.shape[1])[None],
            x @ x.transpose(1, 2),
            -1e9,
        ),
        (2, 5, 12),
        BT,
    ),
    "table cut to the length": (lambda x: x + TABLE[: x.shape[1]], (2, 5, 24), BT),
    "embedded positions": (
        lambda x: x + F.embedding(om.arange(x.shape[1]), TABLE),
        (2, 5, 24),
        BT,
    ),
    "repeated heads": (grouped_queries, (2, 5, 24), BT),
    "repeat_kv": (repeat_kv, (2, 2, 5, 6), {"x": ("B", None, "T", None)}),
    "upsampled by 2": (
        lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
        (2, 3, 5, 7),
        BHW,
    ),
    "relative position bias": (relative_bias, (2, 5, 24), BT),
    "einsum of one length": (
        lambda x: om.einsum("bthd,bshd->bhts", x, x),
        (2, 5, 4, 6),
        {"x": ("B", "T", None, None)},
    ),
    "attention": (multi_head, (2, 5, 24), BT),
    "first and last": (lambda x: x[:, 0] + x[:, -1], (2, 5, 24), BT),
    "all but the ends": (lambda x: x[:, 1:] - x[:, :-1], (2, 5, 24), BT),
    "every second": (lambda x: x[:, ::2] + x[:, ::2] * 2, (2, 5, 24), BT),
    "reversed": (lambda x: x.flip(1).cumsum(1), (2, 5, 24), BT),
    "padded convolution": (
        lambda x: x + F.conv1d(F.pad(x, (2, 0)), weights(4, 4, 3)),
        (2, 4, 9),
        {"x": ("B", None, "T")},
    ),
    "strided branches": (
        lambda x: (
            F.conv2d(x, weights(4, 4, 3, 3), stride=2, padding=1)
            + F.conv2d(x, weights(4, 4, 1, 1), stride=2)
        ),
        (2, 4, 9, 11),
        BHW,
    ),
    "down and up": (
        lambda x: om.cat(
            [
                x,
                F.conv_transpose2d(
                    F.conv2d(x, weights(4, 4, 3, 3), stride=2, padding=1),
                    weights(4, 4, 2, 2),
                    stride=2,
                ),
            ],
            1,
        ),
        (2, 4, 8, 12),
        BHW,
    ),
    "patches": (
        lambda x: F.conv2d(x, weights(6, 3, 4, 4), stride=4).flatten(2).transpose(1, 2),
        (2, 3, 8, 12),
        BHW,
    ),
    "minus the mean": (lambda x: x - x.mean(1).unsqueeze(1), (2, 5, 24), BT),
    "groups": (groups, (2, 8, 5, 7), BHW),
    "group norm of sizes that the groups divide": (
        lambda x: F.group_norm(x, 4, weights(12), weights(12)),
        (2, 12, 16, 24),
        {"x": ("B", None, Axis("H", multiple=4), Axis("W", multiple=4))},
    ),
    "group norm of sizes as many as the groups": (
        lambda x: F.group_norm(x, 4),
        (2, 12, 4, 8),
        BHW,
    ),
    "channel shuffle": (channel_shuffle, (2, 8, 5, 7), BHW),
    "zeros by size": (lambda x: om.cat([om.zeros(x.shape[0], 1, 24), x], 1), (2, 5, 24), BT),
    "pooled doubled": (
        lambda x: om.cat([x, x], 1).view(x.shape[0], 2, x.shape[1], 24).sum(1),
        (2, 5, 24),
        BT,
    ),
    "sorted": (lambda x: x.sort(1).values, (2, 5, 4), BT),
    "expanded mask": (
        lambda x: x.masked_fill((x.sum(-1) > 0)[:, :, None].expand(x.shape), 0.0),
        (2, 5, 4),
        BT,
    ),
    "variance": (lambda x: x.var(1), (2, 5, 4), BT),
    "stacked": (lambda x: om.stack([x, x * 2], 1).flatten(0, 1), (2, 5, 4), BT),
    "declared minimum": (
        lambda x: x[:, :3] if x.shape[1] > 2 else x,
        (2, 5, 4),
        {"x": ("B", Axis("T", minimum=3), None)},
    ),
    "cropped": (lambda x: F.pad(x.transpose(1, 2), (-2, 1)), (2, 5, 4), BT),
    "reflected": (lambda x: F.pad(x.transpose(1, 2), (2, 1), mode="reflect"), (2, 5, 4), BT),
    "parts of sizes": (
        lambda x: x.split([x.shape[1] - 2, 2], 1)[0],
        (2, 5, 4),
        BT,
    ),
    "tensor of a size": (lambda x: x / om.tensor(x.shape[1]).float().sqrt(), (2, 5, 4), BT),
    "tensor of sizes": (
        lambda x: x * om.tensor([x.shape[1], 3, [x.shape[0], 7][0], 1]).float(),
        (2, 5, 4),
        BT,
    ),
    "filled with a size": (
        lambda x: (
            x
            + om.full((4,), x.shape[1]) * om.full_like(x, x.shape[0])
            + om.ones(4).new_full((4,), x.shape[1])
        ),
        (2, 5, 4),
        BT,
    ),
    "bounded by sizes": (lambda x: (x * 4).clamp(x.shape[0], x.shape[1]), (2, 5, 4), BT),
    "declared multiple": (
        lambda x: x.view(x.shape[0], x.shape[1] // 2, 8) if x.shape[1] % 2 == 0 else x,
        (2, 6, 4),
        {"x": ("B", Axis("T", multiple=2), None)},
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_at_every_size(name, agree, example):
    function, shape, axes = RIGHT[name]
    agree(function, example(*shape), axes=axes)


def test_two_lengths(agree, example):
    agree(
        lambda x, y: om.einsum("bthd,bshd->bhts", x, y),
        example(2, 5, 4, 6),
        example(2, 7, 4, 6),
        axes={"x": ("B", "T", None, None), "y": ("B", "S", None, None)},
    )
    agree(
        lambda x, y: om.cat([x, y], 1).view(x.shape[0], -1, 4, 6),
        example(2, 5, 24),
        example(2, 7, 24),
        axes={"x": ("B", "T", None), "y": ("B", "S", None)},
    )
    agree(
        lambda x, y: F.interpolate(x, size=y.shape[-2:], mode="nearest"),
        example(2, 3, 5, 6),
        example(2, 3, 9, 8),
        axes={"x": ("B", None, "H", "W"), "y": ("B", None, "P", "Q")},
    )


REFUSED = {
    "loop over a size": (lambda x: om.stack([x[:, t] for t in range(x.shape[1])]), "T"),
    "branch": (lambda x: x if x.shape[1] > 6 else -x, "T > 6"),
    "remainder": (lambda x: x if x.shape[1] % 2 else -x, "T % 2"),
    "fixed slice": (lambda x: x[:, :3], "fixed end 3"),
    "select in the middle": (lambda x: x[:, 3], "position 3"),
    "chunk": (lambda x: x.chunk(2, 1)[0], "T"),
    "literal that is ambiguous": (lambda x: x.view(2, -1), "ambiguous"),
    "fixed table": (lambda x: x * weights(7, 24), "fixed extent 7"),
    "squeeze": (lambda x: x.squeeze(1), "T == 1"),
    "unbind": (lambda x: x.unbind(1)[0], "T"),
    "iteration": (lambda x: next(iter(x)), "B"),
    "length": (lambda x: x * len(x), "B"),
    "true division": (lambda x: x * (1.0 / x.shape[1]), "T"),
    "windows": (lambda x: x.unfold(1, 3, 1), "T"),
    "zeros of a fixed batch": (lambda x: om.cat([om.zeros(2, 1, 24), x], 1), "fixed extent 2"),
    "normalised axis": (lambda x: F.layer_norm(x.transpose(1, 2), (7,), weights(7)), "T"),
    "product with a fixed matrix": (lambda x: weights(7, 7) @ x, "fixed extent 7"),
    "half an axis": (lambda x: F.glu(om.cat([x, x], 1), 1), "T"),
    "stride": (lambda x: x * x.stride(0), "stride"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name, trace, example):
    function, text = REFUSED[name]
    with pytest.raises(TraceException) as caught:
        trace(function, example(2, 7, 24), axes=BT)
    assert caught.value.kind is TraceErrorKind.SYMBOLIC_SHAPE
    assert text in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "shape", "axes"),
    [
        (lambda x: x.view(-1, 3, 6, 4), (9, 6, 4), {"x": {0: "N"}}),
        (lambda x: x.view(3, 8), (6, 4), {"x": {0: "B"}}),
        (lambda x: x.view(5, 8, 8), (5, 2, 32), {"x": ("T", "B", None)}),
        (windows, (2, 8, 12, 3), {"x": ("B", "H", "W", None)}),
        (lambda x: x[None][1:].reshape(0, 8, 6), (2, 4, 6), {"x": {0: "B"}}),
        (lambda x: x.flatten(1).view(3, 8, 8), (3, 8, 8), {"x": ("B", "T", None)}),
    ],
)
def test_reshapes_without_one_reading(function, shape, axes, trace, example):
    with pytest.raises(TraceException) as caught:
        trace(function, example(*shape), axes=axes)
    assert caught.value.kind is TraceErrorKind.SYMBOLIC_SHAPE


def test_the_numbers_of_the_example_where_only_one_reading_exists(trace, example):
    """The graph means the sizes; verify says that the program itself runs at the example's only."""
    traced = trace(
        lambda x: x.view(3, 8, 2, 4).flatten(0, 1).view(3, 8, 8) * 2,
        example(3, 8, 8),
        axes={"x": ("B", "T", None)},
    )
    for shape in ((1, 1, 8), (2, 3, 8), (7, 2, 8)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        (y,) = traced.session().run(x)
        assert y.tolist() == (x * 2).tolist()
    with pytest.raises(TraceException, match="the graph computes what the eager function refuses"):
        traced.verify()


def test_symbols_whose_product_is_anothers_size_are_both_named(trace, example):
    with pytest.raises(TraceException, match="ambiguous") as caught:
        trace(lambda x: x.view(6, 6), example(2, 6, 3), axes={"x": ("B", "W", "T")})
    assert caught.value.kind is TraceErrorKind.SYMBOLIC_SHAPE
    text = str(caught.value)
    assert "B*T, W" in text or "T*B, W" in text
    assert "W, B*T" in text or "W, T*B" in text


def test_one_symbol_on_two_inputs(trace, example):
    from onemodel_kernels.errors import OneModelError

    traced = trace(
        lambda x, y: x + y, example(3, 5), example(3, 5), axes={"x": {0: "B"}, "y": {0: "B"}}
    )
    with pytest.raises(OneModelError, match="'B'"):
        traced.session().run({"x": np.ones((4, 5), np.float32), "y": np.ones((2, 5), np.float32)})


def test_a_declared_range_is_checked_by_the_session(trace, example):
    from onemodel_kernels.errors import OneModelError

    axis = Axis("T", minimum=4, maximum=16, multiple=4)
    traced = trace(lambda x: x * 2, example(8, 3), axes={"x": (axis, None)})
    session = traced.session()
    session.run(np.ones((4, 3), np.float32))
    for size in (1, 6, 20):
        with pytest.raises(OneModelError, match="T"):
            session.run(np.ones((size, 3), np.float32))


FORMS = {
    "constant": (lambda x: x.view(6, 4), (4, 6), None, 0),
    "one -1": (lambda x: x.view(x.shape[0], -1), (2, 3, 8), {"x": {0: "B"}}, 0),
    "alias": (lambda x: x.view(x.shape[0], x.shape[1], 24) * 2, (2, 7, 24), BT, 0),
    "chain": (lambda x: x.view(x.shape[0], x.shape[1], 4, 6), (2, 7, 24), BT, 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_shape_operands(form, trace, example):
    function, shape, axes, shapes = FORMS[form]
    traced = trace(function, example(*shape), axes=axes)
    operators = [node.operator for node in traced.graph.nodes]
    assert operators.count("Shape") == shapes
    if form == "alias":
        assert operators == ["Mul"]
    if form == "chain":
        assert operators == ["Shape", "Concat", "Reshape"]
