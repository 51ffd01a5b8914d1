"""Every kernel against the shared cases: oracle, facts, layouts, instruction sets, threads."""

from onemodel_kernels.testing.suites import BitsSuite, KernelSuite, SpecSuite


class TestKernels(KernelSuite):
    """Values, inference, layouts, and what ONNX Runtime says."""


class TestFacts(SpecSuite):
    """The operator facts against what the kernels return."""


class TestBits(BitsSuite):
    """The same bits on every instruction set and for any number of threads."""
