"""Losses against their formulas in f64, and their gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import gradcheck
from onemodel_training import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelSoftMarginLoss,
    NLLLoss,
    NnModule,
    PoissonNLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
)

Values = np.ndarray
draw = np.random.default_rng(7)
X = draw.standard_normal((4, 5))
Y = draw.standard_normal((4, 5))
Z = draw.standard_normal((4, 5))
P = draw.uniform(0.05, 0.95, (4, 5))
Q = draw.uniform(0.05, 0.95, (4, 5))
SIGNS = np.where(draw.random((4, 5)) < 0.5, -1.0, 1.0)
ROWS = np.array([1.0, -1.0, 1.0, -1.0])


def sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


def bce(p: Values, y: Values) -> Values:
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def cosine(a: Values, b: Values) -> Values:
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))


def distance(a: Values, b: Values) -> Values:
    return np.sqrt(((a - b + 1e-6) ** 2).sum(1))


D = np.abs(X - Y)
CASES: list[tuple[Callable[..., NnModule], tuple[Values, ...], Values]] = [
    (MSELoss, (X, Y), (X - Y) ** 2),
    (L1Loss, (X, Y), D),
    (lambda **o: SmoothL1Loss(beta=0.7, **o), (X, Y), np.where(D < 0.7, D * D / 1.4, D - 0.35)),
    (
        lambda **o: HuberLoss(delta=0.7, **o),
        (X, Y),
        np.where(D <= 0.7, D * D / 2, 0.7 * (D - 0.35)),
    ),
    (BCELoss, (P, Q), bce(P, Q)),
    (lambda **o: BCELoss(om.from_numpy(Q), **o), (P, Q), bce(P, Q) * Q),
    (BCEWithLogitsLoss, (X, Q), bce(sigmoid(X), Q)),
    (
        lambda **o: BCEWithLogitsLoss(pos_weight=om.full((5,), 3.0, dtype="float64"), **o),
        (X, Q),
        -(3 * Q * np.log(sigmoid(X)) + (1 - Q) * np.log(1 - sigmoid(X))),
    ),
    (KLDivLoss, (np.log(P), Q), Q * (np.log(Q) - np.log(P))),
    (lambda **o: KLDivLoss(log_target=True, **o), (X, Y), np.exp(Y) * (Y - X)),
    (
        lambda **o: CosineEmbeddingLoss(margin=0.1, **o),
        (X, Y, ROWS),
        np.where(ROWS > 0, 1 - cosine(X, Y), np.maximum(0, cosine(X, Y) - 0.1)),
    ),
    (
        lambda **o: MarginRankingLoss(margin=0.3, **o),
        (X, Y, SIGNS),
        np.maximum(0, -SIGNS * (X - Y) + 0.3),
    ),
    (
        TripletMarginLoss,
        (X, Y, Z),
        np.maximum(0, distance(X, Y) - distance(X, Z) + 1.0),
    ),
    (
        HingeEmbeddingLoss,
        (X, SIGNS),
        np.where(SIGNS > 0, X, np.maximum(0, 1 - X)),
    ),
    (SoftMarginLoss, (X, SIGNS), np.log1p(np.exp(-SIGNS * X))),
    (MultiLabelSoftMarginLoss, (X, Q), bce(sigmoid(X), Q).mean(1)),
    (PoissonNLLLoss, (X, P), np.exp(X) - P * X),
    (lambda **o: PoissonNLLLoss(log_input=False, **o), (P, Q), P - Q * np.log(P + 1e-8)),
    (GaussianNLLLoss, (X, Y, P), (np.log(P) + (X - Y) ** 2 / P) / 2),
]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("make", "inputs", "expected"), CASES)
def test_values(
    make: Callable[..., NnModule], inputs: tuple[Values, ...], expected: Values, reduction: str
) -> None:
    loss = make(reduction=reduction)(*[om.from_numpy(value) for value in inputs])
    wanted = {"none": expected, "mean": expected.mean(), "sum": expected.sum()}[reduction]
    assert tuple(loss.shape) == np.shape(wanted)
    # The same formula in f64, summed in another order.
    np.testing.assert_allclose(loss.numpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("make", "inputs", "expected"), CASES)
def test_gradients(
    make: Callable[..., NnModule], inputs: tuple[Values, ...], expected: Values
) -> None:
    loss = make()
    first, *rest = [om.from_numpy(value) for value in inputs]
    assert gradcheck(lambda x: loss(x, *rest), (first.requires_grad_(),))


TARGET = np.array([3, 0, -100, 4])
WEIGHT = np.array([0.5, 1.0, 2.0, 0.25, 3.0])


def log_softmax(x: Values) -> Values:
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def cross_entropy(x: Values, weight: Values, smoothing: float) -> tuple[Values, Values]:
    logp = log_softmax(x)
    kept = TARGET != -100
    index = np.where(kept, TARGET, 0)
    own = weight[index] * kept
    nll = -logp[np.arange(4), index] * own
    smooth = -(logp * weight).sum(1) * kept
    return (1 - smoothing) * nll + smoothing / 5 * smooth, own


@pytest.mark.parametrize(
    ("weighted", "smoothing", "reduction"),
    list(itertools.product([False, True], [0.0, 0.1], ["none", "mean", "sum"])),
)
def test_cross_entropy(weighted: bool, smoothing: float, reduction: str) -> None:
    weight = WEIGHT if weighted else np.ones(5)
    losses, own = cross_entropy(X, weight, smoothing)
    loss = CrossEntropyLoss(
        om.from_numpy(weight) if weighted else None,
        reduction=reduction,
        label_smoothing=smoothing,
    )
    x, target = om.from_numpy(X), om.from_numpy(TARGET)
    wanted = {"none": losses, "mean": losses.sum() / own.sum(), "sum": losses.sum()}[reduction]
    np.testing.assert_allclose(loss(x, target).numpy(), wanted, rtol=1e-10)
    assert gradcheck(lambda t: loss(t, target).sum(), (x.requires_grad_(),))


def test_cross_entropy_of_probabilities_and_of_maps() -> None:
    share = P / P.sum(1, keepdims=True)
    wanted = -(share * log_softmax(X)).sum(1).mean()
    assert CrossEntropyLoss()(om.from_numpy(X), om.from_numpy(share)).item() == pytest.approx(
        wanted
    )
    maps = draw.standard_normal((2, 3, 4, 5))
    target = draw.integers(0, 3, (2, 4, 5))
    rows = log_softmax(maps.transpose(0, 2, 3, 1).reshape(-1, 3))
    wanted = -rows[np.arange(40), target.ravel()].mean()
    found = CrossEntropyLoss()(om.from_numpy(maps), om.from_numpy(target))
    assert found.item() == pytest.approx(wanted, rel=1e-12)


def test_nll_and_the_mean_of_nothing() -> None:
    x = om.from_numpy(log_softmax(X))
    loss = NLLLoss(om.from_numpy(WEIGHT))
    losses, own = cross_entropy(X, WEIGHT, 0.0)
    target = om.from_numpy(TARGET)
    assert loss(x, target).item() == pytest.approx(losses.sum() / own.sum())
    assert math.isnan(NLLLoss()(x, om.full((4,), -100, dtype="int64")).item())


def brute_force_ctc(logp: Values, target: list[int], blank: int) -> float:
    steps, classes = logp.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        merged = [symbol for symbol, _ in itertools.groupby(path)]
        if [symbol for symbol in merged if symbol != blank] == target:
            total += math.exp(sum(logp[t, symbol] for t, symbol in enumerate(path)))
    return -math.log(total) if total else math.inf


def ctc_inputs() -> tuple[Values, list[list[int]], list[int]]:
    scores = draw.standard_normal((5, 3, 3))
    logp = scores - np.log(np.exp(scores).sum(2, keepdims=True))
    return logp, [[1, 2], [1, 1], [2]], [5, 4, 3]


@pytest.mark.parametrize("joined", [False, True])
def test_ctc_is_the_sum_over_all_paths(joined: bool) -> None:
    logp, targets, lengths = ctc_inputs()
    expected = [
        brute_force_ctc(logp[:length, row], target, 0)
        for row, (target, length) in enumerate(zip(targets, lengths))
    ]
    flat = om.tensor([1, 2, 1, 1, 2])
    padded = om.tensor([[1, 2], [1, 1], [2, 0]])
    arguments = (flat if joined else padded, om.tensor(lengths), om.tensor([2, 2, 1]))
    x = om.from_numpy(logp)
    found = CTCLoss(reduction="none")(x, *arguments)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)
    mean = CTCLoss()(x, *arguments).item()
    assert mean == pytest.approx(np.mean(np.array(expected) / [2, 2, 1]), rel=1e-9)
    total = CTCLoss(reduction="sum")
    scores = om.from_numpy(draw.standard_normal((5, 3, 3))).requires_grad_()
    assert gradcheck(lambda s: total(s.log_softmax(2), *arguments), (scores,))


def test_an_impossible_alignment() -> None:
    logp, _, _ = ctc_inputs()
    arguments = (om.tensor([[1, 1]]), om.tensor([2]), om.tensor([2]))
    x = om.from_numpy(logp[:, :1]).requires_grad_()
    assert math.isinf(CTCLoss()(x, *arguments).item())
    loss = CTCLoss(zero_infinity=True)(x, *arguments)
    assert loss.item() == 0.0
    loss.backward()
    assert x.grad is not None
    assert not np.any(x.grad.numpy())


def test_edges_of_binary_cross_entropy() -> None:
    p = om.tensor([0.0, 1.0])
    assert BCELoss(reduction="none")(p, om.tensor([1.0, 0.0])).tolist() == [100.0, 100.0]
    x = om.tensor([-1e4, 1e4])
    assert BCEWithLogitsLoss(reduction="none")(x, om.tensor([1.0, 0.0])).tolist() == [1e4, 1e4]


def test_batchmean() -> None:
    found = KLDivLoss(reduction="batchmean")(om.from_numpy(np.log(P)), om.from_numpy(Q))
    assert found.item() == pytest.approx((Q * (np.log(Q) - np.log(P))).sum() / 4)


def test_bad_settings_say_what_is_allowed() -> None:
    with pytest.raises(AttributeValueError, match="none or mean or sum, got 'avg'"):
        MSELoss("avg")
    with pytest.raises(AttributeValueError, match="label_smoothing from 0 to 1, got 2"):
        CrossEntropyLoss(label_smoothing=2.0)
