"""Losses that are plain arithmetic; the others are refused in a trace."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace.testing.case import Case, cases, real

CASES: list[Case] = cases(
    {
        "mse_loss": F.mse_loss,
        "mse_loss: sum": lambda x, y: F.mse_loss(x, y, reduction="sum"),
        "l1_loss": lambda x, y: F.l1_loss(x, y, reduction="none"),
        "smooth_l1_loss": F.smooth_l1_loss,
        "huber_loss": F.huber_loss,
        "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
        "binary_cross_entropy_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(
            x, y.sigmoid()
        ),
        "soft_margin_loss": lambda x, y: F.soft_margin_loss(x, y.sign()),
        "hinge_embedding_loss": lambda x, y: F.hinge_embedding_loss(x, y.sign()),
        "poisson_nll_loss": lambda x, y: F.poisson_nll_loss(x, y.abs()),
        "gaussian_nll_loss": lambda x, y: F.gaussian_nll_loss(x, y, y.abs() + 0.5),
        "margin_ranking_loss": lambda x, y: F.margin_ranking_loss(x, y, (x * y).sign()),
        "multi_margin_loss": lambda x, y: F.multi_margin_loss(x * y, om.tensor([1, 0, 2])),
        "triplet_margin_loss": lambda x, y: F.triplet_margin_loss(x, y, x + y),
        "cosine_embedding_loss": lambda x, y: F.cosine_embedding_loss(x, y, x[:, 0].sign()),
        "kl_div": lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
    },
    real(3, 5),
    real(3, 5),
)
