"""Operators registered from outside: what is computed, what reaches the caller, what is refused."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onemodel_kernels import Array, Kernel, Program, ops
from onemodel_kernels.errors import (
    AttributeValueError,
    ShapeError,
    UnsupportedError,
    UsageError,
)
from onemodel_kernels.extension import CompiledKernel, register
from onemodel_kernels.ops import Attribute, Call, InputSpec, OpSpec

_NUMBERS = itertools.count()


def facts(name: str | None = None, **changed: Any) -> OpSpec:
    """An operator of one input and one output of the same type, with an attribute."""
    own: dict[str, Any] = {
        "inputs": (InputSpec("x"),),
        "outputs": (InputSpec("y"),),
        "rule": lambda call: [(call.dtype(), call.shape())],
        "attributes": {"times": Attribute("float", 2.0)},
        "domain": "test.extension",
    }
    return OpSpec(name or f"Own{next(_NUMBERS)}", **{**own, **changed})


def shown(spec: OpSpec) -> str:
    return f"{spec.domain}::{spec.name}"


def array(*values: float) -> Array:
    return Array.from_numpy(np.asarray(values, np.float32))


def scaled(x: Array, times: float) -> Any:
    return x.numpy() * np.float32(times)


def test_a_registered_operator_is_found_and_computed() -> None:
    spec = register(facts(), scaled)
    assert ops.find(shown(spec)) is spec
    assert ops.get(spec.name, spec.domain) is spec
    assert shown(spec) in Kernel.names()
    kernel = Kernel(shown(spec), times=3.0)
    assert kernel(array(1, 2)).tolist() == [3.0, 6.0]
    assert kernel.infer([("float32", (4,))]) == [("float32", (4,))]


def test_a_program_runs_it_between_other_kernels_from_many_threads() -> None:
    spec = register(facts(), scaled)
    size = 1000
    values = [
        ("input", "float32", (size,)),
        ("arena", "float32", (size,), 0),
        ("arena", "float32", (size,), 4096),
        ("output", "float32", (size,)),
    ]
    calls = [
        (Kernel("Neg"), [0], [1]),
        (Kernel(shown(spec), times=2.0), [1], [2]),
        (Kernel("Neg"), [2], [3]),
    ]
    program = Program(values, calls, [3], 8192)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.arange(size, dtype=np.float32) + seed
        for _ in range(50):
            (y,) = program.run([Array.from_numpy(x)])
            if not (y.numpy() == 2 * x).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_several_outputs_and_absent_inputs() -> None:
    def both(x: Array, y: Array | None) -> tuple[Any, Any]:
        return x, np.zeros(2, np.float32) if y is None else y

    spec = facts(
        inputs=(InputSpec("x"), InputSpec("y", optional=True)),
        outputs=(InputSpec("a"), InputSpec("b")),
        rule=lambda call: [(call.dtype(), call.shape())] * 2,
        attributes={},
    )
    register(spec, both)
    kernel = Kernel(shown(spec))
    first, second = kernel(array(1, 2), None)
    assert (first.tolist(), second.tolist()) == ([1.0, 2.0], [0.0, 0.0])
    first, second = kernel(array(1, 2), array(3, 4))
    assert second.tolist() == [3.0, 4.0]


def test_an_exception_of_the_kernel_reaches_the_caller_with_the_kernels_name() -> None:
    class Unhappy(Exception):
        pass

    def fails(x: Array, times: float) -> Array:
        raise Unhappy("no")

    spec = register(facts(), fails)
    with pytest.raises(Unhappy, match="no") as caught:
        Kernel(shown(spec), times=1.0)(array(1))
    assert f"in the kernel {shown(spec)}" in caught.value.__notes__


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: np.zeros(3, np.float32), r"output 0 to be float32 \[2\], got float32 \[3\]"),
        (lambda x: np.zeros(2, np.float64), r"output 0 to be float32 \[2\], got float64 \[2\]"),
        (lambda x: (x, x), "expected 1 outputs, got 2"),
    ],
)
def test_results_of_another_type_than_inferred_are_refused(
    result: Callable[[Array], Any], message: str
) -> None:
    spec = register(facts(attributes={}), result)
    with pytest.raises((ShapeError, UsageError), match=message):
        Kernel(shown(spec))(array(1, 2))


def test_the_rule_of_the_facts_refuses_inputs_by_the_operators_name() -> None:
    def rule(call: Call) -> list[Any]:
        if call.rank() != 2:
            raise ShapeError("expected a matrix")
        return [(call.dtype(), call.shape())]

    spec = register(facts("Matrix", rule=rule), scaled)
    with pytest.raises(ShapeError, match="Matrix: expected a matrix"):
        Kernel(shown(spec), times=1.0)(array(1))
    with pytest.raises(AttributeValueError, match="unknown attribute 'twice'"):
        Kernel(shown(spec), twice=1.0)(array(1))


def test_what_is_incomplete_or_there_already_is_not_registered() -> None:
    for spec, compute, message in (
        (facts(domain=""), scaled, "a domain of your own"),
        (facts(domain="onemodel"), scaled, "a domain of your own"),
        (facts(domain="a::b"), scaled, "a domain of your own"),
        (facts("not a name"), scaled, "an identifier"),
        (facts(), None, "exactly one of compute, spec.decompose and spec.kernel.*0"),
        (facts(kernel="Neg"), scaled, "got 2 of them"),
        (facts(kernel="NoSuchKernel"), None, "there is no kernel 'NoSuchKernel'"),
        (facts(outputs=()), scaled, "a fixed number of outputs"),
        (facts("Gelu", domain="com.microsoft"), scaled, "com.microsoft::Gelu is"),
    ):
        with pytest.raises(UsageError, match=message):
            register(spec, compute)
    once = register(facts(), scaled)
    with pytest.raises(UsageError, match="not registered yet"):
        register(facts(once.name), scaled)


def test_a_name_that_nobody_registered_is_unknown() -> None:
    with pytest.raises(UnsupportedError, match="nobody::Knows"):
        Kernel("nobody::Knows")
    with pytest.raises(UnsupportedError, match=r"extension\.register"):
        ops.get("nobody::Knows")


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a library")
    with pytest.raises(UnsupportedError, match="does not load"):
        CompiledKernel(broken, "f")
    native = Path(__import__("onemodel_kernels")._native.__file__)
    with pytest.raises(UnsupportedError, match="'onemodel_kernel_abi', which it does not export"):
        CompiledKernel(native, "f")
