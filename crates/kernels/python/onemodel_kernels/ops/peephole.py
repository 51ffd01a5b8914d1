"""An LSTM whose gates also look at the cell, written out step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import UnsupportedError
from onemodel_kernels.ops.spec import Call, Emitter


def _part(emit: Emitter, value: Any, index: int, count: int, axis: int) -> Any:
    size = emit.type(value)[1][axis] // count
    bounds = {"starts": (index * size,), "ends": ((index + 1) * size,)}
    return emit.emit("Slice", value, axes=(axis,), steps=(1,), **bounds)


class _Direction:
    """The steps of one direction; gates in ONNX's order i, o, f, c and peepholes i, o, f."""

    def __init__(
        self, emit: Emitter, functions: Sequence[str], weights: Sequence[Any], peephole: Any
    ) -> None:
        self.emit = emit
        self.functions = functions
        w, self.r, bias = weights
        self.turned = emit.emit("Transpose", w, perm=(1, 0))
        self.r = emit.emit("Transpose", self.r, perm=(1, 0))
        self.bias = None
        if bias is not None:
            self.bias = emit.emit("Add", _part(emit, bias, 0, 2, 0), _part(emit, bias, 1, 2, 0))
        self.looks = [_part(emit, peephole, index, 3, 0) for index in range(3)]

    def _gate(self, sums: Any, index: int, cell: Any) -> Any:
        emit = self.emit
        gate = _part(emit, sums, index, 4, 1)
        if index < 3:
            gate = emit.emit("Add", gate, emit.emit("Mul", self.looks[index], cell))
        return emit.emit(self.functions[0 if index < 3 else 1], gate)

    def step(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        """The hidden and the cell state after one step."""
        emit = self.emit
        sums = emit.emit("Add", emit.emit("MatMul", x, self.turned), emit.emit("MatMul", h, self.r))
        if self.bias is not None:
            sums = emit.emit("Add", sums, self.bias)
        kept = emit.emit("Mul", self._gate(sums, 2, c), c)
        fresh = emit.emit("Mul", self._gate(sums, 0, c), self._gate(sums, 3, c))
        cell = emit.emit("Add", kept, fresh)
        shown = emit.emit(self.functions[2], cell)
        return emit.emit("Mul", self._gate(sums, 1, cell), shown), cell


def emit_peephole(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """(Y, Y_h, Y_c) of an LSTM with peephole weights."""
    x, w, r, b, lengths, h0, c0, p = inputs[:8]
    if call["layout"] or call["clip"] is not None or call["activation_alpha"]:
        raise UnsupportedError(
            "LSTM: peephole weights with layout=1, clip or activation parameters"
        )
    dtype = call.dtype()
    time, batch, _ = call.shape()
    hidden = call.shape(2)[2]
    names = call["activations"] or ("Sigmoid", "Tanh", "Tanh") * 2
    reverse_first = call["direction"] == "reverse"
    outputs, last_h, last_c = [], [], []
    for index in range(call.shape(1)[0]):
        pick = emit.constant(index, "int64")

        def own(value: Any, pick: Any = pick) -> Any:
            return None if value is None else emit.emit("Gather", value, pick, axis=0)

        layer = _Direction(emit, names[3 * index : 3 * index + 3], [own(w), own(r), own(b)], own(p))
        zero = emit.emit("Expand", emit.constant(0.0, dtype), shape=(batch, hidden))
        h = zero if h0 is None else own(h0)
        c = zero if c0 is None else own(c0)
        backward = reverse_first or index == 1
        rows: list[Any] = [None] * time
        for t in range(time - 1, -1, -1) if backward else range(time):
            now = emit.emit("Gather", x, emit.constant(t, "int64"), axis=0)
            next_h, next_c = layer.step(now, h, c)
            shown = next_h
            if lengths is not None:
                inside = emit.emit("Greater", lengths, emit.constant(t, emit.type(lengths)[0]))
                inside = emit.emit("Unsqueeze", inside, axes=(1,))
                shown = emit.emit("Where", inside, next_h, zero)
                next_h = emit.emit("Where", inside, next_h, h)
                next_c = emit.emit("Where", inside, next_c, c)
            rows[t] = emit.emit("Unsqueeze", shown, axes=(0, 1))
            h, c = next_h, next_c
        outputs.append(emit.emit("Concat", *rows, axis=0))
        last_h.append(emit.emit("Unsqueeze", h, axes=(0,)))
        last_c.append(emit.emit("Unsqueeze", c, axes=(0,)))

    def joined(parts: list[Any], axis: int) -> Any:
        return parts[0] if len(parts) == 1 else emit.emit("Concat", *parts, axis=axis)

    return joined(outputs, 1), joined(last_h, 0), joined(last_c, 0)
