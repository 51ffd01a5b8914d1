"""Late copies: the values of their time, whichever way the source is written afterwards."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from onemodel_kernels import Array, Kernel, Program

COUNT = 4096


def source() -> Array:
    return Array.full((64, 64), 1.0, "float32")


def is_all(array: Array, value: float) -> bool:
    return bool((array.numpy() == value).all())


def run_into(array: Array) -> None:
    Kernel("SgdStep", lr=1.0).run_into([array], [array, Array.full((64, 64), -1.0, "float32")])


def by_address(array: Array) -> None:
    values = np.full(COUNT, 2.0, np.float32)
    ctypes.memmove(array.data_ptr(), values.ctypes.data, values.nbytes)


def by_dlpack(array: Array) -> None:
    values = np.full(COUNT, 2.0, np.float32)
    ctypes.memmove(np.from_dlpack(array).ctypes.data, values.ctypes.data, values.nbytes)


WRITES: dict[str, Callable[[Array], None]] = {
    "fill": lambda array: array.fill(2.0),
    "fill a view": lambda array: array.permute((1, 0)).fill(2.0),
    "copy_from": lambda array: array.copy_from(Array.full((), 2.0, "float32")),
    "copy_from with overlap": lambda array: (
        array.select(0, 0).fill(2.0),
        array.copy_from(array.slice(0, 0, 1, 1)),
    ),
    "run_into": run_into,
    "address": by_address,
    "DLPack": by_dlpack,
}


@pytest.mark.parametrize("name", WRITES)
def test_a_late_copy_does_not_see_writes(name: str) -> None:
    if name == "DLPack" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("consumers of DLPack before 1.0, as this NumPy, get memory of their own")
    array = source()
    copies = [array.late_copy() for _ in range(3)]
    assert copies[0].numpy()[0, 0] == 1.0
    WRITES[name](array)
    assert is_all(array, 2.0)
    assert all(is_all(copy, 1.0) for copy in copies)
    assert len({copy.storage_id for copy in (array, *copies)}) == 4


def test_a_write_into_a_late_copy_leaves_the_source() -> None:
    array = source()
    copy = array.late_copy()
    run_into(copy)
    assert is_all(copy, 2.0) and is_all(array, 1.0)
    assert (copy.version, array.version) == (1, 0)


def test_views_of_a_late_copy_made_before_the_write() -> None:
    array = source()
    row = array.late_copy().select(0, 3)
    flat = array.late_copy().reshape((COUNT,))
    array.fill(2.0)
    assert is_all(row, 1.0) and is_all(flat, 1.0)


def test_a_program_keeps_its_late_constant() -> None:
    array = source()
    plan = Program(
        [("input", "float32", (64, 64)), ("constant", array.late_copy()), ("output", "float32", (64, 64))],
        [(Kernel("Add"), [0, 1], [2])],
        [2],
        0,
    )  # fmt: skip
    array.fill(2.0)
    assert is_all(plan.run([source()])[0], 2.0)


def test_memory_is_shared_and_freed() -> None:
    array = source()
    copy = array.late_copy()
    assert array.storage_refs == 2 and copy.shape == (64, 64)
    assert array.storage_refs == 2
    del copy
    assert array.storage_refs == 1
    copy = array.late_copy()
    assert is_all(copy, 1.0)
    assert array.storage_refs == 1
    kept = array.late_copy()
    del array
    assert is_all(kept, 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: source().permute((1, 0)),
        lambda: source().slice(0, 0, 32, 1),
        lambda: Array.full((5,), 1.0, "float32"),
        lambda: Array.from_numpy(np.ones((64, 64), np.float32), copy=False),
        lambda: Array.from_buffer(np.ones((64, 64), np.float32), "float32", (64, 64)),
    ],
)
def test_all_else_is_copied_at_once(make: Callable[[], Array]) -> None:
    array = make()
    references = array.storage_refs
    copy = array.late_copy()
    assert array.storage_refs == references
    assert copy.shape == array.shape and copy.is_contiguous and is_all(copy, 1.0)


def test_memory_with_a_known_address_is_copied_at_once() -> None:
    for expose in (lambda array: array.data_ptr(), np.from_dlpack):
        array = source()
        known = expose(array)
        copy = array.late_copy()
        by_address(array)
        assert is_all(copy, 1.0), known


def test_threads_read_copies_while_another_writes() -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(200):
            array = Array.full((512, 64), 1.0, "float32")
            copies = [array.late_copy() for _ in range(3)]
            reading = [pool.submit(is_all, copy, 1.0) for copy in copies]
            pool.submit(array.fill, 2.0).result()
            assert all(found.result() for found in reading)
            assert all(is_all(copy, 1.0) for copy in copies)
