"""Many threads on one session, forked and spawned processes, Ctrl-C, and memory that is refused."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_graph.ir import Graph
from onemodel_kernels import get_num_threads, set_num_threads
from onemodel_kernels.errors import MemoryLimitError
from onemodel_trace import Tracer

Forked = Callable[[Callable[[], None]], int]


@pytest.mark.parametrize("mode", list(ArithmeticMode))
def test_sixteen_threads_on_one_session(make_graph: Any, mode: ArithmeticMode) -> None:
    session = Session(make_graph(3, 200), mode)
    inputs = [om.rand(rows, 4).numpy() for rows in (1, 2, 3, 64, 257)]
    expected = [session.run(x)[0].tobytes() for x in inputs]
    until = time.monotonic() + 2
    done: list[int] = []
    wrong: list[int] = []

    def work(number: int) -> None:
        runs = 0
        while time.monotonic() < until or runs == 0:
            at = (number + runs) % len(inputs)
            if session.run(inputs[at])[0].tobytes() != expected[at]:
                wrong.append(at)
            runs += 1
        done.append(runs)

    before = get_num_threads()
    set_num_threads(3)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        set_num_threads(before)
    assert wrong == []
    assert len(done) == 16


def test_a_forked_child_computes_the_same_bits(graphs: tuple[Graph, Graph], forked: Forked) -> None:
    before = get_num_threads()
    set_num_threads(2)
    session = Session(graphs[0], ArithmeticMode.EXACT)
    x = om.rand(500, 4)
    expected = session.run(x.numpy())[0].tobytes()
    product = (x.T @ x).numpy().tobytes()

    def work() -> None:
        # The session, its plan and the pool of threads are the parent's.
        assert session.run(x.numpy())[0].tobytes() == expected
        assert Session(graphs[0], ArithmeticMode.EXACT).run(x.numpy())[0].tobytes() == expected
        assert (x.T @ x).numpy().tobytes() == product
        w = om.rand(4, 4, requires_grad=True)
        (x @ w).sum().backward()
        assert w.grad is not None
        assert forked(lambda: work_of_grandchild()) == 0

    def work_of_grandchild() -> None:
        assert session.run(x.numpy())[0].tobytes() == expected

    try:
        assert forked(work) == 0
        assert session.run(x.numpy())[0].tobytes() == expected
    finally:
        set_num_threads(before)


def run_script(text: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(script), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


SPAWNED = """
import multiprocessing
import sys
import numpy as np
from onemodel_graph import Session

def run(rows):
    return Session(sys.argv[1], "exact").run(np.full((rows, 4), rows / 7, np.float32))[0].tobytes()

if __name__ == "__main__":
    expected = [run(rows) for rows in range(1, 9)]
    context = multiprocessing.get_context(sys.argv[2])
    with context.Pool(3) as pool:
        print(pool.map(run, range(1, 9)) == expected)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_of_processes_computes_the_same_bits(
    tmp_path: Path, graphs: tuple[Graph, Graph], method: str
) -> None:
    from onemodel_graph import save_v1

    save_v1(graphs[0], tmp_path / "model.om1")
    output, errors = run_script(SPAWNED, tmp_path, str(tmp_path / "model.om1"), method).communicate(
        timeout=120
    )
    assert (output, errors) == ("True\n", "")


INTERRUPTIBLE = """
import signal

# A job in the background of a shell without job control starts with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

LONG_RUN = """
import numpy as np
from onemodel_graph import Session
from onemodel_graph.ir import GraphBuilder
from onemodel_kernels import Array

builder = GraphBuilder()
x = builder.add_input("x", "float32", (2000, 2000))
w = builder.add_initializer("w", Array.full((2000, 2000), 0.0005, "float32"))
value = x
for _ in range(2_000):
    (value,) = builder.add_node("MatMul", [value, w])
builder.add_output(value)
session = Session(builder.build(), optimise=False)
ones = np.ones((2000, 2000), np.float32)
print("begin", flush=True)
try:
    session.run(ones)
except KeyboardInterrupt:
    # The session is whole: it could run again, and a short model runs now.
    small = GraphBuilder()
    small.add_output(small.add_node("Neg", [small.add_input("x", "float32", (2,))])[0])
    print(Session(small.build()).run(np.ones(2, np.float32))[0].tolist())
"""

LONG_TRAINING = """
import sys
import onemodel_tensors as om
from onemodel_training import SGD, CheckpointStore, Linear

model = Linear(300, 300)
optimiser = SGD(model.parameters(), lr=1e-6)
store = CheckpointStore(sys.argv[1])
x = om.rand(300, 300)
try:
    for step in range(10_000_000):
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()
        store.save(step, {"model": model.state_dict()})
        if step == 3:
            print("begin", flush=True)
except KeyboardInterrupt:
    saved = store.latest()["model"]["weight"].tolist()
    print(len(saved), not any(part.name.endswith(".part") for part in store.directory.iterdir()))
"""


@pytest.mark.parametrize(
    ("script", "says"), [(LONG_RUN, "[-1.0, -1.0]"), (LONG_TRAINING, "300 True")]
)
def test_ctrl_c_ends_long_work(tmp_path: Path, script: str, says: str) -> None:
    """The work takes far longer than the limit: that the process ends shows the interruption."""
    process = run_script(INTERRUPTIBLE + script, tmp_path, str(tmp_path / "store"))
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "begin\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (output.strip(), errors, process.returncode) == (says, "", 0)


def limited(work: Callable[[], None]) -> Callable[[], None]:
    """The work with 2 GiB of address space beyond what the process has."""

    def inner() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (2 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        work()

    return inner


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_memory_that_is_refused_is_an_exception(
    graphs: tuple[Graph, Graph], forked: Forked, tmp_path: Path
) -> None:
    session = Session(graphs[0])
    small = np.ones((2, 4), np.float32)
    expected = session.run(small)[0].tobytes()

    def eager() -> None:
        with pytest.raises(MemoryLimitError, match="no room for"):
            om.zeros(1 << 31)
        x = om.ones(1 << 15, 1, requires_grad=True)
        with pytest.raises(MemoryLimitError, match="no room for"):
            x @ om.ones(1, 1 << 15)
        with pytest.raises(MemoryError):
            kept = []
            while True:
                kept.append(om.ones(1 << 24))
        kept.clear()
        assert session.run(small)[0].tobytes() == expected

    def in_a_session() -> None:
        with Tracer.begin() as tracer:
            x = tracer.input("x", om.ones(4), axis_names={0: "n"})
            traced = tracer.finish({"y": (x.unsqueeze(1) * x.unsqueeze(0)).sum()})
        large = Session(traced.graph)
        for _ in range(3):
            with pytest.raises(MemoryError, match="no room for"):
                large.run(np.ones(1 << 16, np.float32))
        assert large.run(np.ones(3, np.float32))[0].tolist() == 9.0
        assert session.run(small)[0].tobytes() == expected

    assert forked(limited(eager)) == 0
    assert forked(limited(in_a_session)) == 0
