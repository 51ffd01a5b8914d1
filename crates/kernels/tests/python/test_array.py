"""Array against numpy: views, copies, exchange with other libraries, and what is refused."""

from __future__ import annotations

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onemodel_kernels import Array
from onemodel_kernels.errors import BoundsError, DtypeError, MemoryLimitError, OneModelError

DTYPES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
)  # fmt: skip

shapes = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=5)
small = hnp.arrays(np.int32, shapes, elements=st.integers(-1000, 1000))


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip_of_every_dtype(dtype: str) -> None:
    source = np.arange(24).reshape(2, 3, 4).astype(dtype)
    array = Array.from_numpy(source)
    assert array.dtype == dtype
    assert array.shape == (2, 3, 4)
    assert array.strides == (12, 4, 1)
    assert array.nbytes == source.nbytes
    assert array.tobytes() == source.tobytes()
    assert array.tolist() == source.tolist()
    assert array.numpy().dtype == source.dtype


def test_bfloat16_round_trip() -> None:
    source = np.asarray([1.0, -2.5, 3e38, float("inf")], ml_dtypes.bfloat16)
    array = Array.from_numpy(source)
    assert array.dtype == "bfloat16"
    assert array.tobytes() == source.tobytes()


@pytest.mark.parametrize("source", [np.ones(2, complex), np.asarray(["a"]), np.asarray([object()])])
def test_other_dtypes_are_refused(source: np.ndarray) -> None:
    with pytest.raises(DtypeError):
        Array.from_numpy(source)


@given(small)
def test_strided_sources_are_read_by_position(source: np.ndarray) -> None:
    for view in (
        source.T,
        source[::-1] if source.ndim else source,
        source[..., ::2] if source.ndim else source,
    ):
        np.testing.assert_array_equal(Array.from_numpy(view).numpy(), view)


@given(small, st.data())
def test_slices_are_numpys(source: np.ndarray, data: st.DataObject) -> None:
    if source.ndim == 0:
        return
    axis = data.draw(st.integers(0, source.ndim - 1))
    cut = data.draw(st.slices(source.shape[axis]))
    start, stop, step = cut.indices(source.shape[axis])
    if not range(start, stop, step):
        start = stop = 0
    view = Array.from_numpy(source).slice(axis, start, stop, step)
    index = (slice(None),) * axis + (cut,)
    np.testing.assert_array_equal(view.numpy(), source[index])


@pytest.mark.parametrize("step", [2**63, -(2**63) - 1, 2**63 - 1, -(2**63)])
def test_slices_take_steps_of_any_size(step: int) -> None:
    source = np.arange(5, dtype=np.int64)
    start, stop, _ = slice(None, None, step).indices(5)
    view = Array.from_numpy(source).slice(0, start, stop, step)
    np.testing.assert_array_equal(view.numpy(), source[::step])


@given(small, st.data())
def test_permutations_are_numpys(source: np.ndarray, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(source.ndim)))
    array = Array.from_numpy(source).permute(axes)
    np.testing.assert_array_equal(array.numpy(), source.transpose(axes))
    np.testing.assert_array_equal(array.contiguous().numpy(), source.transpose(axes))
    assert array.contiguous().is_contiguous


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
def test_expansion_is_numpys(broadcast: hnp.BroadcastableShapes) -> None:
    shape, result = broadcast.input_shapes[0], broadcast.result_shape
    source = np.arange(int(np.prod(shape))).reshape(shape)
    expanded = Array.from_numpy(source).expand(result)
    np.testing.assert_array_equal(expanded.numpy(), np.broadcast_to(source, result))


def test_views_share_storage_and_copies_do_not() -> None:
    base = Array.from_numpy(np.zeros((3, 4), np.float32))
    row = base.select(0, 1)
    assert row.storage_id == base.storage_id
    copy = base.copy()
    assert copy.storage_id != base.storage_id
    row.fill(7.0)
    assert base.tolist() == [[0.0] * 4, [7.0] * 4, [0.0] * 4]
    assert copy.tolist() == [[0.0] * 4] * 3


def test_writes_raise_the_version_of_every_view() -> None:
    base = Array.full((4,), 1, "int64")
    view = base.slice(0, 0, 4, 2)
    before = base.version
    view.copy_from(Array.full((), 9, "int64"))
    assert base.version == view.version > before
    assert base.tolist() == [9, 1, 9, 1]


def test_copy_from_itself_reversed_is_the_reverse() -> None:
    base = Array.from_numpy(np.arange(5))
    base.copy_from(base.slice(0, 4, -1, -1))
    assert base.tolist() == [4, 3, 2, 1, 0]


def test_reshape_is_a_view_or_an_error() -> None:
    base = Array.from_numpy(np.arange(12).reshape(3, 4))
    assert base.reshape((2, 6)).storage_id == base.storage_id
    turned = base.permute((1, 0))
    with pytest.raises(OneModelError):
        turned.reshape((12,))
    np.testing.assert_array_equal(
        turned.view_or_copy((12,)).numpy(), np.arange(12).reshape(3, 4).T.ravel()
    )
    with pytest.raises(OneModelError):
        base.reshape((5, 2))


def test_numpy_view_is_read_only_and_keeps_the_storage() -> None:
    view = Array.from_numpy(np.arange(1000)).numpy()
    gc.collect()
    assert view.sum() == 499_500
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_from_numpy_copies_unless_asked() -> None:
    source = np.zeros(4, np.float32)
    copied, shared = Array.from_numpy(source), Array.from_numpy(source, copy=False)
    source[0] = 5.0
    assert copied.tolist()[0] == 0.0
    assert shared.tolist()[0] == 5.0
    shared.fill(1.0)
    assert source.tolist() == [1.0] * 4


def test_what_is_read_only_stays_so() -> None:
    source = np.zeros(4, np.float32)
    source.flags.writeable = False
    shared = Array.from_numpy(source, copy=False)
    assert shared.read_only
    with pytest.raises(OneModelError, match="read-only"):
        shared.fill(1.0)


def test_shared_memory_keeps_its_owner() -> None:
    source = np.zeros(4, np.float32)
    alive = weakref.ref(source)
    shared = Array.from_numpy(source, copy=False)
    del source
    gc.collect()
    assert alive() is not None
    assert shared.tolist() == [0.0] * 4
    del shared
    gc.collect()
    assert alive() is None


def test_buffers_are_read_in_place() -> None:
    content = bytes(range(16))
    array = Array.from_buffer(content, "uint32", (3,), offset=4)
    assert array.tolist() == np.frombuffer(content, np.uint32, 3, 4).tolist()
    assert array.read_only
    with pytest.raises(OneModelError):
        Array.from_buffer(content, "uint32", (4,), offset=4)
    assert bytes(memoryview(Array.from_numpy(np.arange(3, dtype=np.uint8)))) == b"\0\1\2"


def test_dlpack_both_ways() -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = Array.from_dlpack(source)
    np.testing.assert_array_equal(array.numpy(), source)
    back = np.from_dlpack(array.permute((1, 0)))
    np.testing.assert_array_equal(back, source.T)


@pytest.mark.parametrize("shape", [(2**62, 4), (2**40, 2**40), (2**63 - 1,)])
def test_impossible_sizes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(MemoryLimitError):
        Array.full(shape, 0, "float64")


def test_indices_and_axes_outside_are_refused() -> None:
    array = Array.from_numpy(np.zeros((2, 3)))
    for call in (
        lambda: array.select(0, 2),
        lambda: array.select(2, 0),
        lambda: array.permute((0, 0)),
        lambda: array.permute((0,)),
        lambda: array.squeeze((1,)),
        lambda: array.slice(0, 0, 2, 0),
        lambda: array.expand((2, 4)),
    ):
        with pytest.raises(OneModelError) as caught:
            call()
        assert str(caught.value)
    assert issubclass(BoundsError, IndexError)


def test_item_needs_one_element() -> None:
    assert Array.full((1, 1), 2.5, "float32").item() == 2.5
    assert Array.full((), True, "bool").item() is True
    with pytest.raises(OneModelError):
        Array.full((2,), 0, "int8").item()
