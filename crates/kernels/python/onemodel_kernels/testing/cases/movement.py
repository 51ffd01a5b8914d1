"""Cases of operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor
from onemodel_kernels.testing.inputs import booleans, edges, empty, integers, normal

X = normal(3, 4, 5, seed=1)


def _transposes() -> list[Case]:
    found = []
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {
        (3, 4, 5): (2, 0, 1),
        (70, 65): (1, 0),
        (2, 33, 3, 40): (0, 3, 2, 1),
        (2, 3, 50): (0, 2, 1),
        (3, 2, 41): (0, 2, 1),
        (2, 4, 5, 9): (0, 2, 3, 1),
        (2, 50, 3): (0, 2, 1),
        (5, 6, 7): (1, 0, 2),
        (9, 8, 3, 5): (2, 0, 3, 1),
        (2, 3): (0, 1),
        (0, 3): (1, 0),
    }
    for shape, perm in shapes.items():
        name = "x".join(map(str, shape))
        found.append(
            Case(
                f"Transpose-{name}",
                "Transpose",
                (normal(*shape, seed=2),),
                lambda x, perm=perm: np.transpose(x, perm),
                {"perm": perm},
            )
        )
    for dtype in (np.bool_, np.int8, np.float16, np.int64, np.float64):
        x = integers(5, 6, seed=3).astype(dtype)
        found.append(
            Case(
                f"Transpose-{np.dtype(dtype).name}",
                "Transpose",
                (x,),
                np.transpose,
                {"perm": (1, 0)},
            )
        )
    found.append(Case("Transpose-edges", "Transpose", (edges(),), np.transpose, {"perm": (0,)}))
    return found


def _joins() -> list[Case]:
    y, e = normal(3, 2, 5, seed=4), empty(3, 0, 5)

    def cut(x: Tensor) -> list[Tensor]:
        return np.split(x, [1, 1], -1)

    return [
        Case("Concat", "Concat", (X, y, e), lambda *xs: np.concatenate(xs, 1), {"axis": 1}),
        Case("Concat-last", "Concat", (X, X), lambda *xs: np.concatenate(xs, -1), {"axis": -1}),
        Case("Split", "Split", (X,), cut, {"axis": -1, "split": (1, 0, 4)}),
    ]


def _slices() -> list[Case]:
    far = 2**63 - 1
    table: dict[str, tuple[Any, ...]] = {
        "plain": ((1,), (3,), (1,), (1,), np.s_[:, 1:3]),
        "steps": ((0, 4), (far, -far), (0, 2), (2, -2), np.s_[::2, :, ::-2]),
        "negative": ((-3,), (-1,), (-1,), (1,), np.s_[..., -3:-1]),
        "nothing": ((3,), (1,), (0,), (1,), np.s_[3:1]),
        "reverse": ((far,), (-far - 1,), (1,), (-1,), np.s_[:, ::-1]),
    }
    return [
        Case(
            f"Slice-{name}",
            "Slice",
            (X,),
            lambda x, at=at: x[at],
            {"starts": starts, "ends": ends, "axes": axes, "steps": steps},
        )
        for name, (starts, ends, axes, steps, at) in table.items()
    ]


def _pads() -> list[Case]:
    found = []
    pads = ((1, 2), (0, 3), (2, 0))
    flat = tuple(p[0] for p in pads) + tuple(p[1] for p in pads)
    for mode in ("constant", "reflect", "edge", "wrap"):
        value = {"value": 2.5} if mode == "constant" else {}
        operand = {"constant_value": 2.5} if mode == "constant" else {}
        more: dict[str, Any] = {"constant_values": 2.5} if mode == "constant" else {}
        attributes = {"pads": flat, "mode": mode}
        found.append(
            Case(
                f"Pad-{mode}",
                "Pad",
                (X,),
                lambda x, mode=mode, more=more: np.pad(x, pads, mode=mode, **more),
                {**attributes, **value},
                onnx_attributes={**attributes, **operand},
            )
        )

        def folded(g: Tensor, mode: str = mode) -> Tensor:
            more: dict[str, Any] = {"constant_values": -1} if mode == "constant" else {}
            places = np.pad(np.arange(60).reshape(X.shape), pads, mode=mode, **more)  # type: ignore[call-overload]
            total = np.zeros(61)
            np.add.at(total, places, g)
            return total[:60].reshape(X.shape)

        g = integers(6, 7, 7, seed=5).astype(np.float32)
        attributes = {**attributes, "input_shape": X.shape}
        found.append(Case(f"PadGrad-{mode}", "PadGrad", (g,), folded, attributes, onnx=False))
    found.append(
        Case(
            "Pad-crop",
            "Pad",
            (X,),
            lambda x: np.pad(x[:, 1:, :3], ((0, 0), (0, 0), (1, 0))),
            {"pads": (-1, 1, 0, -2), "axes": (1, 2)},
        )
    )
    return found


def _repeats() -> list[Case]:
    row = normal(3, 1, 5, seed=6)
    return [
        Case("Tile", "Tile", (X,), lambda x: np.tile(x, (2, 1, 3)), {"repeats": (2, 1, 3)}),
        Case("Tile-none", "Tile", (X,), lambda x: np.tile(x, (0, 1, 3)), {"repeats": (0, 1, 3)}),
        Case(
            "Expand",
            "Expand",
            (row,),
            lambda x: np.broadcast_to(x, (2, 3, 4, 5)),
            {"shape": (2, 3, 4, 5)},
        ),
        Case(
            "Expand-ones",
            "Expand",
            (row,),
            lambda x: np.broadcast_to(x, (3, 4, 5)),
            {"shape": (4, 1)},
        ),
    ]


def _triangles() -> list[Case]:
    found = []
    for k in (-2, 0, 3):
        for upper in (0, 1):
            cut = np.triu if upper else np.tril
            found.append(
                Case(
                    f"Trilu-{k}-{upper}",
                    "Trilu",
                    (X,),
                    lambda x, cut=cut, k=k: cut(x, k),
                    {"k": k, "upper": upper},
                )
            )
    flags = booleans(4, 4, seed=7)
    found.append(Case("Trilu-bool", "Trilu", (flags,), np.triu, {"k": 0, "upper": 1}))
    found.append(
        Case(
            "EyeLike",
            "EyeLike",
            (),
            lambda: np.eye(4, 6, 1),
            {"k": 1, "shape": (4, 6), "dtype": "float32"},
            onnx=False,
        )
    )
    return found


def _ranges() -> list[Case]:
    return [
        Case(
            "Range-down",
            "Range",
            (),
            lambda: np.arange(3, -8, -3),
            {"start": 3, "limit": -8, "delta": -3, "dtype": "int64"},
            onnx=False,
        ),
        Case(
            "Range-float",
            "Range",
            (),
            lambda: 0.1 + 0.25 * np.arange(12),
            {"start": 0.1, "limit": 3.0, "delta": 0.25, "dtype": "float32"},
            onnx=False,
        ),
    ]


def _blocks() -> list[Case]:
    x = normal(2, 8, 3, 5, seed=8)
    y = normal(2, 3, 4, 6, seed=9)

    def spread(x: Tensor, inner: bool) -> Tensor:
        if inner:
            return x.reshape(2, 2, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 10)
        return x.reshape(2, 2, 2, 2, 3, 5).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 10)

    def gathered(x: Tensor) -> Tensor:
        return x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)

    return [
        Case(
            f"DepthToSpace-{mode}",
            "DepthToSpace",
            (x,),
            lambda x, mode=mode: spread(x, mode == "CRD"),
            {"blocksize": 2, "mode": mode},
        )
        for mode in ("DCR", "CRD")
    ] + [Case("SpaceToDepth", "SpaceToDepth", (y,), gathered, {"blocksize": 2})]


CASES = [
    *_transposes(),
    *_joins(),
    *_slices(),
    *_pads(),
    *_repeats(),
    *_triangles(),
    *_ranges(),
    *_blocks(),
]
