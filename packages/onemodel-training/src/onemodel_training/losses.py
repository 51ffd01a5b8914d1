"""Losses as modules. ``reduction`` is ``"none"``, ``"mean"`` or ``"sum"`` everywhere."""

from __future__ import annotations

from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training.module import NnModule

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]


class _Loss(NnModule):
    reductions: tuple[str, ...] = ("none", "mean", "sum")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in self.reductions:
            raise AttributeValueError(
                f"{type(self).__name__}: expected reduction {' or '.join(self.reductions)}, got "
                f"{reduction!r}"
            )
        self.reduction = reduction

    def extra_repr(self) -> str:
        """The reduction."""
        return f"reduction={self.reduction!r}"


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """(x − y)²."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|x − y|."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """(x − y)² / (2·beta) where |x − y| < beta, else |x − y| − beta/2. Source: Girshick 2015."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """(x − y)² / 2 where |x − y| ≤ delta, else delta·(|x − y| − delta/2). Source: Huber 1964."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class BCELoss(_WeightedLoss):
    """−(y·log x + (1 − y)·log(1 − x)) for probabilities x; logarithms no lower than −100."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of σ(x), computed without overflow; pos_weight scales y = 1 terms."""

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class NLLLoss(_WeightedLoss):
    """−weight[y]·x[y] for log-probabilities x; the mean divides by the sum of the weights used.

    Targets equal to ``ignore_index`` count for nothing; if all are, the mean is NaN.
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """(N, C, …) and class indices (N, …)."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(_WeightedLoss):
    """The negative log-likelihood of a softmax over axis 1.

    Args:
        weight: (C), one factor for each class.
        ignore_index: a target that counts for nothing.
        reduction: none, mean (over the weights used) or sum.
        label_smoothing: the share of the target that is spread over all classes.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        if not 0.0 <= label_smoothing <= 1.0:
            raise AttributeValueError(
                f"CrossEntropyLoss: expected label_smoothing from 0 to 1, got {label_smoothing}"
            )
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """(N, C, …) and class indices (N, …), or class probabilities (N, C, …)."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class KLDivLoss(_Loss):
    """y·(log y − x) for log-probabilities x; ``log_target``: y is a log-probability too.

    ``reduction="batchmean"`` divides the sum by the first extent.
    """

    reductions = ("none", "mean", "sum", "batchmean")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape; 0-d unless reduction is none."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CTCLoss(_Loss):
    """−log of the probability of all alignments of the target. Source: Graves et al. 2006.

    Args:
        blank: the class that stands for no symbol.
        reduction: none, mean (each loss divided by its target length, then averaged) or sum.
        zero_infinity: whether an impossible alignment costs 0 and has no gradient.
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """Log-probabilities (T, N, C), targets (N, S) or joined, and lengths (N)."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            blank=self.blank,
            reduction=self.reduction,
            zero_infinity=self.zero_infinity,
        )


class CosineEmbeddingLoss(_Loss):
    """1 − cos(x₁, x₂) where y = 1, max(0, cos(x₁, x₂) − margin) where y = −1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """(N, D), (N, D) and (N) of 1 and −1."""
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """max(0, −y·(x₁ − x₂) + margin)."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Three tensors of one shape."""
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """Σ over j ≠ y of max(0, margin − x_y + x_j)^p / C."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) and classes (N)."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) − d(anchor, negative) + margin), d the p-norm distance."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three tensors (N, D)."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            reduction=self.reduction,
        )


def _reduced(values: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()


class HingeEmbeddingLoss(_Loss):
    """x where y = 1, max(0, margin − x) where y = −1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        near = (target == 1).to(input.dtype) * input
        far = (target == -1).to(input.dtype) * F.relu(self.margin - input)
        return _reduced(near + far, self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + e^(−y·x))."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return _reduced(-F.logsigmoid(target * input), self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of σ(x), averaged over the last axis."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors (N, C)."""
        terms = -(target * F.logsigmoid(input) + (1.0 - target) * F.logsigmoid(-input))
        if self.weight is not None:
            terms = terms * self.weight
        return _reduced(terms.mean(-1), self.reduction)


class PoissonNLLLoss(_Loss):
    """eˣ − y·x, or x − y·log(x + eps) without ``log_input``."""

    def __init__(self, log_input: bool = True, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        if self.log_input:
            return _reduced(input.exp() - target * input, self.reduction)
        return _reduced(input - target * (input + self.eps).log(), self.reduction)


class GaussianNLLLoss(_Loss):
    """(log max(var, eps) + (x − y)² / max(var, eps)) / 2; the bound on var has no gradient."""

    def __init__(self, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """Three tensors that broadcast."""
        bounded = var + (var.detach().clamp(min=self.eps) - var.detach())
        terms = 0.5 * (bounded.log() + (input - target).square() / bounded)
        return _reduced(terms, self.reduction)
