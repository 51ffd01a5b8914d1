"""The constants of a traced model keep the values of the trace, whatever is written afterwards.

A trace shares the memory of large weights until somebody writes into them. So each way to write is
taken once here: after it the weight has changed and the saved model has not.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
import onemodel_training as training
from onemodel_graph import ArithmeticMode
from onemodel_kernels import Array
from onemodel_tensors.operator_methods import OperatorMethods
from onemodel_trace import TracedModel, TraceException
from onemodel_training import BatchNorm1d, ExponentialMovingAverage, Linear, NnModule, optim

SIZE = 48
"""Extent of the square weights: 9 KB in float32, above the size up to which a trace copies at once."""


def numbers(dtype: str = "float32", seed: int = 0) -> om.Tensor:
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return om.from_numpy(generator.random((SIZE * 2, SIZE * 2)) < 0.5)
    if dtype == "int64":
        return om.from_numpy(generator.integers(1, 100, (SIZE, SIZE)))
    values = generator.normal(size=(SIZE, SIZE)).astype(dtype)
    values[0, 0] = np.nan
    return om.from_numpy(values)


class Held(NnModule):
    """A model whose graph holds one tensor."""

    def __init__(self, values: om.Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values)

    def forward(self, x: om.Tensor) -> om.Tensor:
        return om.cat([x, self.values])


def traced(module: NnModule, values: om.Tensor) -> TracedModel:
    return module.trace(om.zeros(values.shape, dtype=values.dtype), verify=False)


def saved(model: TracedModel, folder: Path) -> bytes:
    file = folder / "model.onnx"
    model.save_onnx(file)
    return file.read_bytes()


def check(values: om.Tensor, write: Callable[[om.Tensor], Any], folder: Path) -> None:
    before = values._array.tobytes()
    module = Held(values)
    expected = saved(traced(Held(values.clone()), values), folder)
    model = traced(module, values)
    with om.no_grad():
        write(module.values)
    assert module.values._array.tobytes() != before
    assert saved(model, folder) == expected
    assert saved(traced(module, module.values), folder) != expected


def calls(names: str, *arguments: Any) -> dict[str, Callable[[om.Tensor], Any]]:
    """The methods of these names, called with the arguments."""
    return {name: lambda x, name=name: getattr(x, name)(*arguments) for name in names.split()}


ROW = om.zeros(1, SIZE, dtype="int64")
WRITES: dict[str, Callable[[om.Tensor], Any]] = {
    **calls(
        "abs_ absolute_ acos_ acosh_ asin_ asinh_ atan_ atanh_ ceil_ cos_ cosh_ erf_ exp_ expm1_ "
        "floor_ frac_ log_ log10_ log1p_ log2_ reciprocal_ round_ rsqrt_ sigmoid_ sign_ sin_ sinh_ "
        "sqrt_ square_ tan_ tanh_ trunc_ fix_ neg_ negative_ nan_to_num_ relu_ tril_ triu_ zero_ "
        "uniform_ normal_ exponential_ bernoulli_ random_"
    ),
    **calls(
        "add_ sub_ subtract_ mul_ multiply_ div_ divide_ true_divide_ pow_ fmod_ remainder_ "
        "floor_divide_ clamp_min_ clamp_max_ fill_ fill_diagonal_ __iadd__ __isub__ __imul__ "
        "__itruediv__ __ifloordiv__ __imod__ __ipow__",
        0.3,
    ),
    **calls("clamp_ clip_", -0.1, 0.1),
    **calls("addcmul_ addcdiv_", numbers(seed=1), numbers(seed=2)),
    "atan2_": lambda x: x.atan2_(numbers(seed=1)),
    "copy_": lambda x: x.copy_(numbers(seed=1)),
    "cumprod_": lambda x: x.cumprod_(0),
    "cumsum_": lambda x: x.cumsum_(0),
    "index_add_": lambda x: x.index_add_(0, om.tensor([1]), om.ones(1, SIZE)),
    "index_copy_": lambda x: x.index_copy_(0, om.tensor([1]), om.ones(1, SIZE)),
    "index_fill_": lambda x: x.index_fill_(0, om.tensor([1]), 2.0),
    "index_put_": lambda x: x.index_put_((om.tensor([1]),), om.ones(1, SIZE)),
    "lerp_": lambda x: x.lerp_(numbers(seed=1), 0.5),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 2.0),
    "scatter_": lambda x: x.scatter_(0, ROW, om.ones(1, SIZE)),
    "scatter_add_": lambda x: x.scatter_add_(0, ROW, om.ones(1, SIZE)),
    "scatter_reduce_": lambda x: x.scatter_reduce_(0, ROW, om.ones(1, SIZE), "sum"),
}  # fmt: skip
INTEGER_WRITES = calls("bitwise_and_ bitwise_or_ bitwise_xor_ __iand__ __ior__ __ixor__", 3)
BOOL_WRITES = {
    **calls("logical_not_"),
    **calls("logical_and_ logical_or_ logical_xor_", numbers("bool", 1)),
}
NO_WRITES = {"detach_"}


def test_every_operator_that_writes_is_here() -> None:
    methods = {
        name
        for name, method in vars(OperatorMethods).items()
        if callable(method)
        and (name.startswith("__i") if name.endswith("__") else name.endswith("_"))
    } - {"__invert__", "__init__"}
    assert methods == {*WRITES, *INTEGER_WRITES, *BOOL_WRITES, *NO_WRITES}


@pytest.mark.parametrize("name", WRITES)
def test_operators_in_place(name: str, tmp_path: Path) -> None:
    check(numbers(), WRITES[name], tmp_path)


@pytest.mark.parametrize("name", INTEGER_WRITES)
def test_operators_in_place_on_integers(name: str, tmp_path: Path) -> None:
    check(numbers("int64"), INTEGER_WRITES[name], tmp_path)


@pytest.mark.parametrize("name", BOOL_WRITES)
def test_operators_in_place_on_bools(name: str, tmp_path: Path) -> None:
    check(numbers("bool"), BOOL_WRITES[name], tmp_path)


def poke(address: int) -> None:
    """Writes as code outside the library does: by the address alone."""
    ctypes.memset(address, 0x41, 16)


def shared_with_numpy(x: om.Tensor) -> np.ndarray:
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("consumers of DLPack before 1.0, as this NumPy, get memory of their own")
    return np.from_dlpack(x)


def through_numpy_address(x: om.Tensor) -> None:
    poke(shared_with_numpy(x).ctypes.data)


OTHER_WRITES: dict[str, Callable[[om.Tensor], Any]] = {
    "item": lambda x: x.__setitem__((0, 1), 7.0),
    "row": lambda x: x.__setitem__(1, numbers(seed=1)[0]),
    "mask": lambda x: x.__setitem__(x > 0, 0.0),
    "steps": lambda x: x.__setitem__((slice(None, None, 2), slice(None, None, -3)), 5.0),
    "transposed": lambda x: x.T.mul_(2),
    "reshaped": lambda x: x.view(-1)[5:9].zero_(),
    "diagonal": lambda x: x.diagonal().fill_(1.0),
    "chunk": lambda x: x.chunk(2)[1].add_(1),
    "inplace activation": lambda x: om.functional.relu(x, inplace=True),
    "data": lambda x: x.data.mul_(3),
    "data =": lambda x: setattr(x, "data", numbers(seed=1)),
    "detached": lambda x: x.detach().add_(1),
    "array fill": lambda x: x._array.select(0, 1).fill(2.0),
    "array copy_from": lambda x: x._array.copy_from(numbers(seed=1)._array),
    "initialiser": lambda x: training.init.uniform_(x),
    "address": lambda x: poke(x.data_ptr()),
    "DLPack": through_numpy_address,
}


@pytest.mark.parametrize("name", OTHER_WRITES)
def test_other_ways_to_write(name: str, tmp_path: Path) -> None:
    check(numbers(), OTHER_WRITES[name], tmp_path)


def shared_by_numpy() -> tuple[om.Tensor, Callable[[om.Tensor], Any]]:
    base = numbers().numpy().copy()
    return om.from_numpy(base, copy=False), lambda x: base.fill(1.0)


def shared_by_dlpack() -> tuple[om.Tensor, Callable[[om.Tensor], Any]]:
    base = numbers().numpy().copy()
    return om.from_dlpack(base), lambda x: base.fill(1.0)


def exported_by_dlpack() -> tuple[om.Tensor, Callable[[om.Tensor], Any]]:
    values = numbers()
    view = shared_with_numpy(values)
    return values, lambda x: poke(view.ctypes.data)


def address_known() -> tuple[om.Tensor, Callable[[om.Tensor], Any]]:
    values = numbers()
    address = values.data_ptr()
    return values, lambda x: poke(address)


@pytest.mark.parametrize(
    "make", [shared_by_numpy, shared_by_dlpack, exported_by_dlpack, address_known]
)
def test_memory_that_others_may_write_before_the_trace(
    make: Callable[[], tuple[om.Tensor, Callable[[om.Tensor], Any]]], tmp_path: Path
) -> None:
    values, write = make()
    check(values, write, tmp_path)


def test_views_of_numpy_see_later_writes(tmp_path: Path) -> None:
    values = numbers()
    view = values.numpy()
    check(values, lambda x: x.fill_(4.0), tmp_path)
    assert (view == 4.0).all()


class Net(NnModule):
    def __init__(self) -> None:
        super().__init__()
        self.first = Linear(SIZE, SIZE)
        self.norm = BatchNorm1d(SIZE)
        self.last = Linear(SIZE, SIZE)

    def forward(self, x: om.Tensor) -> om.Tensor:
        return self.last(om.relu(self.norm(self.first(x))))


def net() -> Net:
    om.manual_seed(3)
    return Net().eval()


X = om.from_numpy(np.random.default_rng(5).normal(size=(7, SIZE)).astype(np.float32))


def train(module: NnModule, optimizer: optim.Optimizer) -> None:
    module.train()
    module(X).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    module.eval()


def loaded(module: NnModule, assign: bool) -> None:
    om.manual_seed(4)
    module.load_state_dict(Net().state_dict(), assign=assign)


def averaged(module: NnModule) -> None:
    average = ExponentialMovingAverage(module, decay=0.5)
    train(module, optim.SGD(module.parameters(), lr=0.1))
    average.update()
    module.load_state_dict(average.averages)


def flat(module: NnModule) -> None:
    vector = training.nn.utils.parameters_to_vector(module.parameters())
    training.nn.utils.vector_to_parameters(vector * 2, module.parameters())


OPTIMIZERS = [
    name
    for name in optim.__all__
    if inspect.isclass(kind := getattr(optim, name))
    and issubclass(kind, optim.Optimizer)
    and kind is not optim.Optimizer
]
CHANGES: dict[str, Callable[[NnModule], Any]] = {
    **{
        name: lambda module, name=name: train(
            module, getattr(optim, name)(module.parameters(), lr=0.1)
        )
        for name in OPTIMIZERS
    },
    "SGD with momentum": lambda module: train(
        module, optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    ),
    "load_state_dict": lambda module: loaded(module, assign=False),
    "load_state_dict, assigned": lambda module: loaded(module, assign=True),
    "moving average": averaged,
    "parameters from a vector": flat,
    "half": lambda module: module.half(),
    "initialised again": lambda module: [layer.reset_parameters() for layer in (module.first, module.last)],
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_models_are_trained_loaded_and_cast(name: str, tmp_path: Path) -> None:
    module = net()
    before = module.first.weight._array.tobytes()
    expected = saved(net().trace(X, verify=False), tmp_path)
    model = module.trace(X, verify=False)
    session = model.session(mode=ArithmeticMode.EXACT)
    result = module(X).detach().numpy().copy()
    CHANGES[name](module)
    assert module.first.weight._array.tobytes() != before
    assert saved(model, tmp_path) == expected
    for runs in (session, model.session(mode=ArithmeticMode.EXACT)):
        np.testing.assert_array_equal(runs.run({"x": X.numpy()})[0], result)


def test_statistics_of_a_norm_stay() -> None:
    norm = BatchNorm1d(2048).eval()
    x = om.from_numpy(np.random.default_rng(0).normal(size=(4, 2048)).astype(np.float32))
    model = norm.trace(x, verify=False)
    norm.train()(x)
    held = model.graph.initializers["running_mean"]
    assert held.nbytes == 8192 and not held.numpy().any()
    assert norm.running_mean.numpy().any()


def test_memory_is_shared_until_somebody_writes() -> None:
    module = net()
    weight: Array = module.first.weight._array
    model = module.trace(X, verify=False)
    assert weight.storage_refs == 2
    with om.no_grad():
        module.first.weight.add_(1)
    assert weight.storage_refs == 1
    again = module.trace(X, verify=False)
    assert weight.storage_refs == 2
    del model, again
    assert weight.storage_refs == 1


def test_a_large_buffer_written_in_forward_is_put_back() -> None:
    class Counting(NnModule):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", om.ones(SIZE, SIZE))

        def forward(self, x: om.Tensor) -> om.Tensor:
            result = x + self.seen
            self.seen.add_(1)
            return result

    module = Counting()
    with pytest.raises(TraceException, match="seen"):
        module.trace(om.ones(SIZE, SIZE))
    assert (module.seen.numpy() == 1).all()


def test_threads_train_while_others_save(tmp_path: Path) -> None:
    module = net()
    expected = saved(net().trace(X, verify=False), tmp_path)
    for repeat in range(10):
        module.load_state_dict(net().state_dict())
        folders = [tmp_path / f"{repeat}-{place}" for place in range(3)]
        for folder in folders:
            folder.mkdir()
        models = [module.trace(X, verify=False) for _ in folders]
        optimizer = optim.SGD(module.parameters(), lr=0.1)
        with ThreadPoolExecutor(4) as pool:
            stepping = pool.submit(train, module, optimizer)
            found = list(pool.map(saved, models, folders))
            stepping.result()
        assert found == [expected] * 3
