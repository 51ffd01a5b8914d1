"""Packed sequences: recurrent layers stop at each length, and padding comes back as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_training import manual_seed, nn
from onemodel_training.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpad_sequence,
)


def sequences() -> list[om.Tensor]:
    return [om.randn(length, 3, generator=om.Generator(length)) for length in (2, 5, 3)]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "projected"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_each_sequence_runs_as_if_alone(kind: str, batch_first: bool, bidirectional: bool) -> None:
    manual_seed(1)
    options: dict[str, Any] = {"num_layers": 2, "batch_first": batch_first}
    options["bidirectional"] = bidirectional
    if kind == "projected":
        layer: Any = nn.LSTM(3, 4, proj_size=2, **options)
    else:
        layer = getattr(nn, kind)(3, 4, **options)
    packed = pack_padded_sequence(
        pad_sequence(sequences(), batch_first), [2, 5, 3], batch_first, enforce_sorted=False
    )
    output, state = layer(packed)
    assert isinstance(output, PackedSequence)
    padded, lengths = pad_packed_sequence(output, batch_first, padding_value=-1.0)
    assert lengths.tolist() == [2, 5, 3]
    rows = padded if batch_first else padded.transpose(0, 1)
    states = state if isinstance(state, tuple) else (state,)
    for at, sequence in enumerate(sequences()):
        alone, end = layer(sequence)
        ends = end if isinstance(end, tuple) else (end,)
        count = sequence.shape[0]
        assert om.equal(rows[at, :count], alone)
        assert bool((rows[at, count:] == -1.0).all())
        for ours, theirs in zip(states, ends, strict=True):
            assert om.equal(ours[:, at], theirs)


def test_gradients_do_not_come_from_the_padding() -> None:
    manual_seed(2)
    layer = nn.GRU(3, 4)
    padded = pad_sequence(sequences()).requires_grad_()
    output, _ = layer(pack_padded_sequence(padded, om.tensor([2, 5, 3])))
    pad_packed_sequence(output)[0].sum().backward()
    assert padded.grad is not None
    assert not padded.grad[2:, 0].numpy().any()
    assert padded.grad[:2, 0].numpy().all()


def test_packed_elements_are_in_the_order_of_steps() -> None:
    packed = pack_sequence([om.tensor([1.0, 2.0]), om.tensor([10.0, 20.0, 30.0])])
    assert packed.data.tolist() == [10.0, 1.0, 20.0, 2.0, 30.0]
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    assert packed.to("float64").padded.dtype == "float64"
    assert "lengths" in repr(packed)


def test_padding_and_back() -> None:
    padded = pad_sequence(sequences(), batch_first=True, padding_value=9.0)
    assert tuple(padded.shape) == (3, 5, 3)
    for found, wanted in zip(unpad_sequence(padded, [2, 5, 3], True), sequences(), strict=True):
        assert om.equal(found, wanted)
    left = pad_sequence([om.tensor([1]), om.tensor([2, 3])], True, 0, "left")
    assert left.tolist() == [[0, 1], [2, 3]]
    longer, _ = pad_packed_sequence(pack_sequence(sequences()), total_length=7)
    assert longer.shape[0] == 7


def test_errors_name_what_came() -> None:
    padded = pad_sequence(sequences())
    with pytest.raises(ShapeError, match=r"expected 3 lengths, got \(2,\)"):
        pack_padded_sequence(padded, [1, 2])
    with pytest.raises(AttributeValueError, match=r"lengths from 1 to 5, got \[0, 5, 6\]"):
        pack_padded_sequence(padded, [0, 5, 6])
    with pytest.raises(AttributeValueError, match="total_length of 5 or more, got 4"):
        pad_packed_sequence(pack_sequence(sequences()), total_length=4)
    with pytest.raises(ShapeError, match="pad_sequence"):
        pad_sequence([])
    with pytest.raises(AttributeValueError, match="padding_side"):
        pad_sequence(sequences(), padding_side="top")


def test_a_projected_lstm_is_its_formula() -> None:
    manual_seed(3)
    layer = nn.LSTM(3, 4, proj_size=2, dtype="float64")
    assert list(layer.state_dict()) == [
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0",
    ]  # fmt: skip
    w = {name: value.numpy() for name, value in layer.state_dict().items()}
    x = np.random.default_rng(0).standard_normal((4, 1, 3))

    def sigmoid(a: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-a))

    h, c = np.zeros((1, 2)), np.zeros((1, 4))
    for step in x:
        gates = step @ w["weight_ih_l0"].T + w["bias_ih_l0"]
        gates = gates + h @ w["weight_hh_l0"].T + w["bias_hh_l0"]
        entry, forget, candidate, output = np.split(gates, 4, -1)
        c = sigmoid(forget) * c + sigmoid(entry) * np.tanh(candidate)
        h = (sigmoid(output) * np.tanh(c)) @ w["weight_hr_l0"].T
    steps, (hidden, cell) = layer(om.from_numpy(x))
    # The oracle rounds in another order, in double precision.
    np.testing.assert_allclose(hidden[0].detach().numpy(), h, rtol=1e-12)
    np.testing.assert_allclose(cell[0].detach().numpy(), c, rtol=1e-12)
    assert om.equal(steps[-1], hidden[0])
    with pytest.raises(AttributeValueError, match="proj_size from 0 to below hidden_size 4, got 4"):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ShapeError, match=r"h of shape \(1, 1, 2\)"):
        layer(om.from_numpy(x), (om.zeros(1, 1, 4), om.zeros(1, 1, 4)))


def test_lengths_stay_dynamic_in_a_trace() -> None:
    manual_seed(4)

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)

        def forward(self, x: om.Tensor, lengths: om.Tensor) -> om.Tensor:
            packed = pack_padded_sequence(x, lengths, batch_first=True)
            return pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]

    model = Reader().eval()
    x = om.randn(3, 5, 3, generator=om.Generator(5))
    lengths = om.tensor([2, 5, 3])
    traced = model.trace(x, lengths, verify=False)
    found = traced.session(mode="exact").run([x.numpy(), np.array([4, 1, 5])])
    with om.no_grad():
        wanted = model(x, om.tensor([4, 1, 5]))
    np.testing.assert_array_equal(found[0], wanted.numpy())
