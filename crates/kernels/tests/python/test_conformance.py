"""Every kernel against the shared cases: oracle, facts, layouts, instruction sets, threads."""

from onemodel_kernels import Kernel
from onemodel_kernels.testing import every_case
from onemodel_kernels.testing.suites import BitsSuite, KernelSuite, SpecSuite


class TestKernels(KernelSuite):
    """Values, inference, layouts, and what ONNX Runtime says."""


class TestFacts(SpecSuite):
    """The operator facts against what the kernels return."""


class TestBits(BitsSuite):
    """The same bits on every instruction set and for any number of threads."""


def test_every_kernel_has_a_case_that_the_suites_compare() -> None:
    """A kernel without one would miss the oracle, layouts, instruction sets and threads."""
    compared = {case.operator for _, case in every_case() if case.deterministic}
    own = {name for name in Kernel.names() if "::" not in name}
    assert own - compared == set()
