"""Recurrent layers: weights keep their stored layout and are put into ONNX's order by nodes.

Stored gates are i, f, g, o (LSTM) and r, z, n (GRU); ONNX wants i, o, f, g and z, r, n. The nodes
that reorder depend on weights alone, so a session folds them once.
"""

from __future__ import annotations

from typing import Any

from onemodel_kernels.ops import extents
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _reordered(writer: GraphWriter, weight: GraphValue, kind: str, hidden: int, axis: int) -> Any:
    gates = _GATES[kind]
    if len(gates) == 1:
        return weight
    sizes = (hidden,) * len(gates)
    parts = writer.emit_many("Split", len(gates), weight, axis=axis, split=sizes)
    return writer.emit("Concat", *(parts[gate] for gate in gates), axis=axis)


def _stacked(writer: GraphWriter, weights: list[GraphValue], kind: str, hidden: int) -> Any:
    """(directions, gates * hidden, …) of the weights of each direction."""
    rows = [writer.emit("Unsqueeze", weight, axes=(0,)) for weight in weights]
    joined = rows[0] if len(rows) == 1 else writer.emit("Concat", *rows, axis=0)
    return _reordered(writer, joined, kind, hidden, 1)


def _layer(kind: str) -> Lowering:
    states = 2 if kind == "LSTM" else 1

    def lower(writer: GraphWriter, call: Recorded) -> Any:
        x = call.value()
        hidden, directions = call["hidden_size"], call["directions"]
        has_bias = bool(call.get("has_bias", True))
        initial = [call.optional(1 + index) for index in range(states)]
        lengths = call.optional(1 + states)
        each = 4 if has_bias else 2
        given = call.inputs[2 + states :]
        weights = [given[d * each : (d + 1) * each] for d in range(directions)]
        w, r, *biases = (
            _stacked(writer, [_present(one[index]) for one in weights], kind, hidden)
            for index in range(each)
        )
        bias = writer.emit("Concat", *biases, axis=1) if has_bias else None
        for state in initial:
            if state is not None:
                extents.unify(
                    state.shape[1], x.shape[1], "the batch of the initial state and the input"
                )
        if lengths is not None:
            extents.unify(lengths.shape[0], x.shape[1], "the number of lengths and the batch")
        if lengths is not None and lengths.dtype != "int32":
            lengths = writer.emit("Cast", lengths, to="int32")
        attributes: dict[str, Any] = {
            "hidden_size": hidden,
            "direction": "bidirectional" if directions == 2 else _direction(call),
        }
        if kind == "GRU":
            attributes["linear_before_reset"] = 1
        if kind == "RNN":
            name = str(call.get("nonlinearity", "tanh")).capitalize()
            attributes["activations"] = (name,) * directions
        y, *last = writer.emit_many(
            kind, 1 + states, x, w, r, bias, lengths, *initial, **attributes
        )
        if directions == 1:
            y = writer.emit("Squeeze", y, axes=(1,))
        else:
            y = writer.emit("Transpose", y, perm=(0, 2, 1, 3))
            y = writer.reshape(y, (x.shape[0], x.shape[1], directions * hidden))
        return (y, *last)[: call.outputs]

    return lower


def _present(weight: GraphValue | None) -> GraphValue:
    assert weight is not None
    return weight


def _direction(call: Recorded) -> str:
    return "reverse" if call.get("reverse") else "forward"


LOWERINGS: dict[str, Lowering] = {
    "LSTMLayer": _layer("LSTM"),
    "GRULayer": _layer("GRU"),
    "RNNLayer": _layer("RNN"),
}
