"""NnModule: registration, traversal, modes, hooks and state."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import DtypeError
from onemodel_training import (
    BatchNorm2d,
    Conv2d,
    Linear,
    ModuleDict,
    ModuleList,
    NnModule,
    Parameter,
    ParameterDict,
    ParameterList,
    ReLU,
    Sequential,
    StateDictError,
)


class Net(NnModule):
    def __init__(self) -> None:
        super().__init__()
        self.features = Sequential(Conv2d(1, 2, 3), BatchNorm2d(2), ReLU())
        self.head = Linear(2, 3)
        self.scale = Parameter(om.ones(3))
        self.register_buffer("offset", om.zeros(3))
        self.register_buffer("cache", om.zeros(1), persistent=False)

    def forward(self, x: om.Tensor) -> om.Tensor:
        pooled = self.features(x).mean((2, 3))
        return self.head(pooled) * self.scale + self.offset


STATE = [
    "scale",
    "offset",
    "features.0.weight",
    "features.0.bias",
    "features.1.weight",
    "features.1.bias",
    "features.1.running_mean",
    "features.1.running_var",
    "features.1.num_batches_tracked",
    "head.weight",
    "head.bias",
]


def test_state_dict_has_the_keys_and_layouts_of_pytorch() -> None:
    net = Net()
    state = net.state_dict()
    assert list(state) == STATE
    assert state["features.0.weight"].shape == (2, 1, 3, 3)
    assert state["head.weight"].shape == (3, 2)
    assert state["features.1.num_batches_tracked"].dtype == "int64"
    assert not any(tensor.requires_grad for tensor in state.values())


def test_names_and_traversal() -> None:
    net = Net()
    assert [name for name, _ in net.named_modules()] == [
        "",
        "features",
        "features.0",
        "features.1",
        "features.2",
        "head",
    ]
    assert [name for name, _ in net.named_parameters()] == [
        "scale",
        "features.0.weight",
        "features.0.bias",
        "features.1.weight",
        "features.1.bias",
        "head.weight",
        "head.bias",
    ]
    assert net.get_submodule("features.1") is net.features[1]
    assert net.get_parameter("head.bias") is net.head.bias
    assert net.get_buffer("offset") is net.offset
    with pytest.raises(AttributeError, match=r"no module at path 'features\.7'"):
        net.get_submodule("features.7")
    assert "head" in dir(net)
    seen: list[str] = []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Conv2d", "BatchNorm2d", "ReLU", "Sequential", "Linear", "Net"]


def test_a_tied_parameter_is_named_once_and_stored_under_both_paths() -> None:
    net = Sequential(Linear(3, 3, bias=False), Linear(3, 3, bias=False))
    net[1].weight = net[0].weight
    assert [name for name, _ in net.named_parameters()] == ["0.weight"]
    assert list(net.state_dict()) == ["0.weight", "1.weight"]
    clone = copy.deepcopy(net)
    assert clone[0].weight is clone[1].weight
    assert clone[0].weight is not net[0].weight


def test_assignment_registers_and_replaces() -> None:
    net = Net()
    with pytest.raises(TypeError, match="expected a Parameter or None, got Tensor"):
        net.scale = om.ones(3)
    with pytest.raises(TypeError, match="expected a Tensor or None for a buffer"):
        net.offset = 3
    net.offset = om.ones(3)
    assert net.state_dict()["offset"].tolist() == [1.0, 1.0, 1.0]
    del net.scale
    assert "scale" not in net.state_dict()
    net.scale = None
    assert net.scale is None
    with pytest.raises(AttributeError, match="no attribute, parameter, buffer or module 'missing'"):
        _ = net.missing
    with pytest.raises(ValueError, match="without dots"):
        net.register_buffer("a.b", om.ones(1))
    with pytest.raises(ValueError, match="exists already"):
        net.register_buffer("forward", om.ones(1))


def test_an_uninitialised_module_says_so() -> None:
    class Forgetful(NnModule):
        def __init__(self) -> None:
            self.layer = Linear(1, 1)

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Forgetful()


def test_a_module_without_forward_says_so() -> None:
    with pytest.raises(AttributeError, match="no forward method"):
        NnModule()(1)


def test_modes() -> None:
    net = Net()
    assert all(module.training for module in net.modules())
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert net.features[1].training
    with pytest.raises(TypeError, match="expected a bool"):
        net.train("yes")  # type: ignore[arg-type]


def test_hooks_see_and_replace() -> None:
    layer = Linear(2, 2)
    seen: list[str] = []
    before = layer.register_forward_pre_hook(lambda m, args: (args[0] * 0.0,))
    after = layer.register_forward_hook(lambda m, args, out: seen.append("after") or out + 1.0)
    out = layer(om.ones(1, 2))
    assert out.tolist() == [(layer.bias.detach() + 1.0).tolist()]
    before.remove()
    with after:
        layer(om.ones(1, 2))
    layer(om.ones(1, 2))
    assert seen == ["after", "after"]


def test_load_state_dict_copies_into_the_same_storage() -> None:
    net, other = Net(), Net()
    weight = net.head.weight
    assert net.load_state_dict(other.state_dict()) == ([], [])
    assert net.head.weight is weight
    for name, tensor in other.state_dict().items():
        assert tensor.numpy().tobytes() == net.state_dict()[name].numpy().tobytes(), name
    with om.no_grad():
        other.head.weight.zero_()
    assert any(value != 0.0 for row in net.head.weight.tolist() for value in row)


def test_load_state_dict_takes_numpy_arrays() -> None:
    layer = Linear(2, 1)
    layer.load_state_dict({"weight": np.float64([[1, 2]]), "bias": np.float32([3])})
    assert layer(om.ones(1, 2)).tolist() == [[6.0]]
    assert layer.weight.dtype == "float32"


def test_load_state_dict_lists_every_problem_and_writes_nothing() -> None:
    net = Net()
    state = net.state_dict()
    before = {name: tensor.clone() for name, tensor in state.items()}
    bad = dict(state)
    bad["offset"] = om.ones(4)
    del bad["head.bias"]
    bad["extra"] = om.ones(1)
    bad["scale"] = om.full((3,), 9.0)
    with pytest.raises(StateDictError) as caught:
        net.load_state_dict(bad)
    text = str(caught.value)
    assert "missing head.bias of shape (3,)" in text
    assert "unexpected extra" in text
    assert "offset: expected shape (3,), got (4,)" in text
    for name, tensor in net.state_dict().items():
        assert tensor.tolist() == before[name].tolist()


def test_load_state_dict_not_strict_reports_paths() -> None:
    layer = Linear(2, 1)
    result = layer.load_state_dict({"weight": om.ones(1, 2), "other": om.ones(1)}, strict=False)
    assert result.missing_keys == ["bias"]
    assert result.unexpected_keys == ["other"]


def test_load_state_dict_by_assignment_takes_the_tensors() -> None:
    layer = Linear(2, 1, bias=False)
    weight = om.ones(1, 2)
    layer.load_state_dict({"weight": weight}, assign=True)
    with om.no_grad():
        weight.fill_(5.0)
    assert layer.weight.tolist() == [[5.0, 5.0]]
    assert layer.weight.requires_grad


def test_casts_reach_floating_parameters_and_buffers_only() -> None:
    net = Net().double()
    kinds = {name: tensor.dtype for name, tensor in net.state_dict(keep_vars=True).items()}
    assert kinds.pop("features.1.num_batches_tracked") == "int64"
    assert set(kinds.values()) == {"float64"}
    assert net.head.weight.requires_grad
    net(om.ones(1, 1, 4, 4, dtype="float64")).sum().backward()
    net.float()
    assert net.head.weight.grad is not None
    assert net.head.weight.grad.dtype == "float32"
    with pytest.raises(DtypeError, match="floating-point dtype, got int64"):
        net.to("int64")


def test_zero_grad() -> None:
    layer = Linear(2, 1)
    layer(om.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_requires_grad_switch() -> None:
    layer = Linear(2, 1).requires_grad_(False)
    assert not layer(om.ones(1, 2)).requires_grad


def test_copies_and_pickles_are_independent() -> None:
    net = Net()
    twin = pickle.loads(pickle.dumps(net))
    assert isinstance(twin.scale, Parameter)
    assert list(twin.state_dict()) == STATE
    with om.no_grad():
        twin.scale.zero_()
    assert net.scale.tolist() == [1.0, 1.0, 1.0]


def test_repr_shows_the_tree() -> None:
    text = repr(Net())
    assert "(features): Sequential(" in text
    assert "    (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))" in text
    assert "(head): Linear(in_features=2, out_features=3, bias=True)" in text


def test_sequential_as_a_list_and_by_name() -> None:
    net = Sequential(Linear(1, 2), ReLU(), Linear(2, 1))
    assert len(net) == 3
    assert isinstance(net[-1], Linear)
    assert [name for name, _ in net[1:].named_children()] == ["1", "2"]
    net.insert(1, ReLU())
    del net[0]
    net.append(ReLU())
    assert [type(module).__name__ for module in net] == ["ReLU", "ReLU", "Linear", "ReLU"]
    named = Sequential({"first": Linear(1, 2), "second": ReLU()})
    assert list(named.state_dict()) == ["first.weight", "first.bias"]
    with pytest.raises(IndexError, match="expected an index from -4 to 3, got 4"):
        net[4]


def test_module_list_and_dict() -> None:
    layers = ModuleList([Linear(1, 1), Linear(1, 1)])
    layers[1] = ReLU()
    assert list(layers.state_dict()) == ["0.weight", "0.bias"]
    table = ModuleDict({"a": Linear(1, 1), "b": ReLU()})
    assert "a" in table
    assert list(table.keys()) == ["a", "b"]
    assert isinstance(table.pop("b"), ReLU)
    assert len(table) == 1


def test_parameter_list_and_dict() -> None:
    values = ParameterList([om.ones(2), Parameter(om.zeros(1))])
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    assert values[-1].tolist() == [0.0]
    table = ParameterDict({"w": om.ones(2)})
    assert list(table.state_dict()) == ["w"]
    assert isinstance(table["w"], Parameter)
