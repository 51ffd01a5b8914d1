"""Indexing against numpy, for keys of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onemodel_tensors as om
from onemodel_kernels.errors import BoundsError, ShapeError


@st.composite
def shapes_and_keys(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    key = []
    for extent in shape:
        kind = draw(st.sampled_from(["slice", "int", "full"] if extent else ["slice", "full"]))
        if kind == "int":
            key.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "full":
            key.append(slice(None))
        else:
            bound = st.one_of(st.none(), st.integers(-extent - 2, extent + 2))
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            key.append(slice(draw(bound), draw(bound), step))
    cut = draw(st.integers(0, len(key)))
    if draw(st.booleans()):
        key = [*key[:cut], Ellipsis]
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return shape, tuple(key)


def numbers(shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@settings(max_examples=300, deadline=None)
@given(shapes_and_keys())
def test_basic_keys_give_numpys_elements_as_views(drawn):
    shape, key = drawn
    array = numbers(shape)
    x = om.from_numpy(array)
    got = x[key]
    np.testing.assert_array_equal(got.numpy(), array[key])
    assert got._array.storage_id == x._array.storage_id


@settings(max_examples=300, deadline=None)
@given(shapes_and_keys())
def test_assignment_by_basic_keys_is_numpys(drawn):
    shape, key = drawn
    array = numbers(shape)
    x = om.from_numpy(array)
    array[key] = -1
    x[key] = -1
    np.testing.assert_array_equal(x.numpy(), array)


@settings(max_examples=200, deadline=None)
@given(shapes_and_keys())
def test_gradient_of_basic_keys(drawn):
    shape, key = drawn
    x = om.from_numpy(numbers(shape)).requires_grad_()
    y = x[key]
    y.backward(om.ones(y.shape))
    expected = np.zeros(shape, dtype=np.float32)
    expected[key] = 1
    np.testing.assert_array_equal(x.grad.numpy(), expected)


ROWS = np.array([0, 2, -1])
GRID = np.array([[1], [0]])
MASK = np.array([[True, False, True, False], [False, True, True, False], [False] * 4])

ADVANCED = [
    (ROWS,),
    (slice(None), ROWS),
    (slice(None), slice(1, 3), ROWS),
    (ROWS, ROWS),
    (slice(None), ROWS, ROWS),
    (slice(None), GRID, ROWS),
    (ROWS, slice(None), ROWS),
    (Ellipsis, ROWS),
    (None, ROWS),
    (slice(None), None, ROWS),
    (ROWS, slice(0, 2)),
    (ROWS[:0],),
    (MASK,),
    (MASK, slice(1, 2)),
    (MASK[:, 0],),
    (slice(None), MASK[0]),
    (MASK[:, 0], ROWS[:2]),
    (np.array(1),),
    ([0, 1], [1, 0]),
    (MASK & False,),
    (slice(None, None, 2), ROWS),
    (GRID, GRID, GRID),
]


@pytest.mark.parametrize("key", ADVANCED, ids=lambda key: str(key).replace("\n", ""))
def test_positions_give_numpys_elements(key):
    array = numbers((3, 4, 5))
    own = tuple(om.tensor(k) if isinstance(k, np.ndarray) else k for k in key)
    np.testing.assert_array_equal(om.from_numpy(array)[own].numpy(), array[key])
    np.testing.assert_array_equal(om.from_numpy(array)[key].numpy(), array[key])


@pytest.mark.parametrize("key", ADVANCED, ids=lambda key: str(key).replace("\n", ""))
def test_assignment_at_positions_is_numpys(key):
    array = numbers((3, 4, 5))
    x = om.from_numpy(array)
    array[key] = -1
    x[key] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    part = array[key]
    values = np.arange(part.size, dtype=np.float32).reshape(part.shape)
    array[key] = values
    x[key] = om.from_numpy(values)
    np.testing.assert_array_equal(x.numpy(), array)


def test_int_beside_tensor_is_a_select_first():
    x = om.from_numpy(numbers((2, 3, 4)))
    assert x[0, :, om.tensor([0, 1, 3])].shape == (3, 3)


def test_bool_scalar_adds_an_axis():
    x = om.from_numpy(numbers((2, 3)))
    assert x[True].shape == (1, 2, 3)
    assert x[False].shape == (0, 2, 3)


def test_errors_name_the_place():
    x = om.from_numpy(numbers((2, 3)))
    with pytest.raises(BoundsError, match=r"index in \[-3, 3\) of axis 1, got 3"):
        x[:, 3]
    with pytest.raises(BoundsError, match="at most 2 indices"):
        x[0, 0, 0]
    with pytest.raises(BoundsError):
        x[om.tensor([5])]
    with pytest.raises(ShapeError, match=r"mask of shape \(2, 3\)"):
        x[om.tensor([[True, False]])]
    with pytest.raises(BoundsError, match="ellipsis"):
        x[..., ...]
    with pytest.raises(TypeError):
        x["a"]


def test_iteration_and_unpacking():
    a, b = om.from_numpy(numbers((2, 3)))
    assert b.tolist() == [3, 4, 5]
    assert len(om.zeros(4, 2)) == 4
    assert 4.0 in om.from_numpy(numbers((2, 3)))
    assert a.shape == (3,)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_chains_of_views_share_storage_and_hold_numpys_elements(data):
    array = numbers((2, 3, 4))
    x = om.from_numpy(array)
    storage = x._array.storage_id
    for _ in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(["permute", "slice", "expand", "unsqueeze", "flip"]))
        if kind == "permute":
            order = data.draw(st.permutations(range(array.ndim)))
            array, x = array.transpose(order), x.permute(*order)
        elif kind == "slice" and array.ndim:
            axis = data.draw(st.integers(0, array.ndim - 1))
            start = data.draw(st.integers(0, max(0, array.shape[axis] - 1)))
            key = (slice(None),) * axis + (
                slice(start, None, data.draw(st.sampled_from([1, 2, -1]))),
            )
            array, x = array[key], x[key]
        elif kind == "expand":
            array = np.broadcast_to(array, (2, *array.shape))
            x = x.expand(2, *[-1] * (array.ndim - 1))
        elif kind == "unsqueeze":
            axis = data.draw(st.integers(0, array.ndim))
            array, x = np.expand_dims(array, axis), x.unsqueeze(axis)
        elif kind == "flip" and array.ndim:
            array, x = array[::-1], x[::-1]
    assert x._array.storage_id == storage
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(x.contiguous().numpy(), array)
    np.testing.assert_array_equal((x + 1).numpy(), array + 1)
