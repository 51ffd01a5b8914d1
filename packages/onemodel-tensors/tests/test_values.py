"""Forward values against numpy in float64: arguments, axes and defaults mean what PyTorch means by them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracle import close, draw, t

import onemodel_tensors as om
from onemodel_tensors import functional as F

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


def test_norms():
    x, w, b = draw(3, 4, 5), draw(5), draw(5)
    eps = float(np.float32(1e-5))  # as ONNX holds it

    def normal(a, axes):
        return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + eps)

    close(F.layer_norm(t(x), (5,), t(w), t(b)), normal(x, 2) * w + b)
    close(F.layer_norm(t(x), (4, 5)), normal(x, (1, 2)))
    close(F.rms_norm(t(x), (5,), t(w), 1e-5), x / np.sqrt((x * x).mean(2, keepdims=True) + eps) * w)
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
        (x - mean.numpy()[lift]) / np.sqrt(var.numpy()[lift] + eps) * c[:, None] + d[:, None],
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


def test_medians_running_products_and_triangles():
    x = om.tensor([[3.0, 1.0, 2.0, 1.0], [float("nan"), 0.0, 1.0, 2.0]])
    values, indices = x.median(1)
    assert str(values.tolist()) == "[1.0, nan]"
    assert indices.tolist() == [3, 0]
    assert x[0].median() == 1.0
    assert om.msort(om.tensor([3, 1, 2])).tolist() == [1, 2, 3]
    assert om.tensor([2, 3, 4]).cumprod(0).tolist() == [2, 6, 24]
    assert om.tril_indices(2, 3).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert om.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    cube = om.zeros(2, 2, 2).fill_diagonal_(1.0)
    assert cube.nonzero().tolist() == [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(om.ShapeError, match="fill_diagonal_"):
        om.zeros(2, 2, 3).fill_diagonal_(1.0)
    infinite = om.diag(om.tensor([float("inf"), 1.0]))
    assert infinite.tolist() == [[float("inf"), 0.0], [0.0, 1.0]]
    drawn = om.zeros(2000).exponential_(2.0, generator=om.Generator(1))
    # The mean of 2,000 draws lies within 5 standard errors of 1/2.
    assert abs(float(drawn.mean()) - 0.5) < 5 * 0.5 / 2000**0.5
    like = om.randint_like(om.zeros(3, dtype="int32"), 2, 5)
    assert (like.dtype, bool(((like >= 2) & (like < 5)).all())) == ("int32", True)


def test_drop_path_drops_whole_samples():
    x = om.ones(64, 3, requires_grad=True)
    y = F.drop_path(x, 0.25, training=True, generator=om.Generator(2))
    rows = {tuple(row) for row in y.tolist()}
    assert rows == {(0.0, 0.0, 0.0), tuple((om.ones(3) / 0.75).tolist())}
    assert F.drop_path(x, 0.25) is x
