"""What tracing costs: one trace, finish included, beside one eager run of the same model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import onemodel_tensors as om
from workloads import Workload


@dataclass(frozen=True)
class TraceCost:
    """Best times of a few runs in seconds, and the number of nodes of the graph."""

    eager: float
    traced: float
    nodes: int

    @property
    def ratio(self) -> float:
        """Tracing over the eager run."""
        return self.traced / self.eager

    @property
    def per_node(self) -> float:
        """Seconds of tracing for each node."""
        return self.traced / max(self.nodes, 1)


def best(run: Callable[[], object], times: int = 5) -> float:
    """The shortest of a few runs in seconds."""
    run()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def trace_cost(workload: Workload) -> TraceCost:
    """Measure the model of a workload."""
    om.manual_seed(0)
    model = workload.build().eval()
    inputs = workload.inputs()
    tensors = [om.from_numpy(array) for array in inputs.values()]

    def eager() -> object:
        with om.no_grad():
            return model(*tensors)

    def trace() -> int:
        traced = model.trace(
            *tensors, input_names=list(inputs), axis_names=workload.axes, verify=False
        )
        return len(traced.graph.nodes)

    return TraceCost(best(eager), best(trace), trace())
