"""Grad mode belongs to a context: threads, tasks and suspended generators do not see each other's."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

import onemodel_tensors as om


def records() -> bool:
    x = om.tensor([1.0], requires_grad=True)
    return (x * 2).requires_grad


def test_no_grad_and_enable_grad_nest():
    assert records()
    with om.no_grad():
        assert not records()
        with om.enable_grad():
            assert records()
        assert not records()
    assert records()


def test_inference_mode():
    with om.inference_mode():
        assert not records()
    assert records()


def test_mode_is_restored_after_an_exception():
    with contextlib.suppress(ValueError), om.no_grad():
        raise ValueError
    assert records()


def test_decorator_with_and_without_parentheses():
    @om.no_grad()
    def first():
        return records()

    @om.no_grad
    def second():
        return records()

    assert not first()
    assert not second()
    assert records()


def test_decorated_generator_leaks_nothing_between_items():
    @om.no_grad()
    def items():
        for _ in range(2):
            yield records()

    for inside in items():
        assert not inside
        assert records()


def test_no_grad_inside_a_generator_leaks_nothing_between_items():
    def items():
        with om.no_grad():
            yield records()
            yield records()
        yield records()

    running = items()
    assert not next(running)
    assert records()
    assert not next(running)
    assert records()
    assert next(running)


def test_abandoned_generator_leaves_nothing_behind():
    def items():
        with om.no_grad():
            yield 1
            yield 2

    running = items()
    next(running)
    assert records()
    del running
    assert records()
    from onemodel_tensors.autograd import mode

    assert not mode.bound_entries


def test_enable_grad_called_from_inside_a_no_grad_generator():
    def inner():
        with om.enable_grad():
            return records()

    def items():
        with om.no_grad():
            yield inner()
            yield records()

    assert list(items()) == [True, False]


def test_generator_consumed_under_no_grad():
    def items():
        with om.enable_grad():
            yield records()
        yield records()

    with om.no_grad():
        assert list(items()) == [True, False]


def test_other_threads_do_not_see_it():
    seen = []
    with om.no_grad():
        thread = threading.Thread(target=lambda: seen.append(records()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_other_tasks_do_not_see_it():
    seen = []

    async def quiet():
        with om.no_grad():
            await asyncio.sleep(0)
            seen.append(("quiet", records()))
            await asyncio.sleep(0)

    async def loud():
        for _ in range(3):
            seen.append(("loud", records()))
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(quiet(), loud())

    asyncio.run(both())
    assert {value for name, value in seen if name == "loud"} == {True}
    assert {value for name, value in seen if name == "quiet"} == {False}


def test_set_grad_enabled_as_statement_and_block():
    om.set_grad_enabled(False)
    try:
        assert not records()
        with om.set_grad_enabled(True):
            assert records()
        assert not records()
    finally:
        om.set_grad_enabled(True)
    assert records()


def test_results_under_no_grad_cannot_be_differentiated():
    x = om.tensor([1.0], requires_grad=True)
    with om.no_grad():
        y = x * 2
    with pytest.raises(om.OneModelError, match="no_grad"):
        y.backward()
