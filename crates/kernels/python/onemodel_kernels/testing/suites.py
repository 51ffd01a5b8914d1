"""The suites: classes whose tests run over the cases; subclass them in a test module.

class TestKernels(KernelSuite):
    families = ("convolution",)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from onemodel_kernels import Kernel, isa, ops
from onemodel_kernels.testing import inputs, running
from onemodel_kernels.testing.case import Case
from onemodel_kernels.testing.discovery import FAMILIES, cases_of


class _OverCases:
    """Parametrises every test that takes ``case``."""

    families: ClassVar[tuple[str, ...]] = FAMILIES

    @classmethod
    def select(cls, case: Case) -> bool:
        """Which cases a subclass wants."""
        return case.operator in set(Kernel.names())

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Pytest's hook."""
        if "case" in metafunc.fixturenames:
            found = [(f, c) for f in self.families for c in cases_of(f) if self.select(c)]
            names = [f"{family}-{case.name}" for family, case in found]
            metafunc.parametrize("case", [case for _, case in found], ids=names)


class KernelSuite(_OverCases):
    """The native kernel against the oracle, its own inference, other layouts and ONNX Runtime."""

    def test_oracle(self, case: Case) -> None:
        """Every output is within its bound of the f64 oracle."""
        got = running.native(case)
        want = case.expected()
        assert len(got) >= len(want), f"{len(got)} outputs, the oracle gives {len(want)}"
        for index, expected in enumerate(want):
            wrong = case.bound_of(index).violation(got[index], expected)
            assert wrong is None, f"output {index}: {wrong}"

    def test_inference(self, case: Case) -> None:
        """The kernel infers what it returns."""
        spec = ops.find(case.operator)
        if spec is not None and spec.data_dependent:
            pytest.skip("the shape depends on values")
        got = running.native(case)
        assert running.inferred(case) == [(out.dtype.name, out.shape) for out in got]

    def test_layout(self, case: Case) -> None:
        """Strided and transposed inputs give the bits of contiguous ones."""
        want = running.bits(running.native(case))
        for layout in (inputs.strided, inputs.transposed):
            given = [None if a is None else layout(a) for a in case.inputs]
            assert running.bits(running.native(case, given)) == want, layout.__name__

    def test_onnxruntime(self, case: Case) -> None:
        """ONNX Runtime computes the same, where it has the operator."""
        if not case.onnx:
            pytest.skip("ONNX Runtime is not a judge of this case")
        ort = pytest.importorskip("onnxruntime")
        try:
            theirs = running.onnxruntime(case)
        except (ort.capi.onnxruntime_pybind11_state.NotImplemented, RuntimeError) as error:
            pytest.skip(f"ONNX Runtime does not take it: {str(error)[:120]}")
        ours = running.native(case)
        for index, want in enumerate(theirs):
            wrong = case.onnx_bound.violation(ours[index], np.asarray(want))
            assert wrong is None, f"output {index}: {wrong}"


class SpecSuite(_OverCases):
    """The spec of an operator against the native kernel."""

    @classmethod
    def select(cls, case: Case) -> bool:
        """Cases whose kernel has the name of a spec."""
        spec = ops.find(case.operator)
        return super().select(case) and spec is not None and spec.name == case.operator

    def test_shapes(self, case: Case) -> None:
        """``OpSpec.infer`` gives the types that the kernel returns."""
        spec = ops.get(case.operator)
        attributes = case.attributes if case.onnx_attributes is None else case.onnx_attributes
        shapes = [None if a is None else a.shape for a in case.inputs]
        dtypes = [None if a is None else a.dtype.name for a in case.inputs]
        names = {*spec.attributes, *(name for _, name in spec.operands)}
        if not set(attributes) <= names:
            pytest.skip("the case's attributes are the kernel's own")
        got = running.native(case)
        found = spec.infer(shapes, dtypes, attributes)
        for (dtype, shape), out in zip(found, got, strict=False):
            known = [
                have if want is None else want for want, have in zip(shape, out.shape, strict=True)
            ]
            assert (dtype, tuple(known)) == (out.dtype.name, out.shape)


@cache
def bits_elsewhere(isa_name: str, threads: int, families: tuple[str, ...]) -> dict[str, Any]:
    """The table of :mod:`onemodel_kernels.testing.bits` in a process of its own."""
    environment = {
        **os.environ,
        "ONEMODEL_KERNELS_ISA": isa_name,
        "ONEMODEL_TESTING_THREADS": str(threads),
    }
    command = [sys.executable, "-m", "onemodel_kernels.testing.bits", *families]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class BitsSuite:
    """The same bits on every instruction set of the host and for any number of threads."""

    families: ClassVar[tuple[str, ...]] = FAMILIES

    @pytest.mark.parametrize("name", ["scalar", "avx2", "avx512", "neon"])
    def test_instruction_set(self, name: str) -> None:
        """Forced instruction sets agree with the best one."""
        forced = bits_elsewhere(name, 1, self.families)
        if forced["isa"] != name:
            pytest.skip(f"this host has no {name}")
        self._compare(forced, bits_elsewhere(isa(), 1, self.families))

    def test_threads(self) -> None:
        """Two threads agree with one."""
        best = isa()
        self._compare(
            bits_elsewhere(best, 2, self.families), bits_elsewhere(best, 1, self.families)
        )

    @staticmethod
    def _compare(one: dict[str, Any], other: dict[str, Any]) -> None:
        assert one["bits"].keys() == other["bits"].keys()
        differ = [name for name, value in one["bits"].items() if value != other["bits"][name]]
        assert not differ, f"{len(differ)} cases differ, among them {differ[:10]}"


__all__ = ["BitsSuite", "KernelSuite", "SpecSuite", "bits_elsewhere"]
