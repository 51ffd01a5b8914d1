"""NnModule.trace: names, and what it refuses by path."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_trace import TraceErrorKind, TraceException
from onemodel_training import (
    BatchNorm2d,
    Conv2d,
    Dropout,
    Linear,
    NnModule,
    Parameter,
    ReLU,
    Sequential,
)


class Net(NnModule):
    def __init__(self) -> None:
        super().__init__()
        self.body = Sequential(Conv2d(1, 2, 3), BatchNorm2d(2), ReLU(), Dropout(0.5))
        self.head = Linear(2, 3)
        self.head_twin = Linear(2, 3)
        self.head_twin.weight = self.head.weight

    def forward(self, image: om.Tensor) -> dict[str, om.Tensor]:
        pooled = self.body(image).mean((2, 3))
        return {"a": self.head(pooled), "b": self.head_twin(pooled)}


def test_weights_have_their_paths_and_tied_ones_come_once() -> None:
    net = Net().eval()
    traced = net.trace(om.rand(2, 1, 5, 6), axis_names={"image": {0: "batch", 3: "width"}})
    graph = traced.graph
    assert [value.name for value in graph.inputs] == ["image"]
    assert [value.name for value in graph.outputs] == ["a", "b"]
    names = set(graph.initializers)
    wanted = {name for name, _ in net.named_parameters()}
    wanted |= {"body.1.running_mean", "body.1.running_var"}
    assert wanted <= names | {"head.weight"}
    assert not any("head_twin.weight" in name for name in names)


def test_names_can_be_given() -> None:
    layer = Linear(2, 3)
    traced = layer.trace(om.rand(4, 2), input_names=["x"], output_names=["softmax"])
    assert [value.name for value in traced.graph.inputs] == ["x"]
    assert [value.name for value in traced.graph.outputs] == ["softmax"]
    with pytest.raises(TraceException, match="expected 1 input_names"):
        layer.trace(om.rand(4, 2), input_names=["x", "y"])
    with pytest.raises(TraceException, match=r"1 tensor\(s\), got 2 output_names"):
        layer.trace(om.rand(4, 2), output_names=["x", "y"])
    with pytest.raises(
        TraceException, match="axis_names for y: no such input; the inputs are input"
    ):
        layer.trace(om.rand(4, 2), axis_names={"y": {0: "batch"}})


@pytest.mark.parametrize("path", ["body.1", "body.3"])
def test_training_mode_is_refused_by_path(path: str) -> None:
    net = Net().eval()
    net.get_submodule(path).train()
    with pytest.raises(TraceException, match=path.replace(".", r"\.")) as caught:
        net.trace(om.rand(2, 1, 5, 6))
    assert caught.value.kind is TraceErrorKind.INVALID_USAGE
    net.eval()
    net.trace(om.rand(2, 1, 5, 6), verify=False)


def test_a_mode_that_nobody_reads_is_no_matter() -> None:
    Linear(2, 2).train().trace(om.rand(3, 2))


def test_a_forward_that_looks_at_training_mode_is_refused() -> None:
    class Moody(NnModule):
        def forward(self, x: om.Tensor) -> om.Tensor:
            return x * 2.0 if self.training else x

    with pytest.raises(TraceException, match=r"the model \(Moody\)") as caught:
        Moody().trace(om.rand(2))
    assert caught.value.location is not None
    assert "test_trace.py" in caught.value.location


class Counter(NnModule):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.inner = NnModule()
        self.inner.register_buffer("count", om.zeros(1))
        self.how = how

    def forward(self, x: om.Tensor) -> om.Tensor:
        if self.how == "assign":
            self.inner.count = self.inner.count + 1.0
        else:
            self.inner.count.add_(1.0)
        return x + self.inner.count


@pytest.mark.parametrize("how", ["assign", "in place"])
def test_a_buffer_written_in_forward_is_named_and_put_back(how: str) -> None:
    model = Counter(how)
    with pytest.raises(TraceException, match=r"inner\.count") as caught:
        model.trace(om.rand(1))
    assert caught.value.kind is TraceErrorKind.IN_PLACE_MUTATION
    assert model.inner.count.tolist() == [0.0]


def test_a_trace_changes_nothing() -> None:
    net = Net().eval()
    before = {name: tensor.numpy().tobytes() for name, tensor in net.state_dict().items()}
    generator = om.default_generator.get_state()
    versions = [tensor._version for tensor in net.state_dict().values()]
    net.trace(om.rand(2, 1, 5, 6, generator=om.Generator(1)))
    assert {n: t.numpy().tobytes() for n, t in net.state_dict().items()} == before
    assert om.default_generator.get_state() == generator
    assert [tensor._version for tensor in net.state_dict().values()] == versions
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not any(module.training for module in net.modules())


def test_the_thread_is_free_again_after_a_refusal() -> None:
    class Reader(NnModule):
        def forward(self, x: om.Tensor) -> om.Tensor:
            return x * float(x.sum())

    with pytest.raises(TraceException) as caught:
        Reader().trace(om.rand(2))
    assert caught.value.kind is TraceErrorKind.DATA_DEPENDENT
    Linear(2, 2).trace(om.rand(3, 2))


def test_arguments_that_are_no_tensors_pass_through() -> None:
    class Scaled(NnModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(om.ones(2))

        def forward(self, x: om.Tensor, factor: float, y: om.Tensor | None = None) -> object:
            return (x * self.weight * factor, [x if y is None else y])

    traced = Scaled().trace(om.rand(3, 2), 2.0, om.rand(2))
    assert [value.name for value in traced.graph.inputs] == ["x", "y"]
    assert [value.name for value in traced.graph.outputs] == ["output_0", "output_1_0"]
    assert next(iter(traced.graph.initializers)) == "weight"


def test_outputs_that_are_no_tensors_are_refused() -> None:
    class Text(NnModule):
        def forward(self, x: om.Tensor) -> object:
            return x, "text"

    with pytest.raises(TraceException, match="outputs that are tensors, got str"):
        Text().trace(om.rand(2))


class Called(NnModule):
    """Calls a function with itself: a forward written in the test."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function
        self.weight = Parameter(om.ones(4))
        self.register_buffer("total", om.zeros(4))

    def forward(self, x: om.Tensor, states: object = None) -> object:
        return self.function(self, x, states)


def test_tensors_in_containers_are_inputs() -> None:
    class Pair(NamedTuple):
        left: om.Tensor
        scale: float
        right: om.Tensor

    def forward(module: Called, x: om.Tensor, states: dict[str, Any]) -> om.Tensor:
        pair, (first,) = states["pair"], states["list"]
        return x + pair.left * pair.scale - pair.right + first * module.weight

    states = {"pair": Pair(om.rand(4), 2.0, om.rand(4)), "list": [om.rand(4)]}
    traced = Called(forward).trace(om.rand(3, 4), states)
    names = ["x", "states.pair_0", "states.pair_2", "states.list_0"]
    assert [value.name for value in traced.graph.inputs] == names
    assert set(traced.graph.initializers) == {"weight", "constant_0"}
    (y,) = traced.session().run([np.full(s, v, np.float32) for s, v in _FEED])
    assert y.tolist() == [[1.0 + 2.0 * 2 - 3.0 + 4.0] * 4] * 3


_FEED = (((3, 4), 1), ((4,), 2), ((4,), 3), ((4,), 4))


@pytest.mark.parametrize("value", [np.ones(4, np.float32), [np.ones(4)], object(), om.ones])
def test_what_would_be_frozen_unseen_is_refused(value: object) -> None:
    with pytest.raises(
        TraceException, match=r"states.*: expected a tensor, a plain value"
    ) as caught:
        Called(lambda module, x, states: x).trace(om.rand(4), value)
    assert caught.value.kind is TraceErrorKind.INVALID_USAGE


def _exchange_array(module: Called) -> None:
    module.weight.data = om.ones(4) * 7


def _exchange_parameter(module: Called) -> None:
    module.weight = Parameter(om.ones(4))


def _fill_parameter(module: Called) -> None:
    module.weight.data.fill_(2.0)


def _exchange_buffer(module: Called) -> None:
    module.total.data = om.ones(4)


def _register_again(module: Called) -> None:
    module.register_buffer("total", om.ones(4))


def _write_view(module: Called) -> None:
    module.total[1:].fill_(1.0)


def _table(module: Called) -> None:
    module._buffers["total"] = om.ones(4)


def _remove(module: Called) -> None:
    del module.total


WRITES = {
    _exchange_array: "parameter weight",
    _exchange_parameter: "parameter weight",
    _fill_parameter: "parameter weight",
    _exchange_buffer: "buffer total",
    _register_again: "buffer total",
    _write_view: "buffer total",
    _table: "buffer total",
    _remove: "buffer total",
}


@pytest.mark.parametrize("write", WRITES)
def test_every_way_to_change_state_in_forward_is_refused(write: Callable[[Called], None]) -> None:
    def forward(module: Called, x: om.Tensor, _: object) -> om.Tensor:
        write(module)
        return x * module.weight

    model = Called(forward)
    weight, total = model.weight, model.total
    with pytest.raises(TraceException, match=WRITES[write]) as caught:
        model.trace(om.rand(3, 4))
    assert caught.value.kind is TraceErrorKind.IN_PLACE_MUTATION
    assert model.weight is weight
    assert model.total is total
    assert total.tolist() == [0.0] * 4
    if write is not _fill_parameter:
        assert weight.tolist() == [1.0] * 4


def test_a_buffer_made_in_forward_is_refused() -> None:
    def forward(module: Called, x: om.Tensor, _: object) -> om.Tensor:
        module.register_buffer("cache", x * 2.0)
        return x * module.cache

    model = Called(forward)
    with pytest.raises(TraceException, match="buffer cache"):
        model.trace(om.rand(3, 4))
    assert list(model.state_dict()) == ["weight", "total"]


def test_modes_are_put_back() -> None:
    def forward(module: Called, x: om.Tensor, _: object) -> om.Tensor:
        module.train()
        return x * module.weight

    model = Called(forward).eval()
    model.trace(om.ones(3, 4))
    assert not model._training


@pytest.mark.parametrize(
    "use",
    [
        lambda: om.manual_seed(17),
        lambda: om.set_rng_state((1, 2)),
        lambda: om.seed(),
        lambda: om.rand(2),
        lambda: om.randperm(4),
        lambda: om.Generator(3).manual_seed(4),
    ],
)
def test_random_state_is_not_touched_in_forward(use: Callable[[], object]) -> None:
    def forward(module: Called, x: om.Tensor, _: object) -> om.Tensor:
        use()
        return x * module.weight

    om.manual_seed(5)
    before = om.get_rng_state()
    with pytest.raises(TraceException) as caught:
        Called(forward).trace(om.ones(3, 4))
    assert caught.value.kind is TraceErrorKind.UNSUPPORTED_OPERATION
    assert om.get_rng_state() == before


def test_two_threads_trace_one_model_at_once() -> None:
    model = Net().eval()
    expected = model.trace(om.ones(2, 1, 5, 6), verify=False).to_onnx().SerializeToString()
    barrier = threading.Barrier(4)

    def trace(_: int) -> list[bytes]:
        barrier.wait()
        return [
            model.trace(om.ones(2, 1, 5, 6), verify=False).to_onnx().SerializeToString()
            for _ in range(10)
        ]

    with ThreadPoolExecutor(4) as pool:
        for files in pool.map(trace, range(4)):
            assert set(files) == {expected}
