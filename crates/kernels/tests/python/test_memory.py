"""What is kept of freed memory: bounds, giving it back, and reuse."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from onemodel_kernels import Array, Kernel, Program, cached_bytes, release_cached

MIB = 1 << 20
SHARED, OWN = 256 * MIB, 8 * MIB
SMALL = 1024
"""More than the scalars that making an array leaves."""


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def floats(mebibytes: float) -> Array:
    return Array.full((int(mebibytes * MIB) // 4,), 1.0, "float32")


def test_freed_blocks_are_counted_and_given_back() -> None:
    release_cached()
    assert cached_bytes() == 0
    array = floats(3)
    assert cached_bytes() < SMALL
    del array
    assert 3 * MIB <= cached_bytes() < 4 * MIB
    array = floats(3)
    assert cached_bytes() < SMALL
    small = floats(0.5)
    del small, array
    assert 3.5 * MIB <= cached_bytes() < 5 * MIB
    release_cached()
    assert cached_bytes() == 0


def test_what_is_kept_is_bounded_whatever_the_sizes() -> None:
    release_cached()
    for mebibytes in range(2, 60, 3):
        arrays = [floats(mebibytes) for _ in range(3)]
        del arrays
        assert cached_bytes() <= SHARED + OWN
    # Sizes of the past make room for those of now.
    array = floats(5)
    before = cached_bytes()
    del array
    assert cached_bytes() >= min(before, SHARED // 2)
    before = cached_bytes()
    array = floats(5)
    assert cached_bytes() < before
    del array
    release_cached()


def test_a_block_above_the_largest_goes_back_at_once() -> None:
    release_cached()
    array = floats(65)
    del array
    assert cached_bytes() < SMALL


def test_threads_share_large_blocks_and_keep_few_small_ones() -> None:
    release_cached()
    kept: list[int] = []

    def work() -> None:
        arrays = [floats(0.75) for _ in range(40)]
        del arrays
        kept.append(cached_bytes())

    for _ in range(16):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(kept) == 16
    # 16 times 30 MiB were freed, but each thread found what the one before it left.
    assert max(kept) <= 64 * MIB
    assert cached_bytes() <= 64 * MIB
    release_cached()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_working_memory_goes_back_too() -> None:
    release_cached()
    before = resident()
    a = Array.full((1200, 1200), 0.5, "float32")
    for _ in range(2):
        Kernel("MatMul")(a, a)
    assert cached_bytes() > 5 * MIB
    del a
    release_cached()
    assert resident() - before < 24 * MIB


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_burst_of_threads_leaves_no_arenas_behind() -> None:
    release_cached()
    count = 8 * MIB // 4
    x = Array.full((count,), 1.0, "float32")
    places = [("input", "float32", (count,)), ("arena", "float32", (count,), 0)]
    nodes = [(Kernel("Sqrt"), [0], [1]), (Kernel("ReduceSum", keepdims=0), [1], [2])]
    program = Program([*places, ("output", "float32", ())], nodes, [2], 8 * MIB)
    program.run([x])
    before = resident()
    start = threading.Barrier(64)

    def work() -> None:
        start.wait()
        for _ in range(4):
            assert program.run([x])[0].item() == count

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Where 64 of them ran at once on as many CPUs, their arenas are kept for the next 128 runs.
    for _ in range(130):
        program.run([x])
    release_cached()
    assert resident() - before < 24 * MIB
    program.release()
    release_cached()
    assert resident() - before < 16 * MIB
