"""Operators of your own, registered from outside the packages.

An operator is a pair of a domain and a name. :func:`register` takes its facts (an
:class:`~onemodel_kernels.ops.OpSpec`) and what computes it: a Python function, a function compiled
from Rust or C, or other operators. From then on ``Kernel("domain::Name")`` prepares it, a session
runs it, and ``ops.find("domain::Name")`` finds its facts.

>>> from onemodel_kernels import Array, Kernel
>>> from onemodel_kernels.ops import InputSpec, OpSpec
>>> square = Kernel("Square")
>>> facts = OpSpec(
...     "Quartic", (InputSpec("x"),), (InputSpec("y"),),
...     lambda call: [(call.dtype(), call.shape())], domain="com.example.doctest",
... )
>>> spec = register(facts, lambda x: square(square(x)))
>>> Kernel("com.example.doctest::Quartic")(Array.full((2,), 3.0, "float32")).tolist()
[81.0, 81.0]
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onemodel_kernels import ops
from onemodel_kernels._native import COMPILED_ABI, Array, Kernel, register_kernel
from onemodel_kernels.errors import UnsupportedError, UsageError
from onemodel_kernels.ops.spec import OpSpec

__all__ = ["COMPILED_ABI", "CompiledKernel", "Compute", "register"]

Compute = Callable[..., Any]
"""``compute(*inputs, **attributes)``: one ``Array`` (or ``None``) for each tensor input; returns an
``Array``, or a tuple of them, of the types that the facts infer. Anything numpy understands will do.
The inputs are lent for the call: keep a copy, never the array."""


class CompiledKernel:
    """A function in a shared library, computing without Python.

    The function is ``int32_t symbol(const Call *)`` as the crate's module ``compiled`` lays it out:
    tensors as ``DLTensor``, contiguous, on the CPU. The library also has ``uint32_t
    onemodel_kernel_abi(void)``, which returns the version of that layout.

    Args:
        path: The library.
        symbol: The name of the function in it.

    Raises:
        UnsupportedError: the library does not load, lacks one of the two functions, or was built
            for another layout.
    """

    def __init__(self, path: str | os.PathLike[str], symbol: str) -> None:
        try:
            self._library = ctypes.CDLL(os.fspath(path))
        except OSError as error:
            raise UnsupportedError(f"CompiledKernel: {path} does not load: {error}") from None
        found = self._function("onemodel_kernel_abi", path)()
        if found != COMPILED_ABI:
            raise UnsupportedError(
                f"CompiledKernel: {path}: expected a library built for layout {COMPILED_ABI}, got "
                f"{found}; rebuild it"
            )
        function = self._function(symbol, path)
        self.address: int = ctypes.cast(function, ctypes.c_void_p).value or 0

    def _function(self, symbol: str, path: str | os.PathLike[str]) -> Any:
        try:
            return getattr(self._library, symbol)
        except AttributeError:
            raise UnsupportedError(
                f"CompiledKernel: {path}: expected the function {symbol!r}, which it does not export"
            ) from None


def register(spec: OpSpec, compute: Compute | CompiledKernel | None = None) -> OpSpec:
    """Register an operator; there is no way back in a process.

    Args:
        spec: Its facts. ``domain`` is yours, as ``"com.example"``. ``exact`` is your promise that
            the bits of the result depend on the bits of the inputs alone: a session in exact mode
            relies on it. Never on a state, the time or a random generator.
        compute: What computes it, unless ``spec.decompose`` writes it with other operators or
            ``spec.kernel`` names a kernel that exists.

    Returns:
        The registered facts.

    Raises:
        UsageError: the domain is reserved, the operator is registered already, or nothing (or more
            than one thing) computes it.
    """
    if not spec.name.isidentifier():
        raise UsageError(f"register: expected an identifier as the name, got {spec.name!r}")
    shown = f"{spec.domain}::{spec.name}"
    if spec.domain in ops.RESERVED_DOMAINS or "::" in spec.domain:
        raise UsageError(
            f"register: {spec.name}: expected a domain of your own, as 'com.example', got "
            f"{spec.domain!r}"
        )
    if ops.find(spec.name, spec.domain) is not None:
        raise UsageError(
            f"register: expected an operator that is not registered yet, but {shown} is; choose "
            "another name or domain"
        )
    ways = [spec.kernel is not None, spec.decompose is not None, compute is not None]
    if sum(ways) != 1:
        raise UsageError(
            f"register: {shown}: expected exactly one of compute, spec.decompose and spec.kernel, "
            f"got {sum(ways)} of them"
        )
    if spec.kernel is not None and spec.kernel not in Kernel.names():
        raise UsageError(f"register: {shown}: there is no kernel {spec.kernel!r}")
    if compute is not None:
        spec = replace(spec, kernel=shown)
        _register_kernel(shown, spec, compute)
    ops.add(spec)
    return spec


def _register_kernel(name: str, spec: OpSpec, compute: Compute | CompiledKernel) -> None:
    outputs = len(spec.outputs)
    if not outputs or spec.outputs[-1].variadic:
        raise UsageError(f"register: {name}: expected a fixed number of outputs, at least one")

    def infer(
        types: Sequence[tuple[str, tuple[int, ...]] | None], attributes: Mapping[str, Any]
    ) -> Any:
        shapes = [None if entry is None else entry[1] for entry in types]
        dtypes = [None if entry is None else entry[0] for entry in types]
        return spec.infer(shapes, dtypes, attributes)

    if isinstance(compute, CompiledKernel):
        _KEPT.append(compute)
        register_kernel(name, outputs, infer, compute.address)
        return
    function = compute

    def run(inputs: Sequence[Array | None], attributes: Mapping[str, Any]) -> list[Array]:
        made = function(*inputs, **attributes)
        return [_array(entry) for entry in (made if isinstance(made, tuple | list) else (made,))]

    register_kernel(name, outputs, infer, run)


_KEPT: list[CompiledKernel] = []
"""Libraries whose functions are registered stay loaded."""


def _array(value: Any) -> Array:
    if isinstance(value, Array):
        return value
    import numpy

    return Array.from_numpy(numpy.asarray(value), copy=False)
