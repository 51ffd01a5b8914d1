"""The seam, with the smallest recorder there is."""

from __future__ import annotations

import contextlib

import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_tensors.testing import NotingRecorder, RecorderContract, Refused


class TestNotingRecorder(RecorderContract):
    @contextlib.contextmanager
    def begin(self):
        with NotingRecorder() as recorder:
            yield recorder.input


def notes(function, *examples):
    with NotingRecorder() as recorder:
        function(*[recorder.input(example) for example in examples])
    return recorder.notes


def test_onnx_operators_are_recorded_by_their_own_names():
    x = om.ones(2, 3)
    assert notes(lambda x: x.permute(1, 0), x) == [("Transpose", (1,), {"perm": (1, 0)}, (2,))]
    assert notes(lambda x: x[:, 1:], x) == [
        ("Slice", (1,), {"starts": (1,), "ends": (2**63 - 1,), "axes": (1,), "steps": (1,)}, (2,))
    ]
    assert notes(lambda x: x.sum(1), x) == [
        ("ReduceSum", (1,), {"axes": (1,), "keepdims": 0, "noop_with_empty_axes": 0}, (2,))
    ]
    assert notes(lambda x: om.cat([x, om.zeros(1, 3)], 0), x) == [
        ("Concat", (1, None), {"axis": 0}, (2,))
    ]
    assert notes(lambda x: F.relu(x), x) == [("Relu", (1,), {}, (2,))]


def test_promotion_is_recorded_as_a_cast():
    assert [note[0] for note in notes(lambda x: x + 0.5, om.tensor([1, 2]))] == ["Cast", "Add"]


def test_several_outputs_are_one_record():
    ((operator, inputs, attributes, outputs),) = notes(lambda x: x.split(2, 1), om.ones(1, 5))
    assert (operator, inputs, outputs) == ("Split", (1,), (2, 3, 4))
    assert attributes == {"axis": 1, "split": (2, 2, 1)}


def test_aliases_are_identities():
    assert notes(lambda x: (x.clone(), x.contiguous(), x.t().contiguous()), om.ones(2, 3)) == [
        ("Transpose", (1,), {"perm": (1, 0)}, (2,))
    ]


def test_records_keep_no_tensors_after_the_recorder_saw_them():
    with NotingRecorder() as recorder:
        x = recorder.input(om.ones(2))
        kept = []
        recorder.record = lambda record, outputs: kept.append(record)
        x * 2
    assert kept[0].inputs == ()


def test_nothing_is_recorded_on_the_autograd_graph_while_tracing():
    w = om.ones(2, requires_grad=True)
    with NotingRecorder() as recorder:
        y = recorder.input(om.ones(2)) * w
        assert y.grad_fn is None


def test_writing_traced_values_into_a_constant_is_refused():
    buffer = om.zeros(2)
    with NotingRecorder() as recorder, pytest.raises(Refused, match="capture"):
        buffer.copy_(recorder.input(om.ones(2)))
    assert buffer.tolist() == [0, 0]


def test_losses_and_training_forms_are_refused_by_name():
    with NotingRecorder() as recorder:
        x = recorder.input(om.ones(2, 3))
        with pytest.raises(Refused, match="operator cross_entropy"):
            F.cross_entropy(x, om.tensor([0, 1]))
        with pytest.raises(Refused, match="dropout"):
            F.dropout(x, 0.5)
