"""Program: values of every kind, fresh outputs, many threads, and what is refused."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from onemodel_kernels import Array, Kernel, Program, cached_bytes, release_cached
from onemodel_kernels.errors import OneModelError

F32 = "float32"


def array(*values: float) -> Array:
    return Array.from_numpy(np.asarray(values, np.float32))


def affine(size: int = 4) -> Program:
    """(x + 1) * 2, the sum in the arena."""
    values = [
        ("input", F32, (size,)),
        ("constant", Array.full((), 1.0, F32)),
        ("arena", F32, (size,), 0),
        ("constant", Array.full((), 2.0, F32)),
        ("output", F32, (size,)),
    ]
    nodes = [(Kernel("Add"), [0, 1], [2]), (Kernel("Mul"), [2, 3], [4])]
    return Program(values, nodes, [4], 64 * size)


def test_working_memory_is_kept_until_it_is_given_back() -> None:
    size = 1 << 19
    program = affine(size)
    x = Array.full((size,), 1.0, F32)
    first = program.run([x])
    release_cached()
    assert cached_bytes() == 0
    program.release()
    assert cached_bytes() >= program.arena_bytes
    assert program.run([x])[0].tobytes() == first[0].tobytes()


def test_values_go_from_input_through_the_arena_to_the_output() -> None:
    program = affine()
    assert len(program) == 2
    (y,) = program.run([array(0, 1, 2, 3)])
    assert y.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_outputs_are_fresh_in_every_run() -> None:
    program = affine()
    (first,) = program.run([array(0, 0, 0, 0)])
    (second,) = program.run([array(1, 1, 1, 1)])
    assert first.tolist() == [2.0] * 4
    assert first.storage_id != second.storage_id


def test_views_have_shape_strides_and_offset() -> None:
    values = [
        ("input", F32, (2, 3)),
        ("view", 0, (3, 2), (1, 3), 0),
        ("output", F32, (3, 2)),
    ]
    program = Program(values, [(Kernel("Neg"), [1], [2])], [2], 0)
    (y,) = program.run([Array.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))])
    assert y.tolist() == [[0.0, -3.0], [-1.0, -4.0], [-2.0, -5.0]]


def test_views_show_the_elements_of_strided_inputs_and_constants() -> None:
    numbers = np.arange(6, dtype=np.float32).reshape(3, 2).T
    strided = Array.from_numpy(numbers, copy=False)
    assert not strided.is_contiguous
    for base in (("input", F32, (2, 3)), ("constant", strided)):
        values = [base, ("view", 0, (3, 2), (2, 1), 0), ("output", F32, (3, 2))]
        program = Program(values, [(Kernel("Neg"), [1], [2])], [2], 0)
        (y,) = program.run([strided] if base[0] == "input" else [])
        assert y.tolist() == (-numbers.reshape(3, 2)).tolist()


@pytest.mark.parametrize("base", [("input", F32, (4,)), ("constant", array(1, 2, 3, 4))])
def test_no_call_writes_through_a_view_of_an_input_or_constant(base: tuple[object, ...]) -> None:
    values = [("input", F32, (4,)), base, ("view", 1, (4,), (1,), 0), ("view", 2, (4,), (1,), 0)]
    for output in (2, 3):
        with pytest.raises(OneModelError, match="an output in the arena"):
            Program(values, [(Kernel("Neg"), [0], [output])], [output], 0)


def test_an_offset_beyond_every_address_is_refused() -> None:
    values = [("arena", F32, (4,), 64), ("view", 0, (4,), (1,), 2**64 - 1)]
    with pytest.raises(OneModelError, match="offset"):
        Program(values, [], [1], 256)


def test_an_input_or_constant_may_be_an_output() -> None:
    values = [("input", F32, (2,)), ("constant", array(7, 8))]
    x, c = Program(values, [], [0, 1], 0).run([array(1, 2)])
    assert x.tolist() == [1.0, 2.0]
    assert c.tolist() == [7.0, 8.0]


def test_many_threads_share_a_program() -> None:
    program = affine(1000)
    inputs = [Array.full((1000,), float(n), F32) for n in range(8)]
    start = threading.Barrier(8)

    def run(n: int) -> bool:
        start.wait()
        expected = [2.0 * (n + 1)] * 1000
        return all(program.run([inputs[n]])[0].tolist() == expected for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_profile_has_a_time_for_each_node() -> None:
    outputs, nanoseconds = affine().run_profiled([array(0, 0, 0, 0)])
    assert outputs[0].tolist() == [2.0] * 4
    assert len(nanoseconds) == 2
    assert all(taken >= 0 for taken in nanoseconds)


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [array(1, 2, 3, 4), array(1, 2, 3, 4)],
        [array(1, 2, 3)],
        [Array.full((4,), 1, "int32")],
        [Array.full((2, 2), 1.0, F32)],
    ],
    ids=["none", "two", "shape", "dtype", "rank"],
)
def test_inputs_that_do_not_fit_are_refused(inputs: list[Array]) -> None:
    with pytest.raises((OneModelError, TypeError, ValueError)) as caught:
        affine().run(inputs)
    assert str(caught.value)


ADD = Kernel("Add")
X = ("input", F32, (4,))


@pytest.mark.parametrize(
    ("values", "nodes", "outputs", "arena"),
    [
        ([X], [], [1], 0),
        ([X], [(ADD, [0, 5], [0])], [0], 0),
        ([X, ("output", F32, (4,))], [(ADD, [0], [1])], [1], 0),
        ([X, ("output", F32, (5,))], [(ADD, [0, 0], [1])], [1], 0),
        ([X, ("output", "int32", (4,))], [(ADD, [0, 0], [1])], [1], 0),
        ([X, ("arena", F32, (4,), 0)], [(ADD, [0, 0], [1])], [1], 8),
        ([X, ("arena", F32, (4,), 1)], [(ADD, [0, 0], [1])], [1], 64),
        ([X, ("view", 0, (4,), (1,), 1), ("output", F32, (4,))], [(ADD, [1, 1], [2])], [2], 0),
        ([X, ("view", 7, (4,), (1,), 0)], [], [1], 0),
        ([("nonsense", F32, (4,))], [], [0], 0),
        ([("input", "float31", (4,))], [], [0], 0),
        ([X], [(ADD, [0, 0], [0])], [0], 0),
    ],
    ids=[
        "output index", "input index", "arity", "output shape", "output dtype", "arena too small",
        "misaligned", "view outside", "view of nothing", "kind", "dtype", "write to an input",
    ],
)  # fmt: skip
def test_programs_that_do_not_fit_are_refused(
    values: list[tuple], nodes: list[tuple], outputs: list[int], arena: int
) -> None:
    with pytest.raises((OneModelError, TypeError, ValueError)) as caught:
        Program(values, nodes, outputs, arena).run([array(1, 2, 3, 4)])
    assert str(caught.value)


def test_kernels_say_what_is_wrong_with_their_attributes() -> None:
    with pytest.raises(OneModelError, match="Nonsense"):
        Kernel("Nonsense")
    with pytest.raises(OneModelError, match="beta"):
        Kernel("LeakyRelu", beta=1.0)
    with pytest.raises(OneModelError, match="Add"):
        ADD(array(1, 2, 3), array(1, 2))
    with pytest.raises(OneModelError, match="Add"):
        ADD(array(1, 2), Array.full((2,), 1, "int64"))


def test_run_into_writes_existing_arrays() -> None:
    out = Array.full((4,), 0.0, F32)
    before = out.version
    ADD.run_into([out], [array(1, 2, 3, 4), array(1, 1, 1, 1)])
    assert out.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert out.version > before
    with pytest.raises(OneModelError):
        ADD.run_into([Array.full((3,), 0.0, F32)], [array(1, 2, 3, 4), array(1, 1, 1, 1)])
