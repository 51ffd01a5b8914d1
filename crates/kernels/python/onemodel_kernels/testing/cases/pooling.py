"""Cases of pools and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import integers, normal

# name: spatial extents, kernel, strides, pads, dilations, ceil_mode
_GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "halve": ((8, 10), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 0),
    "overlap": ((11, 9), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0),
    "ceil": ((7, 8), (3, 2), (2, 3), (1, 0, 0, 1), (1, 1), 1),
    "dilated": ((12, 13), (3, 2), (1, 2), (0, 0, 0, 0), (2, 3), 0),
    "line": ((23,), (4,), (3,), (1, 2), (1,), 1),
    "volume": ((5, 6, 7), (2, 3, 2), (2, 1, 2), (0, 1, 0, 1, 1, 0), (1, 1, 1), 0),
    "whole": ((4, 5), (4, 5), (1, 1), (0, 0, 0, 0), (1, 1), 0),
    "step": ((9, 40), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 0),
    "wide": ((7, 75), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 0),
    "thirds": ((6, 50), (2, 5), (2, 3), (0, 2, 0, 2), (1, 2), 1),
    "margin": ((3, 4), (2, 2), (1, 1), (1, 1, 1, 1), (3, 3), 0),
}
_NEAR = bound(scaled=1e-6, why="f32 sums in window order and one division")


class _Pool:
    """The windows of one geometry."""

    def __init__(self, geometry: tuple[Any, ...]) -> None:
        self.sizes, self.kernel, self.strides, self.pads, self.dilations, self.ceil = geometry
        self.axes = len(self.sizes)
        self.out = tuple(self._count(a) for a in range(self.axes))

    def _count(self, a: int) -> int:
        begin, end = self.pads[a], self.pads[self.axes + a]
        room = self.sizes[a] + begin + end - self.dilations[a] * (self.kernel[a] - 1) - 1
        count = -(-room // self.strides[a]) + 1 if self.ceil else room // self.strides[a] + 1
        if self.ceil and (count - 1) * self.strides[a] >= self.sizes[a] + begin:
            count -= 1
        return int(count)

    def windows(self) -> Iterator[tuple[tuple[int, ...], list[int], int]]:
        """Output position, the flat places inside the plane, and the padded positions."""
        for place in product(*(range(n) for n in self.out)):
            inside, padded = [], 0
            for tap in product(*(range(k) for k in self.kernel)):
                at = [
                    place[a] * self.strides[a] + tap[a] * self.dilations[a] - self.pads[a]
                    for a in range(self.axes)
                ]
                ends = [self.sizes[a] + self.pads[self.axes + a] for a in range(self.axes)]
                padded += all(p < e for p, e in zip(at, ends, strict=True))
                if all(0 <= p < n for p, n in zip(at, self.sizes, strict=True)):
                    inside.append(int(np.ravel_multi_index(at, self.sizes)))
            yield place, inside, padded

    def attributes(self, **more: Any) -> dict[str, Any]:
        return {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
            "ceil_mode": self.ceil,
            **more,
        }

    def fold(self, x: Tensor, value: Callable[[Tensor, int, int], Any], dtype: Any) -> Tensor:
        """``value(elements of a window, padded positions, offset of the plane)`` at each output."""
        flat = x.reshape(-1, int(np.prod(self.sizes)))
        y = np.zeros((len(flat), *self.out), dtype)
        for plane, row in enumerate(flat):
            for place, inside, padded in self.windows():
                y[(plane, *place)] = value(row[inside], padded, 0)
        return y.reshape(*x.shape[:2], *self.out)

    def maxima(self, x: Tensor) -> tuple[Tensor, Tensor]:
        size = int(np.prod(self.sizes))
        flat = x.reshape(-1, size)
        y = np.zeros((len(flat), *self.out), x.dtype)
        index = np.zeros((len(flat), *self.out), np.int64)
        for plane, row in enumerate(flat):
            for place, inside, _ in self.windows():
                # numpy's argmax gives the first NaN, else the first of equal maxima.
                best = inside[int(np.argmax(row[inside]))]
                y[(plane, *place)], index[(plane, *place)] = row[best], plane * size + best
        shape = (*x.shape[:2], *self.out)
        return y.reshape(shape), index.reshape(shape)

    def mean(self, include: int) -> Callable[[Tensor], Tensor]:
        def value(window: Tensor, padded: int, _: int) -> Any:
            return window.sum() / (padded if include else len(window))

        return lambda x: self.fold(x, value, np.float64)

    def mean_gradient(self, include: int) -> Callable[[Tensor], Tensor]:
        def oracle(g: Tensor) -> Tensor:
            flat = g.reshape(-1, *self.out)
            dx = np.zeros((len(flat), int(np.prod(self.sizes))))
            for plane, row in enumerate(flat):
                for place, inside, padded in self.windows():
                    dx[plane, inside] += row[place] / (padded if include else len(inside))
            return dx.reshape(*g.shape[:2], *self.sizes)

        return oracle

    def norm(self, p: int) -> Callable[[Tensor], Tensor]:
        return lambda x: self.fold(
            x, lambda window, *_: (np.abs(window) ** p).sum() ** (1 / p), np.float64
        )


def _scattered(shape: tuple[int, ...]) -> Callable[..., Any]:
    def oracle(g: Tensor, indices: Tensor) -> Tensor:
        dx = np.zeros(int(np.prod(shape)))
        np.add.at(dx, indices.ravel(), g.ravel())
        return dx.reshape(shape)

    return oracle


def _in_planes(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Flat places as those inside a plane, all ones for none."""
    plane = int(np.prod(shape[2:]))
    dtype = np.uint16 if plane <= 65535 else np.uint32
    return np.where(indices < 0, np.iinfo(dtype).max, indices % plane).astype(dtype)


def _of(name: str, geometry: tuple[Any, ...]) -> list[Case]:
    pool = _Pool(geometry)
    x = normal(2, 3, *pool.sizes, seed=1)
    # Ties and a NaN.
    x = np.round(x * 4) / 4
    x.reshape(-1)[5] = np.nan
    clean = normal(2, 3, *pool.sizes, seed=2)
    g = normal(2, 3, *pool.out, seed=3)
    whole = integers(2, 3, *pool.sizes, seed=4, low=0, high=9, dtype=np.uint8)
    found = [
        # ONNX Runtime takes no NaN into account, and is asked about the clean one.
        Case(f"MaxPool-{name}", "MaxPool", (x,), pool.maxima, pool.attributes(), onnx=False),
        Case(f"MaxPool-{name}-clean", "MaxPool", (clean,), pool.maxima, pool.attributes()),
        Case(
            f"MaxPool-{name}-alone",
            "MaxPool",
            (x,),
            lambda x: pool.maxima(x)[:1],
            pool.attributes(with_indices=0),
            onnx=False,
        ),
        Case(
            f"MaxPool-{name}-in-planes",
            "MaxPool",
            (x,),
            lambda x: (pool.maxima(x)[0], _in_planes(pool.maxima(x)[1], x.shape)),
            pool.attributes(indices_in="plane"),
            onnx=False,
        ),
        Case(
            f"MaxPool-{name}-f64",
            "MaxPool",
            (clean.astype(np.float64),),
            pool.maxima,
            pool.attributes(),
        ),
        Case(
            f"MaxPool-{name}-uint8", "MaxPool", (whole,), pool.maxima, pool.attributes(), onnx=False
        ),
        Case(
            f"MaxPoolGrad-{name}",
            "MaxPoolGrad",
            (g, pool.maxima(clean)[1]),
            _scattered(clean.shape),
            {"input_shape": clean.shape},
            _NEAR,
            onnx=False,
        ),
    ]
    for dtype in (np.uint16, np.uint32):
        flat = pool.maxima(clean)[1]
        places = np.where(flat < 0, np.iinfo(dtype).max, _in_planes(flat, clean.shape))
        found.append(
            Case(
                f"MaxPoolGrad-{name}-{dtype.__name__}",
                "MaxPoolGrad",
                (g, places.astype(dtype)),
                lambda g, _, flat=flat: _scattered(clean.shape)(g, flat),
                {"input_shape": clean.shape},
                _NEAR,
                onnx=False,
            )
        )
    for include in (0, 1):
        attributes = pool.attributes(count_include_pad=include)
        found.append(
            Case(
                f"AveragePool-{name}-{include}",
                "AveragePool",
                (clean,),
                pool.mean(include),
                attributes,
                _NEAR,
            )
        )
        found.append(
            Case(
                f"AveragePoolGrad-{name}-{include}",
                "AveragePoolGrad",
                (g,),
                pool.mean_gradient(include),
                {"input_shape": clean.shape, **attributes},
                _NEAR,
                onnx=False,
            )
        )
    for p in (1, 2, 3):
        # ONNX Runtime leaves the sign in odd powers; positive numbers have none.
        given = (np.abs(clean),)
        found.append(
            Case(f"LpPool-{name}-{p}", "LpPool", given, pool.norm(p), pool.attributes(p=p), _NEAR)
        )
    return found


def _global() -> list[Case]:
    found = []
    for shape in ((2, 3, 1), (2, 5, 7, 9), (1, 2, 3, 4, 5), (1, 33, 8, 8)):
        axes = tuple(range(2, len(shape)))
        x = normal(*shape, seed=5)
        label = "x".join(map(str, shape))
        found.append(
            Case(
                f"GlobalAveragePool-{label}",
                "GlobalAveragePool",
                (x,),
                lambda x, axes=axes: x.mean(axes, keepdims=True),
                bound=_NEAR,
            )
        )
        broken = x.copy()
        broken.reshape(-1)[1] = np.nan
        for name, given, asked in (("", x, True), ("-nan", broken, False)):
            found.append(
                Case(
                    f"GlobalMaxPool-{label}{name}",
                    "GlobalMaxPool",
                    (given,),
                    lambda x, axes=axes: x.max(axes, keepdims=True),
                    onnx=asked,
                )
            )
    return found


CASES = [case for name, geometry in _GEOMETRIES.items() for case in _of(name, geometry)] + _global()
