"""Reductions, running sums and softmax."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace.testing.case import Case, cases, ints, real

CASES: list[Case] = [
    *cases(
        {
            "sum": lambda x: x.sum(),
            "sum: axis": lambda x: x.sum(1),
            "sum: kept": lambda x: x.sum((0, 1), keepdim=True),
            "mean": lambda x: x.mean(),
            "mean: axis": lambda x: x.mean(0, keepdim=True),
            "prod": lambda x: x.prod(1),
            "amax": lambda x: x.amax(1),
            "amin": lambda x: x.amin((0, 1)),
            "aminmax": lambda x: om.aminmax(x, dim=1),
            "max": lambda x: x.max(),
            "max: axis": lambda x: tuple(x.max(1)),
            "min: axis": lambda x: tuple(x.min(0, keepdim=True)),
            "argmax": lambda x: x.argmax(1),
            "argmax: flat": lambda x: x.argmax(),
            "argmin": lambda x: x.argmin(0, keepdim=True),
            "any": lambda x: (x > 1).any(1),
            "all": lambda x: (x > -1).all(),
            "var": lambda x: x.var(1),
            "var: population": lambda x: x.var(1, correction=0),
            "var: all": lambda x: x.var(),
            "var_mean": lambda x: om.var_mean(x, 0),
            "std_mean": lambda x: om.std_mean(x, 0),
            "std": lambda x: x.std(0, keepdim=True),
            "logsumexp": lambda x: x.logsumexp(1),
            "norm": lambda x: x.norm(dim=1),
            "norm: 1": lambda x: om.norm(x, 1, dim=1),
            "norm: inf": lambda x: om.norm(x, float("inf"), dim=1),
            "norm: 3": lambda x: om.norm(x, 3, dim=1),
            "vector_norm": om.vector_norm,
            "nansum": lambda x: om.nansum(x, 1),
            "nanmean": lambda x: om.nanmean(x, 1),
            "count_nonzero": lambda x: om.count_nonzero(x > 0, 1),
            "cumprod": lambda x: x.cumprod(1),
            "cumsum": lambda x: x.cumsum(1),
            "softmax": lambda x: F.softmax(x, -1),
            "softmax: first axis": lambda x: F.softmax(x, 0),
            "log_softmax": lambda x: F.log_softmax(x, 1),
            "softmin": lambda x: F.softmin(x, 1),
            "normalize": lambda x: F.normalize(x, dim=1),
            "topk": lambda x: tuple(x.topk(2, 1)),
            "topk: smallest": lambda x: tuple(x.topk(2, 0, largest=False)),
            "median": lambda x: tuple(x.median(1)),
            "msort": om.msort,
            "sort": lambda x: tuple(x.sort(1)),
            "argsort": lambda x: x.argsort(0, descending=True),
        },
        real(3, 5),
    ),
    *cases(
        {
            "sum: integers": lambda i: i.sum(1),
            "prod: integers": lambda i: i.prod(1),
            "amax: integers": lambda i: i.amax(1),
            "cumsum: integers": lambda i: i.cumsum(0),
            "any: integers": lambda i: i.any(0),
            "argmax: ties": lambda i: i.argmax(1),
            "sort: ties": lambda i: tuple(i.sort(1)),
        },
        ints(3, 5),
    ),
]
