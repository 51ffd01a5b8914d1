"""A fork while other threads are in the middle of kernels, plans and random numbers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_kernels import Array, Kernel, get_num_threads, set_num_threads
from onemodel_kernels.forking import new_in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

FORKS = 30
LIMIT = 60
"""Seconds after which a child counts as one that waits for a thread that it does not have."""

Forked = Callable[[Callable[[], None]], int]


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Kernels on two threads, so that the pool is busy when its process forks."""
    before = get_num_threads()
    set_num_threads(2)
    yield
    set_num_threads(before)


def work_in_threads(works: list[Callable[[int], object]]) -> Callable[[], None]:
    """Call each work again and again in a thread of its own; returns what ends them."""
    over = threading.Event()
    failed: list[BaseException] = []

    def again(work: Callable[[int], object]) -> None:
        try:
            for number in count():
                if over.is_set():
                    return
                work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=again, args=(work,)) for work in works]
    for thread in threads:
        thread.start()

    def end() -> None:
        over.set()
        for thread in threads:
            thread.join()
        assert failed == []

    return end


def limited(work: Callable[[], None]) -> Callable[[], None]:
    """The work, ended by a signal where it takes too long."""

    def inner() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT)
        work()

    return inner


def test_a_child_computes_whatever_the_other_threads_did(
    make_graph: Any, forked: Forked, two_threads: None
) -> None:
    session = Session(make_graph(3, 200), ArithmeticMode.EXACT)
    inputs = [om.rand(rows, 4).numpy() for rows in (1, 3, 64, 500)]
    expected = [session.run(x)[0].tobytes() for x in inputs]
    fresh = om.rand(1001, 4)
    product = om.rand(256, 256)
    squared = (product @ product).numpy().tobytes()
    answer = Session(make_graph(3, 200), ArithmeticMode.EXACT).run(fresh.numpy())[0].tobytes()

    def child() -> None:
        for x, bits in zip(inputs, expected, strict=True):
            assert session.run(x)[0].tobytes() == bits
        # A shape that nobody planned before the fork.
        assert session.run(fresh.numpy())[0].tobytes() == answer
        assert (product @ product).numpy().tobytes() == squared
        assert om.rand(3).shape == (3,)

    end = work_in_threads([
        lambda number: session.run(inputs[number % len(inputs)]),
        lambda number: session.run(np.ones((1 + number % 900, 4), np.float32)),
        lambda number: product @ product,
        lambda number: om.rand(1 + number % 50_000),
        lambda number: Session(make_graph(number, 8)).run(inputs[0]),
    ])  # fmt: skip
    try:
        codes = []
        for _ in range(FORKS):
            codes.append(forked(limited(child)))
            time.sleep(0.01)
    finally:
        end()
    assert codes == [0] * FORKS
    for x, bits in zip(inputs, expected, strict=True):
        assert session.run(x)[0].tobytes() == bits


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_a_lock_that_another_thread_holds_is_free_in_the_child(
    make: Callable[[], Any], forked: Forked
) -> None:
    lock, held, over = new_in_child(make()), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def child() -> None:
        assert lock.acquire(timeout=LIMIT)
        lock.release()

    try:
        assert forked(limited(child)) == 0
        assert not lock.acquire(blocking=False)
    finally:
        over.set()
        thread.join()


def test_a_session_that_plans_in_another_thread_plans_in_the_child(
    make_graph: Any, forked: Forked
) -> None:
    session = Session(make_graph(1))
    x = om.rand(7, 4).numpy()
    planned = session._planned
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with planned._lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def child() -> None:
        assert session.run(x)[0].shape == (7, 3)

    try:
        assert forked(limited(child)) == 0
    finally:
        over.set()
        thread.join()


def test_a_child_makes_late_copies_while_other_threads_do(forked: Forked) -> None:
    step, shape = Kernel("SgdStep", lr=1.0), (1 << 20,)
    gradient = Array.full(shape, 0.0, "float32")
    theirs = [Array.full(shape, 1.0, "float32") for _ in range(2)]
    ours = Array.full(shape, 1.0, "float32")

    def write(array: Array) -> None:
        copy = array.late_copy()
        step.run_into([array], [array, gradient])
        assert copy.storage_id != array.storage_id

    def child() -> None:
        copy = ours.late_copy()
        ours.fill(2.0)
        assert (copy.numpy() == 1.0).all()

    end = work_in_threads([lambda number, array=array: write(array) for array in theirs])
    try:
        codes = [forked(limited(child)) for _ in range(FORKS)]
    finally:
        end()
    assert codes == [0] * FORKS
    assert (ours.numpy() == 1.0).all()
