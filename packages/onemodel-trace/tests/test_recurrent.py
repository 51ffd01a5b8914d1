"""Recurrent layers: every form, with symbolic time and batch; weights keep their names and bytes."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import TraceErrorKind, TraceException

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
AXES = {"x": ("T", "B", None)}


def parameters(kind, inputs, hidden, layers, directions, biases):
    generator = np.random.Generator(np.random.PCG64(5))
    rows = GATES[kind] * hidden
    named = {}
    for layer in range(layers):
        features = inputs if layer == 0 else hidden * directions
        for direction in range(directions):
            shapes = {"weight_ih": (rows, features), "weight_hh": (rows, hidden)}
            if biases:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            for name, shape in shapes.items():
                suffix = "_reverse" if direction else ""
                values = generator.uniform(-0.6, 0.6, shape).astype(np.float32)
                named[f"rnn.{name}_l{layer}{suffix}"] = om.from_numpy(values)
    return named


def model(kind, named, layers, directions, biases, **options):
    def run(x, *states):
        begin = None
        if states:
            begin = states if kind == "lstm" else states[0]
        return getattr(F, kind)(
            x, begin, list(named.values()), biases, layers, 0.0, False, directions == 2, **options
        )

    return run


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("biases", [True, False])
def test_forms(kind, layers, directions, biases, agree, example):
    named = parameters(kind, 3, 4, layers, directions, biases)
    run = model(kind, named, layers, directions, biases)

    traced = agree(lambda x: run(x), example(5, 2, 3), axes=AXES, parameters=named)
    held = traced.graph.initializers
    for name, tensor in named.items():
        assert held[name].numpy().tobytes() == tensor.numpy().tobytes()
    assert [n.operator for n in traced.graph.nodes].count(
        {"lstm": "LSTM", "gru": "GRU"}.get(kind, "RNN")
    ) == layers


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh"])
def test_batch_first(kind, agree, example):
    named = parameters(kind, 3, 4, 1, 2, True)
    run = model(kind, named, 1, 2, True, batch_first=True)
    agree(lambda x: run(x), example(2, 5, 3), axes={"x": ("B", "T", None)})


def test_initial_states(agree, example):
    named = parameters("lstm", 3, 4, 2, 2, True)
    run = model("lstm", named, 2, 2, True)
    agree(
        lambda x, h, c: run(x, h, c),
        example(5, 2, 3),
        example(4, 2, 4),
        example(4, 2, 4) * 0.5,
        axes=AXES | {"h": (None, "B", None), "c": (None, "B", None)},
    )
    zeros = model("gru", parameters("gru", 3, 4, 1, 1, True), 1, 1, True)
    agree(lambda x: zeros(x, om.zeros(1, x.shape[1], 4)), example(5, 2, 3), axes=AXES)


def test_a_state_of_a_fixed_batch_is_refused(trace, example):
    run = model("lstm", parameters("lstm", 3, 4, 1, 1, True), 1, 1, True)
    with pytest.raises(TraceException, match="batch of the initial state") as caught:
        trace(lambda x: run(x, om.zeros(1, 2, 4), om.zeros(1, 2, 4)), example(5, 2, 3), axes=AXES)
    assert caught.value.kind is TraceErrorKind.SYMBOLIC_SHAPE


def test_lengths(agree, example):
    run = model("lstm", parameters("lstm", 3, 4, 1, 2, True), 1, 2, True)

    def with_lengths(x, n):
        named = parameters("lstm", 3, 4, 1, 2, True)
        return F.lstm(x, None, list(named.values()), bidirectional=True, lengths=n)

    agree(
        with_lengths,
        example(5, 2, 3),
        om.tensor([1, 1]),
        axes=AXES | {"n": ("B",)},
    )
    del run


def test_a_cell_in_a_loop_is_unrolled(agree, example):
    named = parameters("lstm", 3, 4, 1, 1, True)

    def loop(x):
        h = c = om.zeros(x.shape[1], 4)
        for step in range(x.shape[0]):
            h, c = F.lstm_cell(x[step], (h, c), *named.values())
        return h

    agree(loop, example(3, 2, 3), axes={"x": (None, "B", None)})
    with pytest.raises(TraceException, match="T"):
        agree(loop, example(3, 2, 3), axes={"x": ("T", "B", None)})


def test_the_reader_of_lines(agree, example):
    """The main job: convolutions, batch norm, pooling, two bidirectional LSTM layers, classes."""
    generator = np.random.Generator(np.random.PCG64(9))

    def weights(*shape):
        return om.from_numpy(generator.standard_normal(shape, np.float32) * 0.4)

    first, second, classes = weights(6, 1, 3, 3), weights(8, 6, 3, 3), weights(5, 12)
    mean, variance = weights(6), weights(6).abs() + 0.5
    scale, shift, bias = weights(6), weights(6), weights(5)
    named = parameters("lstm", 16, 6, 2, 2, True)

    def read(x):
        y = F.conv2d(x, first, padding=1)
        y = F.relu(F.batch_norm(y, mean, variance, scale, shift))
        y = F.max_pool2d(y, 2)
        y = F.max_pool2d(F.relu(F.conv2d(y, second, padding=1)), (2, 1))
        b, c, h, w = y.shape
        y = y.permute(3, 0, 1, 2).reshape(w, b, c * h)
        y, _, _ = F.lstm(y, None, list(named.values()), num_layers=2, bidirectional=True)
        return F.log_softmax(F.linear(y, classes, bias), -1)

    traced = agree(
        read,
        example(3, 1, 8, 20),
        axes={"x": ("batch", None, None, "width")},
        parameters={"conv1.weight": first, "conv2.weight": second, "head.weight": classes, **named},
    )
    assert "conv1.weight" in traced.graph.initializers
    traced.verify(4)
