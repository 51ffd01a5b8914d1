"""numpy, DLPack, the buffer protocol, text and copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import DtypeError, OneModelError, ShapeError


def test_from_numpy_copies_unless_asked():
    source = np.arange(4.0, dtype=np.float32)
    copied, shared = om.from_numpy(source), om.from_numpy(source, copy=False)
    source[0] = 9
    assert copied.tolist() == [0, 1, 2, 3]
    assert shared.tolist() == [9, 1, 2, 3]


def test_numpy_is_a_read_only_view():
    x = om.tensor([1.0, 2.0])
    view = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5
    x.add_(1)
    assert view.tolist() == [2.0, 3.0]
    assert np.asarray(x).tolist() == [2.0, 3.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_numpy_of_a_tensor_with_gradient_is_refused():
    with pytest.raises(OneModelError, match="detach"):
        om.tensor([1.0], requires_grad=True).numpy()


def test_strided_round_trip():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)[::-1, ::2]
    x = om.from_numpy(array)
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(x.t().numpy(), array.T)


def test_dlpack_shares_memory():
    x = om.tensor([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    other = om.from_dlpack(np.arange(3.0))
    assert other.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 2])


def test_tensor_takes_numbers_sequences_arrays_and_tensors():
    assert om.tensor(3).dtype == "int64"
    assert om.tensor(True).dtype == "bool"
    assert om.tensor([[1, 2], [3, 4]]).shape == (2, 2)
    assert om.tensor([1, 2.5]).dtype == "float32"
    assert om.tensor(np.array([1.0])).dtype == "float64"
    assert om.tensor([]).shape == (0,)
    assert om.tensor([om.tensor(1.0), om.tensor(2.0)]).tolist() == [1, 2]
    assert om.tensor([1, 2], dtype="float32").tolist() == [1, 2]
    x = om.tensor([1.0])
    assert om.tensor(x) is not x
    assert om.as_tensor(x) is x


def test_bad_data_is_named():
    with pytest.raises(ShapeError, match="ragged"):
        om.tensor([[1, 2], [3]])
    with pytest.raises(DtypeError):
        om.tensor(["a"])
    with pytest.raises(DtypeError):
        om.from_numpy(np.array([1j]))


def test_python_conversions():
    assert float(om.tensor(1.5)) == 1.5
    assert int(om.tensor([7])) == 7
    assert bool(om.tensor(0)) is False
    assert [10, 20][om.tensor(1)] == 20
    assert complex(om.tensor(2.0)) == 2 + 0j
    assert f"{om.tensor(1.25):.1f}" == "1.2"
    with pytest.raises(ShapeError, match="any"):
        bool(om.tensor([1, 2]))
    with pytest.raises(ShapeError, match="tolist"):
        om.tensor([1, 2]).item()
    with pytest.raises(TypeError):
        [1][om.tensor(0.0)]


def test_copies():
    x = om.tensor([1.0, 2.0], requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad
        assert other.tolist() == [1.0, 2.0]
        assert other._array.storage_id != x._array.storage_id
    with pytest.raises(OneModelError, match="leaf"):
        copy.deepcopy(x * 2)


def test_text():
    assert repr(om.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(om.tensor([1.5])) == "tensor([1.5])"
    assert "dtype=float64" in repr(om.tensor([1.5], dtype="float64"))
    assert "requires_grad=True" in repr(om.tensor([1.5], requires_grad=True))
    assert "grad_fn=Mul" in repr(om.tensor([1.5], requires_grad=True) * 2)
    assert "bfloat16" in repr(om.tensor([1.5]).bfloat16())


def test_tensors_are_hashable_by_identity():
    x = om.tensor([1.0])
    assert {x: 1}[x] == 1


def test_shape_accessors():
    x = om.zeros(2, 3)
    assert (x.size(), x.size(-1), x.dim(), x.ndim, x.numel(), x.nbytes) == ((2, 3), 3, 2, 2, 6, 24)
    assert (x.stride(), x.stride(0), x.storage_offset(), x.is_contiguous()) == ((3, 1), 3, 0, True)
    assert x.T.shape == x.mT.shape == (3, 2)
    with pytest.raises(ShapeError, match=r"size"):
        x.size(2)
