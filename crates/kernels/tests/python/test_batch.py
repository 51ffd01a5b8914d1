"""Row r of a batch has the bits of the same row computed alone, wherever it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from onemodel_kernels import Array, Kernel
from onemodel_kernels.testing.inputs import integers, normal, uniform

ROWS = 7


@dataclass(frozen=True)
class Batched:
    """A kernel whose rows are independent.

    Attributes:
        name: the kernel.
        rows: the inputs of which each row belongs to one row of the outputs.
        rest: the inputs that all rows share; they follow.
        attributes: the kernel's attributes.
        axis: the axis of the rows in inputs and in outputs.
        outputs: how many leading outputs have rows.
    """

    name: str
    rows: tuple[Any, ...]
    rest: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    axis: tuple[int, int] = (0, 0)
    outputs: int = 1


def f32(*shape: int) -> Any:
    return normal(*shape, seed=len(shape))


PADS = {"pads": (1, 1, 1, 1)}
CASES = [
    Batched("Conv", (f32(ROWS, 5, 13, 11),), (f32(18, 5, 3, 3), f32(18)), PADS),
    Batched("Conv", (f32(ROWS, 40, 9, 30),), (f32(40, 1, 3, 3),), {**PADS, "group": 40}),
    Batched("Conv", (f32(ROWS, 33, 7, 7),), (f32(70, 33, 1, 1),)),
    Batched("Conv", (f32(ROWS, 6, 40),), (f32(9, 6, 5), f32(9)), {"strides": (2,)}),
    Batched("ConvTranspose", (f32(ROWS, 5, 6, 7),), (f32(5, 4, 3, 3),), {"strides": (2, 2)}),
    Batched("MaxPool", (f32(ROWS, 5, 13, 11),), (), {"kernel_shape": (3, 3)}),
    Batched("AveragePool", (f32(ROWS, 5, 13, 11),), (), {"kernel_shape": (2, 3)}),
    Batched("GlobalAveragePool", (f32(ROWS, 5, 13, 11),)),
    Batched("MatMul", (f32(ROWS, 130),), (f32(130, 75),)),
    Batched("MatMul", (f32(ROWS, 3, 17), f32(ROWS, 17, 40))),
    Batched("MatMul", (normal(ROWS, 33, dtype=np.float64),), (normal(33, 20, dtype=np.float64),)),
    Batched("MatMul", (normal(ROWS, 33, dtype=np.float16),), (normal(33, 20, dtype=np.float16),)),
    Batched("MatMulInteger", (integers(ROWS, 50, high=100, low=0, dtype=np.uint8),),
            (integers(50, 21, dtype=np.int8),)),
    Batched("Gemm", (f32(ROWS, 70),), (f32(33, 70), f32(33)), {"transB": 1}),
    Batched("Linear", (f32(ROWS, 257),), (f32(65, 257), f32(65))),
    Batched("Softmax", (f32(ROWS, 101),), (), {"axis": -1}),
    Batched("LogSoftmax", (f32(ROWS, 3, 101),), (), {"axis": -1}),
    Batched("LayerNormalization", (f32(ROWS, 77),), (f32(77), f32(77)), {"axis": -1}, outputs=3),
    Batched("RMSNormalization", (f32(ROWS, 77),), (f32(77),), {"axis": -1}, outputs=2),
    Batched("GroupNormalization", (f32(ROWS, 6, 5, 7),), (f32(6), f32(6)), {"num_groups": 3}),
    Batched("InstanceNormalization", (f32(ROWS, 6, 5, 7),), (f32(6), f32(6))),
    Batched("BatchNormalization", (f32(ROWS, 6, 5, 7),), (f32(6), f32(6), f32(6), uniform(6, low=0.5))),
    Batched("ReduceSum", (f32(ROWS, 333),), (), {"axes": (1,)}),
    Batched("ReduceMean", (f32(ROWS, 3, 333),), (), {"axes": (1, 2)}),
    Batched("ReduceLogSumExp", (f32(ROWS, 333),), (), {"axes": (1,)}),
    Batched("ArgMax", (f32(ROWS, 55),), (), {"axis": 1}),
    Batched("TopK", (f32(ROWS, 55),), (), {"axis": 1, "k": 5}, outputs=2),
    Batched("CumSum", (f32(ROWS, 55),), (), {"axis": 1}),
    Batched("Gelu", (f32(ROWS, 37),)),
    Batched("Exp", (f32(ROWS, 37),)),
    Batched("Pow", (uniform(ROWS, 37), f32(ROWS, 37))),
    Batched("LSTM", (f32(4, ROWS, 9),), (f32(1, 48, 9), f32(1, 48, 12)), {"hidden_size": 12},
            (1, 2)),
    Batched("GRU", (f32(4, ROWS, 9),), (f32(1, 36, 9), f32(1, 36, 12)), {"hidden_size": 12},
            (1, 2)),
    Batched("RNN", (f32(4, ROWS, 9),), (f32(1, 12, 9), f32(1, 12, 12)), {"hidden_size": 12},
            (1, 2)),
    Batched("LSTMLayer", (f32(4, ROWS, 9),), (None, None, None, f32(48, 9), f32(48, 12)),
            {"hidden_size": 12, "has_bias": 0}, (1, 1), 3),
    Batched("GRULayer", (f32(4, ROWS, 9),), (None, None, f32(36, 9), f32(36, 12)),
            {"hidden_size": 12, "has_bias": 0}, (1, 1), 2),
]  # fmt: skip


def outputs_of(case: Batched, rows: tuple[Any, ...]) -> list[Any]:
    arrays = [None if a is None else Array.from_numpy(a) for a in (*rows, *case.rest)]
    found = Kernel(case.name, **case.attributes)(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    return [np.asarray(out) for out in found[: case.outputs]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.rows[0].shape}")
def test_a_row_of_a_batch_is_the_row_alone(case: Batched) -> None:
    into, out = case.axis
    whole = outputs_of(case, case.rows)
    for row in range(ROWS):
        alone = outputs_of(case, tuple(a.take([row], axis=into) for a in case.rows))
        for one, all_rows in zip(alone, whole, strict=True):
            got = all_rows.take([row], axis=out)
            assert one.shape == got.shape
            assert one.tobytes() == got.tobytes(), f"row {row}"
