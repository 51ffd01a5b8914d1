"""Negative log likelihood, cross entropy, and connectionist temporal classification."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, BoundsError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arithmetic import add, div, mul, neg
from onemodel_tensors.ops.arrays import MUL
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.gathering import integer_index
from onemodel_tensors.ops.losses import reduced
from onemodel_tensors.ops.promotion import require_floating
from onemodel_tensors.ops.reductions import mean, sum
from onemodel_tensors.ops.selection import clamp
from onemodel_tensors.ops.softmax import log_softmax
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["cross_entropy", "ctc_loss", "nll_loss"]


def _refuse_trace(input: Tensor, operator: str) -> None:
    recorder = input._asked()
    if recorder is not None:
        recorder.refuse_operator(operator, input, "losses are not part of inference graphs")


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[target] * input[target]``; the mean is divided by the sum of the weights.

    Args:
        input: (N, C, …) or (C,): logarithms of probabilities.
        target: (N, …) or (): integer classes.
        weight: (C,), or ``None`` for ones.
        ignore_index: a class without loss and gradient.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. The mean over nothing is NaN.

    Raises:
        ShapeError: the shapes do not fit.
        BoundsError: a class is outside [0, C).
    """
    _refuse_trace(input, "nll_loss")
    require_floating(input, "nll_loss")
    if input._array.ndim == 1:
        single = nll_loss(input.unsqueeze(0), target.reshape(1), weight, ignore_index, reduction)
        return single.reshape(())
    losses, weights = _losses(input, target, weight, ignore_index)
    if reduction != "mean":
        return reduced(losses, reduction, "nll_loss")
    return div(sum(losses), sum(weights))


def _losses(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor]:
    x, t = input._array, to_dtype(integer_index(target, "nll_loss"), "int64")._array
    if x.ndim < 2 or t.shape != (x.shape[0], *x.shape[2:]):
        raise ShapeError(
            f"nll_loss: expected scores (N, C, …) and classes (N, …), got shapes {x.shape} and {t.shape}"
        )
    if weight is not None and weight._array.shape != (x.shape[1],):
        raise ShapeError(
            f"nll_loss: expected a weight of shape ({x.shape[1]},), got {weight._array.shape}"
        )
    w = None if weight is None else weight._array
    losses, weights = kernel("NllLoss", ignore_index=int(ignore_index))(x, t, w)
    saved = (x.shape, t, w)
    attributes = {"ignore_index": int(ignore_index)}
    return recorded(
        "NllLoss", (input, target, weight), attributes, losses, _nll_gradient, saved
    ), Tensor(weights)


def _nll_gradient(record: BackwardRecord, g: Array) -> Gradients:
    shape, t, w = record.saved
    run = kernel("NllLossGrad", input_shape=shape, ignore_index=record.attributes["ignore_index"])
    return run(g, t, w), None, None


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log likelihood of ``log_softmax(input)`` along the class axis.

    Args:
        input: (N, C, …) or (C,), floating point.
        target: integer classes (N, …), or probabilities of the input's shape.
        weight: (C,), or ``None`` for ones.
        ignore_index: a class without loss and gradient.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        label_smoothing: in [0, 1]: this part of each target is spread evenly over all classes.

    Raises:
        ShapeError: the shapes do not fit.
        AttributeValueError: the smoothing is out of range.
    """
    _refuse_trace(input, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise AttributeValueError(
            f"cross_entropy: expected label_smoothing in [0, 1], got {label_smoothing}"
        )
    axis = 1 if input._array.ndim > 1 else 0
    logp = log_softmax(input, axis)
    if target._array.dtype in FLOATING:
        return _with_probabilities(logp, target, weight, reduction, label_smoothing, axis)
    if label_smoothing == 0:
        return nll_loss(logp, target, weight, ignore_index, reduction)
    if axis == 0:
        logp, target = logp.unsqueeze(0), target.reshape(1)
    losses, weights = _losses(logp, target, weight, ignore_index)
    spread = logp if weight is None else mul(logp, _lifted(weight, logp))
    even = neg(sum(spread, 1))
    kept = to_dtype(target != ignore_index, logp.dtype)
    even = mul(mul(even, kept), label_smoothing / input._array.shape[axis])
    total = add(mul(losses, 1.0 - label_smoothing), even)
    if reduction == "mean":
        return div(sum(total), sum(weights))
    total = total if axis else total.reshape(())
    return reduced(total, reduction, "cross_entropy")


def _lifted(weight: Tensor, like: Tensor) -> Tensor:
    return weight.reshape(1, -1, *[1] * (like._array.ndim - 2))


def _with_probabilities(
    logp: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, axis: int
) -> Tensor:
    if target._array.shape != logp._array.shape:
        raise ShapeError(
            f"cross_entropy: expected probabilities of the scores' shape {logp._array.shape}, "
            f"got {target._array.shape}"
        )
    classes = logp._array.shape[axis]
    if smoothing:
        target = add(mul(target, 1.0 - smoothing), smoothing / classes)
    terms = mul(logp, target)
    if weight is not None:
        terms = mul(terms, _lifted(weight, logp) if axis else weight)
    losses = neg(sum(terms, axis))
    if reduction == "mean":
        return div(sum(losses), float(max(1, losses._array.size)))
    return reduced(losses, reduction, "cross_entropy")


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability of the targets, summed over all alignments.

    Args:
        log_probs: (T, B, C) or (T, C): logarithms of probabilities, float32 or float64.
        targets: (B, S) or the concatenation (sum of lengths,): integer classes, none the blank.
        input_lengths: (B,) integers, or a sequence: how many steps of each sample count.
        target_lengths: (B,) integers, or a sequence.
        blank: the class between labels.
        reduction: ``"mean"`` divides each loss by its target length (at least 1) first.
        zero_infinity: 0 loss and gradient for targets that no alignment reaches.

    Raises:
        ShapeError: the shapes do not fit.
        BoundsError: a length or a class is out of range.

    Determinism: alpha and beta in float64, in time order; samples apart.
    Source: Graves et al., Connectionist temporal classification, 2006.
    """
    _refuse_trace(log_probs, "ctc_loss")
    require_floating(log_probs, "ctc_loss")
    if log_probs._array.ndim == 2:
        losses = ctc_loss(
            log_probs.unsqueeze(1),
            targets.reshape(1, -1),
            _lengths(input_lengths).reshape(1),
            _lengths(target_lengths).reshape(1),
            blank,
            reduction,
            zero_infinity,
        )
        return losses.reshape(())
    x = log_probs._array
    if x.ndim != 3:
        raise ShapeError(f"ctc_loss: expected log_probs (T, B, C) or (T, C), got shape {x.shape}")
    if not 0 <= blank < x.shape[2]:
        raise BoundsError(f"ctc_loss: expected a blank in [0, {x.shape[2]}), got {blank}")
    steps, counts = _lengths(input_lengths), _lengths(target_lengths)
    labels = to_dtype(integer_index(targets, "ctc_loss"), "int64")
    attributes = {"blank": int(blank), "zero_infinity": int(zero_infinity)}
    run = kernel("CTCLoss", **attributes)
    losses, slope = run(x, labels._array, steps._array, counts._array)
    inputs = (log_probs, labels, steps, counts)
    loss = recorded("CTCLoss", inputs, attributes, losses, _ctc_gradient, (slope,))
    if reduction == "mean":
        return mean(div(loss, to_dtype(clamp(counts, min=1), loss.dtype)))
    return reduced(loss, reduction, "ctc_loss")


def _lengths(lengths: Any) -> Tensor:
    if isinstance(lengths, Tensor):
        return to_dtype(integer_index(lengths, "ctc_loss"), "int64")
    from onemodel_tensors.interop import tensor

    return tensor(lengths, dtype="int64")


def _ctc_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return MUL(record.saved[0], g.view_or_copy((1, g.size, 1))), None, None, None
