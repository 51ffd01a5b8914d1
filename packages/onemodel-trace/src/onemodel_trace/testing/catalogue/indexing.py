"""Picking and writing by integer tensors."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_trace.testing.case import Case, cases, ints, real

CASES: list[Case] = [
    *cases(
        {
            "getitem: list": lambda x: x[:, [0, 2, 1]],
            "getitem: tensor": lambda x: x[om.tensor([0, 1, 1])],
            "getitem: two tensors": lambda x: x[om.tensor([0, 1]), om.tensor([2, 0])],
            "index_select": lambda x: x.index_select(0, om.tensor([2, 0])),
            "take": lambda x: om.take(x, om.tensor([0, 7])),
            "index_put": lambda x: x.index_put((om.tensor([0, 2]),), om.tensor(1.5)),
            "index_put: summed": lambda x: x.index_put(
                (om.tensor([0, 0]),), x[1:2], accumulate=True
            ),
            "index_fill": lambda x: om.index_fill(x, 0, om.tensor([0, 2]), 1.5),
            "index_copy": lambda x: om.index_copy(x, 0, om.tensor([2, 0]), x[:2]),
        },
        real(3, 5),
    ),
    *cases(
        {
            "gather": lambda i, j: i.gather(1, j),
            "gather: smaller index": lambda i, j: i.gather(1, j[:2]),
            "take_along_dim": lambda i, j: om.take_along_dim(i, j, 1),
            "scatter": lambda i, j: i.scatter(1, j.argsort(1), i * 10),
            "scatter: number": lambda i, j: i.scatter(1, j, 7),
            "scatter_add": lambda i, j: om.zeros_like(i).scatter_add(1, j, i),
            "scatter_reduce": lambda i, j: om.scatter_reduce(i, 1, j, i, "amax"),
            "index_add": lambda i, j: om.zeros(4, 5).index_add(0, j[:, 0], i.float()),
            "index_add: axis 1": lambda i, j: i.float().index_add(1, j[0], i.float()),
        },
        ints(3, 5),
        ints(3, 5, high=3),
    ),
]
