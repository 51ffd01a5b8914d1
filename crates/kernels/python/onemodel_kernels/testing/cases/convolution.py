"""Cases of convolutions, transposed convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from onemodel_kernels.testing.case import Bound, Case, Tensor, bound
from onemodel_kernels.testing.inputs import normal

# name: images, groups, channels of a group in and out, spatial extents, kernel, strides, pads, dilations
_GEOMETRIES: dict[str, tuple[Any, ...]] = {
    "line": (2, 1, 3, 5, (21,), (3,), (1,), (1, 1), (1,)),
    "line-dilated": (1, 2, 2, 3, (30,), (4,), (2,), (3, 2), (3,)),
    "square": (2, 1, 5, 17, (13, 15), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "valid": (1, 1, 4, 6, (9, 20), (3, 2), (1, 1), (0, 0, 0, 0), (1, 1)),
    "stride": (3, 1, 3, 16, (17, 14), (3, 3), (2, 2), (1, 0, 1, 2), (1, 1)),
    "uneven": (1, 1, 2, 4, (12, 11), (2, 4), (3, 1), (0, 2, 1, 1), (2, 1)),
    "point": (2, 1, 30, 40, (6, 7), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    "point-stride": (1, 1, 8, 9, (9, 9), (1, 1), (2, 2), (0, 0, 0, 0), (1, 1)),
    "stem": (1, 1, 3, 20, (31, 29), (7, 7), (2, 2), (3, 3, 3, 3), (1, 1)),
    "grouped": (2, 3, 4, 5, (8, 9), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "depthwise": (2, 12, 1, 1, (14, 13), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "depthwise-stride": (1, 12, 1, 2, (14, 13), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "wide-stride": (1, 1, 2, 3, (11, 12), (2, 1), (3, 4), (1, 1, 0, 0), (1, 1)),
    "volume": (1, 2, 2, 3, (5, 6, 7), (3, 2, 3), (1, 2, 1), (1, 0, 1, 1, 1, 1), (1, 1, 2)),
}


class _Window:
    """The geometry of one case and the pairs of positions that a tap joins."""

    def __init__(self, geometry: tuple[Any, ...]) -> None:
        self.images, self.groups, self.inputs, self.outputs = geometry[:4]
        self.sizes, self.kernel, self.strides, self.pads, self.dilations = geometry[4:]
        axes = len(self.sizes)
        self.out = tuple(
            (
                self.sizes[a]
                + self.pads[a]
                + self.pads[axes + a]
                - self.dilations[a] * (self.kernel[a] - 1)
                - 1
            )
            // self.strides[a]
            + 1
            for a in range(axes)
        )

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
        """Kernel position, the outputs that read inside the input there, and what they read."""
        for tap in product(*(range(k) for k in self.kernel)):
            here, there = [], []
            for a, k in enumerate(tap):
                shift = k * self.dilations[a] - self.pads[a]
                step = self.strides[a]
                first = max(0, -(shift // step))
                last = min(self.out[a], (self.sizes[a] - 1 - shift) // step + 1)
                begin = first * step + shift
                count = max(0, last - first)
                here.append(slice(first, first + count))
                there.append(slice(begin, begin + count * step, step))
            yield tap, tuple(here), tuple(there)

    def split(self, x: Tensor, channels: int) -> Tensor:
        return np.asarray(x.reshape(self.images, self.groups, channels, *x.shape[2:]))

    def weights(self, w: Tensor) -> Tensor:
        return np.asarray(w.reshape(self.groups, self.outputs, self.inputs, *self.kernel))

    def forward(self, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        xs, ws = self.split(x, self.inputs), self.weights(w)
        y = np.zeros((self.images, self.groups, self.outputs, *self.out))
        for tap, here, there in self.taps():
            part = xs[(slice(None),) * 3 + there]
            y[(slice(None),) * 3 + here] += np.einsum(
                "ngc...,goc->ngo...", part, ws[(slice(None),) * 3 + tap]
            )
        y = y.reshape(self.images, -1, *self.out)
        return y if b is None else y + b.reshape(-1, *(1 for _ in self.out))

    def back(self, g: Tensor, w: Tensor) -> Tensor:
        gs, ws = self.split(g, self.outputs), self.weights(w)
        x = np.zeros((self.images, self.groups, self.inputs, *self.sizes))
        for tap, here, there in self.taps():
            part = gs[(slice(None),) * 3 + here]
            x[(slice(None),) * 3 + there] += np.einsum(
                "ngo...,goc->ngc...", part, ws[(slice(None),) * 3 + tap]
            )
        return x.reshape(self.images, -1, *self.sizes)

    def weight_gradient(self, g: Tensor, x: Tensor) -> Tensor:
        gs, xs = self.split(g, self.outputs), self.split(x, self.inputs)
        w = np.zeros((self.groups, self.outputs, self.inputs, *self.kernel))
        for tap, here, there in self.taps():
            one = gs[(slice(None),) * 3 + here].reshape(self.images, self.groups, self.outputs, -1)
            two = xs[(slice(None),) * 3 + there].reshape(self.images, self.groups, self.inputs, -1)
            w[(slice(None),) * 3 + tap] = np.einsum("ngop,ngcp->goc", one, two)
        return w.reshape(-1, self.inputs, *self.kernel)


def _near(steps: int) -> Bound:
    return bound(scaled=2e-7 * (1 + steps) ** 0.5, why="an f32 chain of as many roundings as taps")


def _of(name: str, geometry: tuple[Any, ...], dtype: str) -> list[Case]:
    window = _Window(geometry)
    x = normal(window.images, window.groups * window.inputs, *window.sizes, seed=1, dtype=dtype)
    w = normal(window.groups * window.outputs, window.inputs, *window.kernel, seed=2, dtype=dtype)
    b = normal(window.groups * window.outputs, seed=3, dtype=dtype)
    g = normal(window.images, window.groups * window.outputs, *window.out, seed=4, dtype=dtype)
    attributes = {
        "strides": window.strides,
        "pads": window.pads,
        "dilations": window.dilations,
        "group": window.groups,
    }
    taps = int(np.prod(window.kernel))
    narrow = dtype == "float32"
    exact = bound(scaled=1e-14, why="an f64 chain")

    def near(steps: int) -> Bound:
        return _near(steps) if narrow else exact

    label = f"{name}-{dtype}"
    inputs = {"input_shape": x.shape, **attributes}
    weights = {"weight_shape": w.shape, **attributes}
    positions = window.images * int(np.prod(window.out))
    return [
        Case(
            f"Conv-{label}", "Conv", (x, w, b), window.forward, attributes, near(taps * w.shape[1])
        ),
        Case(
            f"Conv-{label}-no-bias",
            "Conv",
            (x, w),
            window.forward,
            attributes,
            near(taps * w.shape[1]),
        ),
        Case(
            f"ConvGradInput-{label}",
            "ConvGradInput",
            (g, w),
            window.back,
            inputs,
            near(taps * window.outputs),
            onnx=False,
        ),
        Case(
            f"ConvGradWeight-{label}",
            "ConvGradWeight",
            (g, x),
            window.weight_gradient,
            weights,
            near(positions),
            onnx=False,
        ),
    ]


def _transposed(
    window: _Window, extra: tuple[int, ...], full: tuple[int, ...]
) -> Callable[..., Any]:
    def oracle(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        # Output padding enlarges the result at its end; the windows reach into it as far as they do.
        wide = _Window(
            (
                window.images,
                window.groups,
                window.inputs,
                window.outputs,
                full,
                window.kernel,
                window.strides,
                window.pads,
                window.dilations,
            )
        )
        wide.out = tuple(x.shape[2:])
        y = wide.back(x, w)
        return y if b is None else y + b.reshape(-1, *(1 for _ in full))

    assert len(extra) == len(full)
    return oracle


def _transposed_cases() -> list[Case]:
    found = []
    for name, geometry in _GEOMETRIES.items():
        window = _Window(geometry)
        axes = len(window.sizes)
        for extra in {(0,) * axes, tuple(min(1, s - 1) for s in window.strides)}:
            full = tuple(
                (window.out[a] - 1) * window.strides[a]
                + window.dilations[a] * (window.kernel[a] - 1)
                + 1
                + extra[a]
                - window.pads[a]
                - window.pads[axes + a]
                for a in range(axes)
            )
            x = normal(window.images, window.groups * window.outputs, *window.out, seed=5)
            w = normal(window.groups * window.outputs, window.inputs, *window.kernel, seed=6)
            b = normal(window.groups * window.inputs, seed=7)
            found.append(
                Case(
                    f"ConvTranspose-{name}-{sum(extra)}",
                    "ConvTranspose",
                    (x, w, b),
                    _transposed(window, extra, full),
                    {
                        "strides": window.strides,
                        "pads": window.pads,
                        "dilations": window.dilations,
                        "group": window.groups,
                        "output_padding": extra,
                    },
                    _near(int(np.prod(window.kernel)) * window.outputs),
                )
            )
    return found


def _cases() -> list[Case]:
    found = []
    for name, geometry in _GEOMETRIES.items():
        found += _of(name, geometry, "float32")
        if name in ("square", "stride", "grouped", "volume"):
            found += _of(name, geometry, "float64")
    return [*found, *_transposed_cases()]


CASES = _cases()
