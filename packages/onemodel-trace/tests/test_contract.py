"""The tracer keeps its own contract."""

from onemodel_trace.testing.contract import TraceContract


class TestContract(TraceContract):
    pass
