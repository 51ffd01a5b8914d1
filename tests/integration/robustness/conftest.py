"""Models, saved files and child processes of the robustness tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import pytest

import onemodel_tensors as om
from onemodel_graph.ir import Graph
from onemodel_training import Linear, ReLU, Sequential


def make_graph(seed: int, width: int = 8) -> Graph:
    """A small network, traced with a symbolic batch; another seed gives other weights."""
    om.manual_seed(seed)
    model = Sequential(Linear(4, width), ReLU(), Linear(width, 3)).eval()
    return model.trace(om.rand(2, 4), axis_names={"input": {0: "batch"}}).graph


def run_forked(work: Callable[[], None]) -> int:
    """Run the work in a forked child: its exit code, 0 if it returned, minus the killing signal."""
    with warnings.catch_warnings():
        # Python warns of threads of other libraries; the child only does what the test wants to see.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(scope="session")
def forked() -> Callable[[Callable[[], None]], int]:
    """:func:`run_forked`."""
    return run_forked


@pytest.fixture(scope="session")
def graphs() -> tuple[Graph, Graph]:
    """Two models with the same graph and different weights."""
    return make_graph(1), make_graph(2)
