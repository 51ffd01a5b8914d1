"""Cases of recurrent layers, with the steps written out in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onemodel_kernels import Array, Kernel
from onemodel_kernels.testing.case import Case, Tensor, bound
from onemodel_kernels.testing.inputs import normal

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_SIZES = {"small": (5, 3, 4, 5), "row": (4, 1, 20, 33), "batch": (3, 40, 6, 16)}
_NEAR = bound(absolute=2e-6, why="f32 chains and functions of up to 2 ulp")


def _sigmoid(x: Tensor) -> Tensor:
    return np.asarray(1 / (1 + np.exp(-x)))


def _lstm(a: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, o, f, g = np.split(a + b, 4, -1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru(a: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    za, ra, na = np.split(a, 3, -1)
    zb, rb, nb = np.split(b, 3, -1)
    z, r = _sigmoid(za + zb), _sigmoid(ra + rb)
    return (1 - z) * np.tanh(na + r * nb) + z * h, c


def _rnn(a: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return np.tanh(a + b), c


_CELLS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}


def _sequence(name: str, reverse: list[bool]) -> Callable[..., Any]:
    """ONNX's operator in f64 (a GRU with linear_before_reset)."""
    cell = _CELLS[name]

    def oracle(
        x: Tensor,
        w: Tensor,
        r: Tensor,
        b: Tensor | None = None,
        lengths: Tensor | None = None,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        steps, batch, _ = x.shape
        hidden = r.shape[-1]
        y = np.zeros((steps, len(reverse), batch, hidden))
        ends = []
        for d, backwards in enumerate(reverse):
            bias = np.zeros(2 * w.shape[1]) if b is None else b[d]
            own, other = np.split(bias, 2)
            h = np.zeros((batch, hidden)) if h0 is None else h0[d].copy()
            c = np.zeros((batch, hidden)) if c0 is None else c0[d].copy()
            for row in range(batch):
                last = steps if lengths is None else int(lengths[row])
                order = range(last - 1, -1, -1) if backwards else range(last)
                for t in order:
                    a = w[d] @ x[t, row] + own
                    h[row], c[row] = cell(a, r[d] @ h[row] + other, h[row], c[row])
                    y[t, d, row] = h[row]
            ends.append((h, c))
        states = [np.stack([e[0] for e in ends]), np.stack([e[1] for e in ends])]
        return (y, *states[: 2 if name == "LSTM" else 1])

    return oracle


def _operands(name: str, size: tuple[int, int, int, int], d: int) -> list[Tensor]:
    steps, batch, width, hidden = size
    rows = _GATES[name] * hidden
    return [
        normal(steps, batch, width, seed=1),
        normal(d, rows, width, seed=2, scale=0.4),
        normal(d, rows, hidden, seed=3, scale=0.4),
        normal(d, 2 * rows, seed=4, scale=0.3),
    ]


def _onnx() -> list[Case]:
    found = []
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    for name in _GATES:
        for size_name, size in _SIZES.items():
            for direction, reverse in directions.items():
                attributes: dict[str, Any] = {"hidden_size": size[3], "direction": direction}
                if name == "GRU":
                    attributes["linear_before_reset"] = 1
                inputs: list[Tensor | None] = [*_operands(name, size, len(reverse))]
                if size_name == "small":
                    state = (len(reverse), size[1], size[3])
                    inputs.append(np.array([5, 2, 1], np.int32))
                    inputs.append(normal(*state, seed=5))
                    if name == "LSTM":
                        inputs.append(normal(*state, seed=6))
                if size_name == "row":
                    inputs = inputs[:3]
                found.append(
                    Case(
                        f"{name}-{size_name}-{direction}",
                        name,
                        tuple(inputs),
                        _sequence(name, reverse),
                        attributes,
                        _NEAR,
                        onnx_bound=bound(absolute=1e-5, why="another order of sums"),
                    )
                )
    return found


_TORCH = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each ONNX block of rows, which block of PyTorch's it is."""


def _layers() -> list[Case]:
    found = []
    for name, gates in _GATES.items():
        for size_name, size in _SIZES.items():
            steps, batch, width, hidden = size
            rows = gates * hidden
            lengths = np.array([5, 2, 1]) if size_name == "small" else None
            states = 2 if name == "LSTM" else 1
            inputs: list[Tensor | None] = [normal(steps, batch, width, seed=1)]
            inputs += [normal(2, batch, hidden, seed=10 + k) for k in range(states)]
            inputs.append(lengths)
            for d in range(2):
                inputs += [
                    normal(rows, width, seed=20 + d, scale=0.4),
                    normal(rows, hidden, seed=30 + d, scale=0.4),
                    normal(rows, seed=40 + d, scale=0.3),
                    normal(rows, seed=50 + d, scale=0.3),
                ]

            def oracle(*arrays: Any, name: str = name, states: int = states) -> Any:
                def blocks(a: Tensor) -> Tensor:
                    parts = np.split(a, _GATES[name])
                    return np.concatenate([parts[i] for i in _TORCH[name]])

                weights = [blocks(a) for a in arrays[2 + states :]]
                w, r = np.stack(weights[0::4]), np.stack(weights[1::4])
                b = np.stack([np.concatenate(weights[4 * d + 2 : 4 * d + 4]) for d in range(2)])
                run = _sequence(name, [False, True])
                y, *ends = run(arrays[0], w, r, b, arrays[1 + states], *arrays[1 : 1 + states])
                return (y.transpose(0, 2, 1, 3).reshape(*y.shape[0:1], y.shape[2], -1), *ends)

            found.append(
                Case(
                    f"{name}Layer-{size_name}",
                    f"{name}Layer",
                    tuple(inputs),
                    oracle,
                    {"hidden_size": hidden, "directions": 2, "save": 0},
                    _NEAR,
                    onnx=False,
                )
            )
    return found


_STEP = 1e-5
_GRADIENT = bound(absolute=2e-5, why="f32 chains over steps and rows, against f64 differences")


def _gradient_oracle(layer: Case, states: int) -> Callable[..., Any]:
    """The gradients of the layer's oracle by central differences in f64."""

    def oracle(*arrays: Any) -> list[Tensor]:
        upstream = arrays[: 1 + states]
        inputs = list(arrays[1 + states : 1 + states + len(layer.inputs)])

        def loss() -> float:
            outputs = layer.oracle(*inputs)
            return float(sum((g * y).sum() for g, y in zip(upstream, outputs, strict=True)))

        found = []
        for place, a in enumerate(inputs):
            if place == 1 + states:
                continue
            gradient = np.zeros(a.shape)
            for at in np.ndindex(a.shape):
                kept = a[at]
                a[at] = kept + _STEP
                above = loss()
                a[at] = kept - _STEP
                gradient[at] = (above - loss()) / (2 * _STEP)
                a[at] = kept
            found.append(gradient)
        return found

    return oracle


def _gradients() -> list[Case]:
    """Gradients of the small layers, at the outputs that the native layer keeps for them."""
    found = []
    for layer in _layers():
        if not layer.name.endswith("-small"):
            continue
        states = 2 if layer.operator == "LSTMLayer" else 1
        attributes = {**layer.attributes}
        del attributes["save"]
        arrays = [None if a is None else Array.from_numpy(a) for a in layer.inputs]
        outputs = [out.numpy() for out in Kernel(layer.operator, **attributes)(*arrays)]
        upstream = [normal(*out.shape, seed=60 + k) for k, out in enumerate(outputs[: 1 + states])]
        found.append(
            Case(
                f"{layer.operator}Grad-small",
                f"{layer.operator}Grad",
                (*upstream, *layer.inputs, *outputs),
                _gradient_oracle(layer, states),
                attributes,
                _GRADIENT,
                onnx=False,
            )
        )
    return found


CASES = [*_onnx(), *_layers(), *_gradients()]
