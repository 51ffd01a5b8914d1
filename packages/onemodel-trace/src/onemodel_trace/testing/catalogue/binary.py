"""Functions of two tensors, elementwise, for reals and integers."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_trace.testing.case import Case, cases, ints, real

CASES: list[Case] = [
    *cases(
        {
            "add": lambda x, y: x + y,
            "add: alpha": lambda x, y: om.add(x, y, alpha=0.5),
            "sub": lambda x, y: x - y,
            "mul": lambda x, y: x * y,
            "div": lambda x, y: x / y,
            "div: trunc": lambda x, y: om.div(x, y, rounding_mode="trunc"),
            "floor_divide": lambda x, y: x // y,
            "remainder": lambda x, y: x % y,
            "fmod": om.fmod,
            "maximum": om.maximum,
            "minimum": om.minimum,
            "fmax": om.fmax,
            "fmin": om.fmin,
            "pow": lambda x, y: x.abs() ** y,
            "atan2": om.atan2,
            "hypot": om.hypot,
            "logaddexp": om.logaddexp,
            "eq": lambda x, y: x == y.round(),
            "ne": lambda x, y: x != y,
            "lt": lambda x, y: x < y,
            "le": lambda x, y: x <= y,
            "gt": lambda x, y: x > y,
            "ge": lambda x, y: x >= y,
            "isclose": lambda x, y: om.isclose(x, y + 1e-9),
            "logical_and": lambda x, y: om.logical_and(x > 0, y > 0),
            "logical_or": lambda x, y: om.logical_or(x > 0, y > 0),
            "logical_xor": lambda x, y: om.logical_xor(x > 0, y > 0),
            "bitwise_and: bool": lambda x, y: ((x > 0) & (y > 0)) | ((x < 1) ^ (y < 1)),
            "where": lambda x, y: om.where(x > 0, x, y),
            "clamp: tensors": lambda x, y: x.clamp(min=-y.abs(), max=y.abs()),
            "addcmul": lambda x, y: om.addcmul(x, x, y, value=0.5),
            "addcdiv": lambda x, y: om.addcdiv(x, x, y, value=0.5),
            "lerp": lambda x, y: om.lerp(x, y, 0.3),
            "add: broadcast row": lambda x, y: x + y[:1],
            "add: broadcast outer": lambda x, y: x[:, None, :] + y[None, :, :],
            "broadcast_tensors": lambda x, y: om.broadcast_tensors(x, y[:1]),
        },
        real(3, 5),
        real(3, 5),
    ),
    *cases(
        {
            "add: integers": lambda i, j: (i + j) * 3 - i,
            "floor_divide: integers": lambda i, j: (i - 2) // (j + 1),
            "remainder: integers": lambda i, j: (i - 2) % (j + 1),
            "div: trunc integers": lambda i, j: om.div(i - 2, j + 1, rounding_mode="trunc"),
            "div: integers": lambda i, j: i / (j + 1),
            "mul: mixed": lambda i, j: i * 0.5 + j,
            "bitwise_and": lambda i, j: i & j,
            "bitwise_or": lambda i, j: i | j,
            "bitwise_xor": lambda i, j: (i | j) ^ 1,
            "bitwise_left_shift: unsigned": lambda i, j: om.bitwise_left_shift(
                i.to("uint8"), j.to("uint8")
            ),
            "bitwise_right_shift: unsigned": lambda i, j: om.bitwise_right_shift(
                i.to("uint8") * 20, j.to("uint8")
            ),
            "eq: integers": lambda i, j: (i > j).long() + (i == j),
            "where: integers": lambda i, j: om.where(i > j, i, j),
            "maximum: integers": lambda i, j: om.maximum(i, j) - om.minimum(i, 2),
        },
        ints(3, 5),
        ints(3, 5, high=3),
    ),
]
