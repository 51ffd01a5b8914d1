"""Losses, with ``reduction`` ``"none"``, ``"mean"`` or ``"sum"``.

Determinism: sums run in a fixed order, so a loss depends on no thread count.
"""

from __future__ import annotations

import math
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.ops.activations import relu, softplus
from onemodel_tensors.ops.arithmetic import add, mul, neg, sub
from onemodel_tensors.ops.comparison import lt
from onemodel_tensors.ops.embeddings import one_hot
from onemodel_tensors.ops.mathematics import abs, exp, log, square
from onemodel_tensors.ops.reductions import mean, sum
from onemodel_tensors.ops.selection import clamp, where
from onemodel_tensors.ops.statistics import cosine_similarity, pairwise_distance
from onemodel_tensors.tensor import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]


def reduced(loss: Tensor, reduction: str, operator: str) -> Tensor:
    """The losses, their mean or their sum.

    Raises:
        AttributeValueError: another reduction.
    """
    if reduction == "mean":
        return mean(loss)
    if reduction == "sum":
        return sum(loss)
    if reduction == "none":
        return loss
    raise AttributeValueError(
        f"{operator}: expected reduction 'none', 'mean' or 'sum', got {reduction!r}"
    )


def _same_shape(input: Tensor, target: Tensor, operator: str) -> None:
    if input._array.shape != target._array.shape:
        raise ShapeError(
            f"{operator}: expected input and target of one shape, got {input._array.shape} and {target._array.shape}; "
            "broadcast them yourself if that is meant"
        )


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``(input - target)**2``.

    Raises:
        ShapeError: the shapes differ.
    """
    _same_shape(input, target, "mse_loss")
    return reduced(square(sub(input, target)), reduction, "mse_loss")


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``|input - target|``.

    Raises:
        ShapeError: the shapes differ.
    """
    _same_shape(input, target, "l1_loss")
    return reduced(abs(sub(input, target)), reduction, "l1_loss")


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """``d**2 / (2*beta)`` where ``d = |input - target|`` is below ``beta``, else ``d - beta / 2``."""
    _same_shape(input, target, "smooth_l1_loss")
    if beta < 0:
        raise AttributeValueError(f"smooth_l1_loss: expected beta of at least 0, got {beta}")
    distance = abs(sub(input, target))
    if beta == 0:
        return reduced(distance, reduction, "smooth_l1_loss")
    near = mul(square(distance), 0.5 / beta)
    return reduced(
        where(lt(distance, beta), near, sub(distance, 0.5 * beta)), reduction, "smooth_l1_loss"
    )


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """``d**2 / 2`` where ``d = |input - target|`` is below ``delta``, else ``delta * (d - delta / 2)``."""
    _same_shape(input, target, "huber_loss")
    if delta <= 0:
        raise AttributeValueError(f"huber_loss: expected delta above 0, got {delta}")
    distance = abs(sub(input, target))
    far = mul(sub(distance, 0.5 * delta), delta)
    return reduced(
        where(lt(distance, delta), mul(square(distance), 0.5), far), reduction, "huber_loss"
    )


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, the logarithms at least -100.

    Args:
        input: probabilities in [0, 1].
        target: in [0, 1], same shape.
        weight: factors that broadcast, or ``None``.
        reduction: what becomes of the losses.

    Raises:
        ShapeError: the shapes differ.
    """
    _same_shape(input, target, "binary_cross_entropy")
    yes = mul(target, clamp(log(input), min=-100.0))
    no = mul(sub(1.0, target), clamp(log(sub(1.0, input)), min=-100.0))
    loss = neg(add(yes, no))
    return reduced(loss if weight is None else mul(loss, weight), reduction, "binary_cross_entropy")


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of ``sigmoid(input)``, without overflow.

    Args:
        input: any numbers.
        target: in [0, 1], same shape.
        weight: factors that broadcast, or ``None``.
        reduction: what becomes of the losses.
        pos_weight: factors of the positive targets that broadcast, or ``None``.

    Raises:
        ShapeError: the shapes differ.
    """
    _same_shape(input, target, "binary_cross_entropy_with_logits")
    rest = softplus(neg(abs(input)))
    if pos_weight is None:
        loss = add(sub(relu(input), mul(input, target)), rest)
    else:
        factor = add(mul(sub(pos_weight, 1.0), target), 1.0)
        loss = add(mul(sub(1.0, target), input), mul(factor, add(rest, relu(neg(input)))))
    loss = loss if weight is None else mul(loss, weight)
    return reduced(loss, reduction, "binary_cross_entropy_with_logits")


def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """``target * (log(target) - input)``, 0 where the target is 0.

    Args:
        input: logarithms of probabilities.
        target: probabilities, or their logarithms with ``log_target``.
        reduction: also ``"batchmean"``: the sum divided by the first extent.
        log_target: what the target is.
    """
    if log_target:
        loss = mul(exp(target), sub(target, input))
    else:
        positive = target > 0
        terms = mul(target, sub(log(where(positive, target, 1.0)), input))
        loss = where(positive, terms, 0.0)
    if reduction == "batchmean":
        return sum(loss) / input.shape[0]
    return reduced(loss, reduction, "kl_div")


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """``e**input - target * input`` (``log_input``), or ``input - target * log(input + eps)``.

    ``full`` adds Stirling's approximation of ``log(target!)``.
    """
    loss = (
        sub(exp(input), mul(target, input))
        if log_input
        else sub(input, mul(target, log(add(input, eps))))
    )
    if full:
        safe = clamp(target, min=1.0)
        stirling = add(sub(mul(target, log(safe)), target), mul(log(mul(safe, 2 * math.pi)), 0.5))
        loss = add(loss, where(target > 1, stirling, 0.0))
    return reduced(loss, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2`` with ``var`` at least ``eps``; ``full`` adds ``log(2*pi) / 2``."""
    spread: Tensor = (
        clamp(var, min=eps)
        if isinstance(var, Tensor)
        else mul(input.detach() * 0 + 1, max(var, eps))
    )
    loss = mul(add(log(spread), square(sub(input, target)) / spread), 0.5)
    loss = add(loss, 0.5 * math.log(2 * math.pi)) if full else loss
    return reduced(loss, reduction, "gaussian_nll_loss")


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    far = relu(sub(margin, input))
    return reduced(
        where(target == 1, input, where(target == -1, far, 0.0)), reduction, "hinge_embedding_loss"
    )


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``log(1 + e**(-target * input))``."""
    return reduced(softplus(neg(mul(target, input))), reduction, "soft_margin_loss")


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    loss = relu(add(neg(mul(target, sub(input1, input2))), margin))
    return reduced(loss, reduction, "margin_ranking_loss")


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum over j other than y of max(0, margin - x[y] + x[j])**p / C`` for scores (N, C) and classes (N,).

    Args:
        input: (N, C), or (C,) for one sample.
        target: (N,) integers, or a 0-d one.
        p: 1 or 2.
        margin: how much larger the score of the class is to be.
        weight: (C,), a factor of each sample by its class.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
    scores = input if input._array.ndim == 2 else input.unsqueeze(0)
    classes = target.reshape(-1, 1)
    short = relu(add(sub(scores, scores.gather(1, classes)), margin))
    if p != 1:
        short = short**p
    if weight is not None:
        short = mul(short, weight[classes])
    own = one_hot(classes.squeeze(1), scores.shape[1]) > 0
    rows = where(own, 0.0, short).sum(1) / scores.shape[1]
    return reduced(
        rows if input._array.ndim == 2 else rows.squeeze(0), reduction, "multi_margin_loss"
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1, over the last axis."""
    cosine = cosine_similarity(input1, input2, -1)
    apart = where(target == -1, relu(sub(cosine, margin)), 0.0)
    return reduced(where(target == 1, sub(1.0, cosine), apart), reduction, "cosine_embedding_loss")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` over the last axis.

    With ``swap`` the distance of the negative is the smaller one of those to anchor and positive.
    """
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        from onemodel_tensors.ops.selection import minimum

        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(relu(add(sub(near, far), margin)), reduction, "triplet_margin_loss")
