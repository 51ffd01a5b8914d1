"""What a trace refuses: kind, operator or read, tensor and the user's line; nothing happens before."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from concurrent import futures

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import TraceErrorKind, TraceException, Tracer

READS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "__array__": np.asarray,
    "bool": lambda x: bool(x.sum()),
    "int": lambda x: int(x.sum()),
    "float": lambda x: float(x.sum()),
    "complex": lambda x: complex(x.sum()),
    "index": lambda x: range(x.sum().long()),
    "contains": lambda x: 1.0 in x,
    "mask index": lambda x: x[x > 0],
    "nonzero": lambda x: om.nonzero(x),
    "masked_select": lambda x: om.masked_select(x, x > 0),
    "unique": lambda x: om.unique(x),
    "where alone": lambda x: om.where(x > 0),
    "data_ptr": lambda x: x.data_ptr(),
    "data": lambda x: x.data,
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "math": lambda x: __import__("math").sqrt(x.sum()),
    "sorted": lambda x: sorted(x[0]),
    "max": lambda x: max(x[0]),
    "dlpack": np.from_dlpack,
    "one_hot without classes": lambda x: F.one_hot(x.long()),
    "repeats": lambda x: om.ones(3).repeat_interleave(x[:, 0].long()),
    "copy out": lambda x: om.zeros(3, 4).copy_(x),
    "set item out": lambda x: om.zeros(3, 4).__setitem__(0, x[0]),
    "set item at positions": lambda x: om.zeros(4).__setitem__(x[0].argmax(), 1.0),
    "set item under a mask": lambda x: om.zeros(3, 4).__setitem__(x > 0, 1.0),
    "fill a constant": lambda x: om.zeros(4).fill_(x.sum()),
    "add to a constant": lambda x: om.zeros(4).__iadd__(x.sum(0)),
    "add to a view of a constant": lambda x: om.zeros(4)[:2].add_(x[0, :2]),
    "mask a constant": lambda x: om.zeros(3, 4).masked_fill_(x > 0, 1.0),
    "data of a constant": lambda x: setattr(om.zeros(3, 4), "data", x),
    "tensor": lambda x: om.tensor(x),
    "tensor of a list": lambda x: om.tensor([x.sum(), 1.0]),
    "arange": lambda x: om.arange(x.sum()),
    "slice end": lambda x: x[: x.sum().long()],
    "slope": lambda x: F.leaky_relu(x, x.sum()),
    "equal": lambda x: om.equal(x, x),
    "allclose": lambda x: om.allclose(x, x),
}

WRITES = {
    "fill_": lambda x: x.fill_(1.0),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(om.zeros(3, 4)),
    "setitem": lambda x: x.__setitem__(0, 1.0),
    "setitem mask": lambda x: x.__setitem__(x > 0, 1.0),
    "add to an input": lambda x: x.__iadd__(1.0),
    "relu of an input": lambda x: F.relu(x, inplace=True),
    "fill a view": lambda x: (x * 2).view(-1).fill_(1.0),
}

UNSUPPORTED = {
    "nll_loss": lambda x: F.nll_loss(x, om.tensor([0, 1, 2])),
    "cross_entropy": lambda x: F.cross_entropy(x, om.tensor([0, 1, 2])),
    "ctc_loss": lambda x: F.ctc_loss(
        x.unsqueeze(1).log_softmax(-1), om.tensor([[1, 2]]), om.tensor([3]), om.tensor([2])
    ),
    "signed shift": lambda x: om.bitwise_left_shift(x.long(), 1),
    "batch_norm training": lambda x: F.batch_norm(x, None, None, training=True),
    "dropout training": lambda x: F.dropout(x, 0.5, training=True),
    "rand": lambda x: x + om.rand(3, 4),
    "randn": lambda x: x + om.randn(4),
    "rand_like": lambda x: x + om.rand_like(x),
    "randperm": lambda x: x[om.randperm(3)],
    "backward": lambda x: x.sum().backward(),
    "hook": lambda x: x.register_hook(lambda g: g),
}


def refused(function, example, kind):
    with Tracer.begin() as tracer:
        x = tracer.input("x", example)
        with pytest.raises(TraceException) as caught:
            function(x)
    assert caught.value.kind is kind, caught.value
    assert caught.value.kind.name in str(caught.value)
    assert f"[{__file__}:" in str(caught.value)
    assert om.ones(2).sum().item() == 2.0
    return str(caught.value)


@pytest.mark.parametrize("read", READS)
def test_reads(read, example):
    text = refused(READS[read], example(3, 4), TraceErrorKind.DATA_DEPENDENT)
    assert "float32" in text or "int64" in text or "bool" in text


@pytest.mark.parametrize("write", WRITES)
def test_writes(write, example):
    x = example(3, 4)
    before = x.tolist()
    refused(WRITES[write], x, TraceErrorKind.IN_PLACE_MUTATION)
    assert x.tolist() == before


@pytest.mark.parametrize("operator", UNSUPPORTED)
def test_unsupported(operator, example):
    refused(UNSUPPORTED[operator], example(3, 4), TraceErrorKind.UNSUPPORTED_OPERATION)


def _suppressed(x):
    scale = 0.5
    with contextlib.suppress(Exception):
        scale = x.sum().item()
    return x * scale


def _defaulted(x):
    class Statistics:
        @property
        def scale(self):
            try:
                return x.sum().item()
            except TraceException as error:
                raise AttributeError from error

    return x * getattr(Statistics(), "scale", 2.0)


def _size_suppressed(x):
    try:
        return x * int(x.shape[0])
    except Exception:
        return x * 3


def _on_another_thread(x):
    read = []

    def run():
        with contextlib.suppress(TraceException):
            read.append(x.tolist())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return x * (2.0 if read else 3.0)


def _operator_on_another_thread(x):
    with futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(lambda: x + 1).exception()
    return x * (2.0 if error is None else 3.0)


def _size_on_another_thread(x):
    with futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(lambda: x.shape[0] > 5).exception()
    return x * (2.0 if error is None else 3.0)


def _without_gradients(x):
    try:
        with om.no_grad():
            return x * 2
    except TraceException:
        return x


SWALLOWED = (
    _suppressed, _defaulted, _size_suppressed, _on_another_thread, _operator_on_another_thread,
    _size_on_another_thread, _without_gradients,
)  # fmt: skip


@pytest.mark.parametrize("function", SWALLOWED)
def test_a_program_that_catches_a_refusal_cannot_be_finished(function, trace, example):
    """Its eager run would have gone the other way, so what it did instead is not the model."""
    with pytest.raises(TraceException, match="caught a refusal") as caught:
        trace(function, example(3, 4), axes={"x": {0: "B"}})
    assert caught.value.kind is TraceErrorKind.INVALID_USAGE
    assert isinstance(caught.value.__cause__, TraceException)


def test_a_refused_declaration_can_be_mended(example):
    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 4))
        with pytest.raises(TraceException, match="used twice"):
            tracer.input("x", example(3, 4))
        with pytest.raises(TraceException, match="at least one"):
            tracer.finish({})
        assert tracer.finish({"y": x * 2}).output_names == ["y"]


def test_no_grad_in_every_form(example):
    @om.no_grad()
    def decorated(x):
        return x * 2

    def block(x):
        with om.no_grad():
            return x * 2

    def inference(x):
        with om.inference_mode():
            return x * 2

    def switched(x):
        om.set_grad_enabled(False)

    for function in (decorated, block, inference, switched):
        refused(function, example(2), TraceErrorKind.NO_GRAD_IN_TRACE)
    assert om.is_grad_enabled()


def test_what_changes_nothing_is_allowed(trace, example):
    def model(x):
        with om.enable_grad():
            y = x.detach().clone().contiguous().requires_grad_(True)
        assert x.detach() is x
        assert y.requires_grad
        assert y.dtype == "float32"
        assert y.ndim == 2
        assert "traced" in repr(y)
        return y * 2

    operators = [node.operator for node in trace(model, example(2, 3)).graph.nodes]
    assert operators == ["Mul"]


def test_requires_grad_cannot_be_switched_off(example):
    refused(lambda x: x.requires_grad_(False), example(2), TraceErrorKind.INVALID_USAGE)


def test_a_shared_storage_is_not_updated_in_place(example):
    def view_first(x):
        hidden = x * 2
        shown = hidden.view(-1)
        hidden += 1
        return shown

    def through_view(x):
        hidden = x * 2
        hidden.view(-1).add_(1)
        return hidden

    for function in (view_first, through_view):
        text = refused(function, example(3, 4), TraceErrorKind.IN_PLACE_MUTATION)
        assert "shares its storage" in text


def test_a_copy_of_an_input_may_be_updated_in_place(agree, example):
    def model(x):
        hidden = x.clone()
        hidden += 1
        other = x.detach().view(-1).clone()
        other *= 3
        return hidden * x + other.view(x.shape)

    agree(model, example(3, 4), axes={"x": {0: "B"}})


def test_a_view_of_an_input_is_not_updated_in_place(example):
    for view in (lambda x: x.view(-1), lambda x: x[0], lambda x: x.detach(), lambda x: x.T):
        refused(
            lambda x, view=view: view(x).add_(1), example(3, 4), TraceErrorKind.IN_PLACE_MUTATION
        )


def test_in_place_arithmetic_keeps_earlier_uses(agree, example):
    def model(x):
        hidden = x * 2
        early = hidden + 0.5
        hidden += x
        hidden.mul_(3)
        F.relu(hidden, inplace=True)
        return early * hidden

    agree(model, example(3, 4), axes={"x": {0: "B"}})


def test_a_constant_written_after_use_is_refused_at_finish(example):
    constant = om.zeros(4)
    with Tracer.begin() as tracer:
        tracer.parameter("scale", constant)
        y = tracer.input("x", example(3, 4)) + constant
        constant.fill_(1.0)
        with pytest.raises(TraceException, match="'scale'") as caught:
            tracer.finish({"y": y})
    assert caught.value.kind is TraceErrorKind.IN_PLACE_MUTATION


def test_a_number_written_after_use_is_refused_at_finish(example):
    constant = om.tensor(1.0)
    with Tracer.begin() as tracer:
        y = tracer.input("x", example(3, 4)) * constant
        constant.add_(1.0)
        with pytest.raises(TraceException, match="a constant of shape") as caught:
            tracer.finish({"y": y * constant})
    assert caught.value.kind is TraceErrorKind.IN_PLACE_MUTATION


def test_memory_shared_with_numpy_is_captured_as_it_is_at_its_use(example):
    memory = np.ones(4, np.float32)
    with Tracer.begin() as tracer:
        y = tracer.input("x", example(3, 4)) + om.from_numpy(memory, copy=False)
        memory[:] = 5.0
        traced = tracer.finish({"y": y})
    (y,) = traced.session().run(np.zeros((3, 4), np.float32))
    assert y.tolist() == [[1.0] * 4] * 3


def test_a_constant_written_before_use_is_held_as_it_is_then(example):
    constant = om.zeros(4)
    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 4))
        constant.fill_(1.0)
        traced = tracer.finish({"y": x + constant})
    constant.fill_(5.0)
    (y,) = traced.session().run(np.zeros((3, 4), np.float32))
    assert y.tolist() == [[1.0] * 4] * 3


def test_a_constant_above_the_limit_is_refused(example):
    with Tracer.begin(max_constant_bytes=63) as tracer:
        x = tracer.input("x", example(3, 4))
        y = x + om.zeros(3, 4)
        with pytest.raises(TraceException, match="64 bytes, the greatest") as caught:
            y @ om.ones(4, 4)
    assert caught.value.kind is TraceErrorKind.UNSUPPORTED_OPERATION


def usage(function, example, match):
    with pytest.raises(TraceException, match=match) as caught:
        function(example)
    assert caught.value.kind is TraceErrorKind.INVALID_USAGE
    assert om.ones(2).sum().item() == 2.0


def nested(example):
    with Tracer.begin(), Tracer.begin():
        pass


def same_name(example):
    with Tracer.begin() as tracer:
        tracer.input("x", example)
        tracer.input("x", example)


def empty_name(example):
    with Tracer.begin() as tracer:
        tracer.input("", example)


def parameter_twice(example):
    with Tracer.begin() as tracer:
        tracer.parameter("w", om.ones(2))
        tracer.parameter("w", om.ones(2))


def output_like_input(example):
    with Tracer.begin() as tracer:
        x = tracer.input("x", example)
        tracer.finish({"x": x * 2})


def constant_output(example):
    with Tracer.begin() as tracer:
        tracer.input("x", example)
        tracer.finish({"y": om.ones(2)})


def no_tensor_output(example):
    with Tracer.begin() as tracer:
        tracer.input("x", example)
        tracer.finish({"y": 3})


def no_output(example):
    with Tracer.begin() as tracer:
        tracer.finish({})


def small_symbol(example):
    with Tracer.begin() as tracer:
        tracer.input("x", om.ones(1, 3), axis_names=("B", None))


def equal_symbols(example):
    with Tracer.begin() as tracer:
        tracer.input("x", om.ones(3, 3), axis_names=("B", "T"))


def one_symbol_two_sizes(example):
    with Tracer.begin() as tracer:
        tracer.input("x", om.ones(3, 4), axis_names=("B", None))
        tracer.input("y", om.ones(5, 4), axis_names=("B", None))


def unknown_axis(example):
    with Tracer.begin() as tracer:
        tracer.input("x", om.ones(3, 4), axis_names={2: "B"})


def bad_axis_name(example):
    with Tracer.begin() as tracer:
        tracer.input("x", om.ones(3, 4), axis_names=(3, None))


def finish_twice(example):
    with Tracer.begin() as tracer:
        y = tracer.input("x", example) * 2
        tracer.finish({"y": y})
        tracer.finish({"y": y})


def finished_tensor(example):
    with Tracer.begin() as tracer:
        y = tracer.input("x", example) * 2
        tracer.finish({"y": y})
    with Tracer.begin() as tracer:
        tracer.input("x", example) + y


def input_after_finish(example):
    with Tracer.begin() as tracer:
        y = tracer.input("x", example) * 2
        tracer.finish({"y": y})
        tracer.input("z", example)


def used_constant_named(example):
    constant = om.ones(4)
    with Tracer.begin() as tracer:
        tracer.input("x", example) + constant
        tracer.parameter("late", constant)


def traced_parameter(example):
    with Tracer.begin() as tracer:
        tracer.parameter("w", tracer.input("x", example) * 2)


USAGES = [
    (nested, "do not nest"), (same_name, "used twice"), (empty_name, "not empty"),
    (parameter_twice, "used twice"), (output_like_input, "used twice"),
    (constant_output, "does not depend on an input"), (no_tensor_output, "expected a tensor"),
    (no_output, "at least one"), (small_symbol, "at least 2"), (equal_symbols, "also that of axis"),
    (one_symbol_two_sizes, "has size 3 elsewhere"), (unknown_axis, "axis 2"),
    (bad_axis_name, "expected a name"), (finish_twice, "has finished"),
    (finished_tensor, "trace that has ended"), (input_after_finish, "has finished"),
    (used_constant_named, "already used"), (traced_parameter, "depends on an input"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "match"), USAGES, ids=[f.__name__ for f, _ in USAGES])
def test_usage(function, match, example):
    usage(function, example(3, 4), match)


def test_begin_inside_no_grad_is_refused():
    with om.no_grad(), pytest.raises(TraceException) as caught:
        Tracer.begin()
    assert caught.value.kind is TraceErrorKind.NO_GRAD_IN_TRACE


def test_the_thread_is_clean_after_an_exception(example):
    x = example(3, 4)
    with pytest.raises(ZeroDivisionError), Tracer.begin() as tracer:
        traced = tracer.input("x", x) * 2
        raise ZeroDivisionError
    assert traced.sum().item() == (x * 2).sum().item()
    assert x.shape == (3, 4)
    with Tracer.begin() as tracer:
        tracer.finish({"y": tracer.input("x", x) * 2})


def test_reading_after_finish_is_allowed(example):
    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 4), axis_names=("B", None))
        y = x * 2
        size = x.shape[0]
        tracer.finish({"y": y})
    assert y.tolist() == (example(3, 4) * 2).tolist()
    assert y.shape == (3, 4)
    assert list(range(size)) == [0, 1, 2]


def test_two_threads_trace_independently(example):
    results: dict[int, object] = {}
    barrier = threading.Barrier(2)

    def run(number):
        with Tracer.begin() as tracer:
            x = tracer.input("x", example(3, 4))
            barrier.wait()
            y = x
            for _ in range(20):
                y = y * float(number + 2)
            barrier.wait()
            results[number] = tracer.finish({"y": y})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        (y,) = results[number].session().run(np.ones((3, 4), np.float32))
        expected = np.float32(1)
        for _ in range(20):
            expected *= np.float32(number + 2)
        assert y[0, 0] == expected


def test_a_tracer_is_not_used_on_another_thread(example):
    caught: list[TraceException] = []

    def use(x):
        try:
            x * 2
        except TraceException as error:
            caught.append(error)

    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 4))
        thread = threading.Thread(target=use, args=(x,))
        thread.start()
        thread.join()
    assert [error.kind for error in caught] == [TraceErrorKind.INVALID_USAGE]
