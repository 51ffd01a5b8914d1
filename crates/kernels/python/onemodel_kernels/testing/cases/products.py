"""Cases of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Bound, Case, Tensor, bound
from onemodel_kernels.testing.inputs import empty, integers, normal, strided

_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "tiny": ((1, 1), (1, 1)),
    "row": ((1, 70), (70, 95)),
    "few-rows": ((5, 33), (33, 130)),
    "column": ((90, 70), (70, 1)),
    "narrow": ((61, 40), (40, 3)),
    "tiles": ((29, 300), (300, 67)),
    "blocks": ((177, 520), (520, 301)),
    "vectors": ((40,), (40,)),
    "vector-left": ((40,), (3, 40, 5)),
    "vector-right": ((2, 3, 40), (40,)),
    "batch": ((3, 17, 20), (3, 20, 33)),
    "broadcast": ((4, 1, 9, 8), (5, 8, 7)),
    "shared-right": ((3, 4, 9, 8), (8, 17)),
    "no-rows": ((0, 4), (4, 3)),
    "no-steps": ((3, 0), (0, 5)),
}


def _near(steps: int) -> Bound:
    return bound(scaled=2e-7 * (1 + steps) ** 0.5, why="an f32 chain of as many roundings as steps")


def _matmul() -> list[Case]:
    found = []
    for name, (left, right) in _SHAPES.items():
        steps = left[-1]
        one, two = normal(*left, seed=1), normal(*right, seed=2)
        found.append(Case(f"MatMul-{name}", "MatMul", (one, two), np.matmul, bound=_near(steps)))
        if name in ("tiles", "batch", "column"):
            wide = (one.astype(np.float64), two.astype(np.float64))
            near = bound(scaled=1e-14, why="an f64 chain")
            found.append(Case(f"MatMul-{name}-f64", "MatMul", wide, np.matmul, bound=near))
    for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
        low = -100 if dtype.startswith("i") else 0
        one = integers(7, 9, seed=3, low=low, high=100, dtype=dtype)
        two = integers(9, 5, seed=4, low=low, high=100, dtype=dtype)
        found.append(
            Case(
                f"MatMul-{dtype}",
                "MatMul",
                (one, two),
                lambda a, b: a @ b,
                onnx=not dtype.endswith("int8"),
            )
        )
    half = (
        normal(6, 30, seed=5, dtype=np.float16),
        normal(30, 8, seed=6, dtype=np.float16),
    )
    near = bound(ulp=1, scaled=1e-3, why="f32 sums rounded once")
    found.append(Case("MatMul-float16", "MatMul", half, np.matmul, bound=near, onnx_bound=near))
    edge = normal(20, 24, seed=7)
    edge[3, 4], edge[7, 0], edge[11, 23] = np.inf, np.nan, -0.0
    found.append(
        Case(
            "MatMul-not-finite",
            "MatMul",
            (edge, normal(24, 18, seed=8)),
            np.matmul,
            bound=_near(24),
        )
    )
    found.append(
        Case(
            "MatMul-strided",
            "MatMul",
            (strided(normal(19, 31, seed=9)), normal(40, 31, seed=10).T),
            np.matmul,
            bound=_near(31),
        )
    )
    return found


def _gemm(alpha: float, beta: float, trans_a: int, trans_b: int) -> Callable[..., Any]:
    def oracle(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        product = alpha * ((a.T if trans_a else a) @ (b.T if trans_b else b))
        return np.asarray(product if c is None else product + beta * c)

    return oracle


def _gemm_cases() -> list[Case]:
    found = []
    m, n, k = 23, 37, 41
    starts: dict[str, tuple[int, ...] | None] = {
        "none": None,
        "scalar": (),
        "row": (n,),
        "rows": (m, 1),
        "line": (1, n),
        "full": (m, n),
    }
    for name, shape in starts.items():
        for alpha, beta, ta, tb in ((1.0, 1.0, 0, 1), (0.5, 2.0, 1, 0), (1.0, -0.5, 1, 1)):
            a = normal(*((k, m) if ta else (m, k)), seed=11)
            b = normal(*((n, k) if tb else (k, n)), seed=12)
            given = (a, b) if shape is None else (a, b, np.asarray(normal(*shape, seed=13)))
            attributes = {"alpha": alpha, "beta": beta, "transA": ta, "transB": tb}
            label = f"Gemm-{name}-{alpha}-{beta}-{ta}{tb}"
            oracle = _gemm(alpha, beta, ta, tb)
            found.append(Case(label, "Gemm", given, oracle, attributes, _near(k)))
    whole = tuple(integers(4, 4, seed=s, dtype=np.int32) for s in (14, 15, 16))
    found.append(
        Case(
            "Gemm-int32",
            "Gemm",
            whole,
            lambda a, b, c: 3 * (a @ b) + 2 * c,
            {"alpha": 3.0, "beta": 2.0},
            onnx=False,
        )
    )
    return found


def _linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    return np.asarray(x @ w.T if b is None else x @ w.T + b)


def _linear_cases() -> list[Case]:
    found = []
    for name, lead in {"vector": (), "row": (1,), "rows": (19,), "axes": (2, 3, 7)}.items():
        for n, k in ((10, 64), (130, 33)):
            x, w, b = normal(*lead, k, seed=21), normal(n, k, seed=22), normal(n, seed=23)
            found.append(
                Case(f"Linear-{name}-{n}", "Linear", (x, w, b), _linear, bound=_near(k), onnx=False)
            )
    x, w = normal(3, 8, seed=24), normal(4, 8, seed=25)
    found.append(Case("Linear-no-bias", "Linear", (x, w), _linear, bound=_near(8), onnx=False))
    found.append(
        Case(
            "Linear-relu",
            "Linear",
            (x, w),
            lambda x, w: np.maximum(_linear(x, w), 0),
            {"activation": "relu"},
            _near(8),
            onnx=False,
        )
    )
    found.append(
        Case("Linear-empty", "Linear", (empty(0, 8), w), _linear, bound=_near(8), onnx=False)
    )
    return found


CASES = [*_matmul(), *_gemm_cases(), *_linear_cases()]
