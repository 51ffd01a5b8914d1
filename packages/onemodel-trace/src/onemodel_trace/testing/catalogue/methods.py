"""Operators that are methods only, and other names of operators that have cases."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_trace.testing.case import Case, cases, ints, real

_UNARY_NAMES = "absolute arctan arcsinh negative sgn fix"
_INNER_NAMES = "arcsin arccos arctanh"
_BINARY_NAMES = "divide multiply subtract true_divide greater greater_equal less less_equal arctan2"

CASES: list[Case] = [
    *[
        Case(name, lambda x, name=name: getattr(x, name)(), (real(3, 5),))
        for name in _UNARY_NAMES.split()
    ],
    *[
        Case(name, lambda x, name=name: getattr(x, name)(), (real(3, 5, low=-0.9, high=0.9),))
        for name in _INNER_NAMES.split()
    ],
    Case("arccosh", lambda x: x.arccosh(), (real(3, 5, low=1.0, high=4.0),)),
    *[
        Case(name, lambda x, y, name=name: getattr(x, name)(y), (real(3, 5), real(3, 5)))
        for name in _BINARY_NAMES.split()
    ],
    *cases(
        {
            "T": lambda x: x.T * 2,
            "H": lambda x: x.H * 2,
            "mT": lambda x: x.mT * 2,
            "adjoint": lambda x: x.adjoint() * 2,
            "swapaxes": lambda x: x.swapaxes(0, 1) * 2,
            "swapdims": lambda x: x.swapdims(0, 1) * 2,
            "moveaxis": lambda x: x.moveaxis(0, 1) * 2,
            "contiguous": lambda x: x.t().contiguous() * 2,
            "cpu": lambda x: x.cpu() * 2,
            "pin_memory": lambda x: x.pin_memory() * 2,
            "type": lambda x: x.type("float64") * 2,
            "type_as": lambda x: x.type_as(om.zeros(1, dtype="int32")),
            "double": lambda x: x.double() * 2,
            "half": lambda x: x.half().float() * 2,
            "long": lambda x: x.long() * 2,
            "int": lambda x: x.int() * 2,
            "short": lambda x: x.short().long() * 2,
            "char": lambda x: x.char().long() * 2,
            "byte": lambda x: x.abs().byte().long() * 2,
            "view_as": lambda x: x.t().reshape(x.shape[1], 1, x.shape[0])[:, 0].view_as(x.t()) * 2,
            "reshape_as": lambda x: x.flatten().reshape_as(x) * 2,
            "split_with_sizes": lambda x: x.split_with_sizes([2, x.shape[1] - 2], 1),
            "sum_to_size": lambda x: x.sum_to_size(1, x.shape[1]),
            "new_ones": lambda x: x.new_ones(x.shape) + x,
            "new_empty": lambda x: x.new_empty(x.shape) + x,
            "new_full": lambda x: x.new_full((x.shape[0], 1), 2.5) + x,
            "new_tensor": lambda x: x.new_tensor([1.0, 2.0, 3.0])[:, None] + x,
            "numel": lambda x: x / x.numel(),
            "nelement": lambda x: x / x.nelement(),
            "size": lambda x: x / x.size(0) + x.size()[1],
            "nbytes": lambda x: x.long() + x.nbytes,
            "clip": lambda x: x.clip(-0.5, 0.5),
            "ger": lambda x: x[0].ger(x[-1]),
        },
        real(3, 5),
    ),
    *cases({"bfloat16": lambda x: x.bfloat16().float()}, real(3, 5)),
    *cases({"type_as: integers": lambda x: x.type_as(om.zeros(1)) * 0.5}, ints(3, 5)),
]
