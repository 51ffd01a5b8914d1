"""An LSTM whose state is projected to fewer features at each step."""

from __future__ import annotations

from collections.abc import Sequence

import onemodel_tensors as om
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F

__all__ = ["projected_lstm"]


def projected_lstm(
    input: Tensor,
    hx: tuple[Tensor, Tensor],
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    directions: int,
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``h = W_hr (o * tanh(c))`` in place of ``h = o * tanh(c)``, step by step from other operators.

    Args:
        input: (T, N, I).
        hx: (layers*directions, N, P) and (layers*directions, N, H).
        weights: for each layer and direction w_ih (4H, I), w_hh (4H, P), with biases b_ih and b_hh
            (4H), and w_hr (P, H).
        has_biases: whether there are biases.
        num_layers: how many layers.
        dropout: between layers.
        directions: 1 or 2.
        lengths: (N) integers: the steps that count; outputs past them are zeros.

    Returns:
        The outputs (T, N, directions*P), and the last states in the shapes of ``hx``.
    """
    each = 5 if has_biases else 3
    hidden: list[Tensor] = []
    cells: list[Tensor] = []
    x = input
    for layer in range(num_layers):
        if layer and dropout:
            x = F.dropout(x, dropout)
        sides = []
        for direction in range(directions):
            at = layer * directions + direction
            part = weights[at * each : (at + 1) * each]
            steps, h, c = _run(x, hx[0][at], hx[1][at], part, has_biases, bool(direction), lengths)
            sides.append(steps)
            hidden.append(h)
            cells.append(c)
        x = om.cat(sides, -1) if directions > 1 else sides[0]
    return x, om.stack(hidden, 0), om.stack(cells, 0)


def _run(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weights: Sequence[Tensor],
    has_biases: bool,
    backwards: bool,
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    w_ih, w_hh, w_hr = weights[0], weights[1], weights[-1]
    b_ih, b_hh = (weights[2], weights[3]) if has_biases else (None, None)
    steps = x.unbind(0)
    outputs: list[Tensor] = [h] * len(steps)
    order = range(len(steps) - 1, -1, -1) if backwards else range(len(steps))
    for step in order:
        gates = F.linear(steps[step], w_ih, b_ih) + F.linear(h, w_hh, b_hh)
        entry, forget, candidate, output = gates.chunk(4, -1)
        cell = F.sigmoid(forget) * c + F.sigmoid(entry) * F.tanh(candidate)
        state = F.linear(F.sigmoid(output) * F.tanh(cell), w_hr)
        if lengths is None:
            h, c, outputs[step] = state, cell, state
        else:
            there = (lengths > step).unsqueeze(-1)
            h, c = om.where(there, state, h), om.where(there, cell, c)
            outputs[step] = om.where(there, state, 0.0)
    return om.stack(outputs, 0), h, c
