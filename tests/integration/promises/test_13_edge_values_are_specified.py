"""13. Edge values are specified: eager and session agree with the table, in every mode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import functional as F

NAN = float("nan")
INF = float("inf")


def f32(*values: float) -> om.Tensor:
    return om.from_numpy(np.asarray(values, np.float32))


def i32(*values: int) -> om.Tensor:
    return om.from_numpy(np.asarray(values, np.int32))


#: name → (function, input, expected)
TABLE: dict[str, tuple[Callable[[om.Tensor], om.Tensor], om.Tensor, object]] = {
    "max propagates nan": (lambda x: x.amax(0), f32(1, NAN, 3), NAN),
    "min propagates nan": (lambda x: x.amin(0), f32(1, NAN, 3), NAN),
    "maximum propagates nan": (lambda x: om.maximum(x, x.flip(0)), f32(1, NAN, 3), [3, NAN, 3]),
    "clip propagates nan": (lambda x: x.clamp(0.0, 1.0), f32(-1, NAN, 3), [0, NAN, 1]),
    "relu propagates nan": (lambda x: om.relu(x), f32(-1, NAN, 3), [0, NAN, 3]),
    "max pool propagates nan": (
        lambda x: F.max_pool1d(x.reshape(1, 1, 4), 2).flatten(),
        f32(1, NAN, 3, 2),
        [NAN, 3],
    ),
    "clip keeps infinity": (lambda x: x.clamp(min=0.0), f32(-INF, INF), [0, INF]),
    "empty sum": (lambda x: x[:, :0].sum(1), om.ones(2, 3), [0, 0]),
    "empty product": (lambda x: x[:, :0].prod(1), om.ones(2, 3), [1, 1]),
    "empty mean": (lambda x: x[:, :0].mean(1), om.ones(2, 3), [NAN, NAN]),
    "round is half to even": (
        lambda x: om.round(x),
        f32(-2.5, -0.5, 0.5, 1.5, 2.5),
        [-2, 0, 0, 2, 2],
    ),
    "integer floor division": (lambda x: x // i32(2, -2, 2, -2), i32(7, 7, -7, -7), [3, -4, -4, 3]),
    "integer remainder has the divisor's sign": (
        lambda x: x % i32(3, -3, 3, -3),
        i32(7, 7, -7, -7),
        [1, -2, 2, -1],
    ),
    "integer sums wrap": (lambda x: x + x, i32(2**31 - 1, -(2**31)), [-2, 0]),
    "integer products wrap": (lambda x: x * x, i32(65536, 65537), [0, 131073]),
    "large integer sums are exact": (
        lambda x: x.long().sum(0),
        i32(16777217, 1, 16777217),
        33554435,
    ),
    "argmax takes the first of a tie": (lambda x: x.argmax(0), f32(1, 3, 3, 2), 1),
    "argmin takes the first of a tie": (lambda x: x.argmin(0), f32(2, 1, 1, 2), 1),
    "topk takes the first of a tie": (lambda x: x.topk(2, 0)[1], f32(1, 3, 3, 3), [1, 2]),
    "sort is stable": (lambda x: x.sort(0)[1], f32(2, 1, 2, 1), [1, 3, 0, 2]),
    "softmax of minus infinity": (lambda x: F.softmax(x, 0), f32(-INF, 0, 0), [0, 0.5, 0.5]),
    "sign of nan": (lambda x: om.sign(x), f32(NAN, -0.0, -3), [NAN, 0, -1]),
}

#: what torch gives for the sign of NaN is 0; ONNX and numpy give NaN, and so does this library
same = np.testing.assert_array_equal


@pytest.mark.parametrize("name", TABLE)
def test_eager(name: str) -> None:
    function, x, expected = TABLE[name]
    same(function(x).numpy(), np.asarray(expected))


@pytest.mark.parametrize("mode", list(ArithmeticMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", TABLE)
def test_session(name: str, mode: ArithmeticMode, trace) -> None:
    function, x, expected = TABLE[name]
    session = Session(trace(function, x).graph, mode=mode)
    (y,) = session.run({"x": x.numpy()})
    same(y, np.asarray(expected))


def test_a_fully_masked_attention_row_is_zero_with_zero_gradient() -> None:
    q = om.ones(1, 2, 4)
    q.requires_grad_()
    mask = om.from_numpy(np.asarray([[[True, True], [False, False]]]))
    y = F.scaled_dot_product_attention(q, om.ones(1, 2, 4), om.ones(1, 2, 4), attn_mask=mask)
    y.sum().backward()
    same(y.detach().numpy()[0, 1], np.zeros(4))
    same(q.grad.numpy()[0, 1], np.zeros(4))


def test_integer_division_by_zero_is_defined_or_refused() -> None:
    for function in (lambda a, b: a // b, lambda a, b: a % b):
        try:
            result = function(i32(1, -(2**31)), i32(0, -1))
        except (OneModelError, ArithmeticError):
            continue
        assert len(result.tolist()) == 2
