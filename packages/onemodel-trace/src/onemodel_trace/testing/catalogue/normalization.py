"""Normalisations."""

from __future__ import annotations

from onemodel_tensors import functional as F
from onemodel_trace.testing.case import Case, cases, real, weights

C = weights(4, seed=102)
VARIANCE = weights(4, seed=103).abs() + 0.2
ROWS = weights(11)

CASES: list[Case] = [
    *cases(
        {
            "batch_norm": lambda x: F.batch_norm(x, C, VARIANCE, C, C),
            "batch_norm: plain": lambda x: F.batch_norm(x, C, VARIANCE),
            "instance_norm": F.instance_norm,
            "instance_norm: affine": lambda x: F.instance_norm(x, weight=C, bias=C),
            "group_norm": lambda x: F.group_norm(x, 2, C, C),
            "group_norm: plain": lambda x: F.group_norm(x, 2),
            "group_norm: one group": lambda x: F.group_norm(x, 1, C, C),
            "layer_norm": lambda x: F.layer_norm(x, (11,), ROWS, ROWS),
            "layer_norm: without bias": lambda x: F.layer_norm(x, (11,), ROWS),
            "layer_norm: plain": lambda x: F.layer_norm(x, (9, 11)),
            "rms_norm": lambda x: F.rms_norm(x, (11,), ROWS),
            "rms_norm: plain": lambda x: F.rms_norm(x, (11,), eps=1e-6),
            "local_response_norm": lambda x: F.local_response_norm(x, 3),
        },
        real(2, 4, 9, 11),
    ),
    *cases(
        {"batch_norm: rows": lambda x: F.batch_norm(x, C, VARIANCE, C, C)},
        real(3, 4),
    ),
]
