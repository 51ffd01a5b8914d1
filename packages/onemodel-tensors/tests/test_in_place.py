"""Writing in place: gradients stay right, or the write is refused before it happens."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import DtypeError, OneModelError, ShapeError


def leaf(shape=(2, 3), dtype="float64"):
    count = int(np.prod(shape))
    return om.from_numpy(np.arange(1, count + 1, dtype=dtype).reshape(shape) / 3).requires_grad_()


def ones_like(tensor):
    return om.ones(tensor.shape, dtype=tensor.dtype)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.zero_(),
        lambda x: x.fill_(2.0),
        lambda x: x.copy_(om.zeros(2, 3, dtype="float64")),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x[:, 1].mul_(2),
        lambda x: x.t().zero_(),
        lambda x: om.functional.relu(x, inplace=True),
        lambda x: x.__iadd__(1),
        lambda x: x.uniform_(),
    ],
)
def test_a_leaf_that_requires_a_gradient_is_refused_before_the_write(write):
    x = leaf()
    before, version = x.detach().tolist(), x._version
    with pytest.raises(OneModelError, match="leaf"):
        write(x)
    assert x.detach().tolist() == before
    assert x._version == version


def test_a_leaf_may_be_written_under_no_grad():
    x = leaf()
    with om.no_grad():
        x.mul_(2)
        x[0] = 0
    assert x.is_leaf
    assert x.detach()[0].tolist() == [0, 0, 0]


FORMS = {
    "setitem slice": lambda y: y.__setitem__((slice(None), slice(0, 2)), 0.0),
    "setitem int": lambda y: y.__setitem__(0, 5.0),
    "setitem tensor": lambda y: y.__setitem__(
        (slice(None), 1), om.tensor([7.0, 8.0], dtype="float64")
    ),
    "setitem mask": lambda y: y.__setitem__(y.detach() > 1.1, 0.0),
    "setitem step": lambda y: y.__setitem__((slice(None), slice(None, None, 2)), 0.0),
    "setitem negative": lambda y: y.__setitem__((slice(None, None, -1), slice(0, 1)), 1.0),
    "add_": lambda y: y.add_(1),
    "mul_": lambda y: y.mul_(3),
    "iadd": lambda y: y.__iadd__(2),
    "view mul_": lambda y: y[:, 1:].mul_(2),
    "view of view": lambda y: y[:, 1:].t()[0].mul_(2),
    "transpose": lambda y: y.t().mul_(2),
    "reshape": lambda y: y.reshape(-1)[1:3].zero_(),
    "chunk": lambda y: y.chunk(2, 1)[1].mul_(4),
    "split": lambda y: y.split(1, 0)[1].zero_(),
    "unbind": lambda y: y.unbind(0)[0].mul_(4),
    "diagonal": lambda y: y.diagonal().mul_(4),
    "flip view": lambda y: y[:, ::-2].mul_(4),
    "exp_": lambda y: y.exp_(),
    "sigmoid_": lambda y: y.sigmoid_(),
    "relu inplace": lambda y: om.functional.relu(y, inplace=True),
    "clamp_": lambda y: y.clamp_(0.7, 1.7),
    "copy_": lambda y: y.copy_(om.ones(2, 3, dtype="float64")),
    "masked_fill_": lambda y: y.masked_fill_(y.detach() > 1.1, 2.0),
    "squeeze": lambda y: y.unsqueeze(0).squeeze(0).mul_(3),
    "index_add_": lambda y: y.index_add_(0, om.tensor([1]), om.ones(1, 3, dtype="float64")),
}


@pytest.mark.parametrize("name", FORMS)
def test_gradient_of_a_write(name):
    write = FORMS[name]

    def function(x):
        y = x * 1.5
        write(y)
        return y * y

    assert om.gradcheck(function, leaf())


def test_gradient_flows_into_what_was_written():
    def function(x, v):
        y = x * 2
        y[:, 1] = v * v
        y[0] += v[0]
        return y * y

    assert om.gradcheck(function, [leaf(), leaf((2,))])


def test_buffer_filled_step_by_step():
    def function(x):
        out = om.zeros(3, 2, dtype="float64")
        for step in range(3):
            out[step] = x * (step + 1)
        return out * out

    assert om.gradcheck(function, leaf((2,)))


def test_rows_taken_before_the_base_is_written():
    def function(x):
        out = om.zeros(3, 2, dtype="float64")
        row = out[1]
        row.copy_(x)
        late = out[1] * 2
        out.mul_(3)
        return late, row * row, out * out

    assert om.gradcheck(function, leaf((2,)))


def test_old_value_that_a_gradient_needs_is_kept():
    def function(x):
        y = x * 1
        y.mul_(x)
        y.mul_(y * 1)
        return y

    assert om.gradcheck(function, leaf())


def test_detached_alias_sees_the_write_and_has_no_gradient():
    y = leaf() * 1
    alias = y.detach()
    y.add_(1)
    assert alias.tolist() == y.detach().tolist()
    assert not alias.requires_grad


def test_versions_count_writes_through_every_view():
    x = om.zeros(2, 3)
    view = x[:, 1:]
    before = x._version
    view.add_(1)
    assert x._version == view._version == before + 1


def test_dtype_and_shape_of_the_target_stay():
    x = om.tensor([1, 2])
    with pytest.raises(DtypeError, match=r"add_\(\)"):
        x.add_(0.5)
    with pytest.raises(ShapeError, match=r"add_\(\)"):
        x.add_(om.ones(3, 2, dtype="int64"))
    y = om.zeros(2)
    y.add_(om.tensor([1, 2]))
    assert y.dtype == "float32"


def test_overlapping_copy():
    x = om.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_read_only_memory_is_refused():
    source = np.arange(3.0)
    source.setflags(write=False)
    x = om.from_numpy(source, copy=False)
    with pytest.raises(OneModelError, match="read-only"):
        x.add_(1)


def test_augmented_assignment_keeps_the_object():
    x = om.ones(2)
    same = x
    x += 1
    x *= 3
    assert same is x
    assert same.tolist() == [6, 6]
