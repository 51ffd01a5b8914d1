"""A fork while another thread makes what is made at the first use, in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

SCRIPT = """
import os, signal, sys, threading

import numpy as np

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, GraphBuilder, Session
from onemodel_kernels import Array, set_num_threads

set_num_threads(2)
weight = np.random.default_rng(0).normal(size=(64, 64, 3, 3)).astype(np.float32)
image = np.ones((1, 64, 24, 24), np.float32)


def model():
    builder = GraphBuilder("net", opset=20)
    x = builder.add_input("x", "float32", ("batch", 64, 24, 24))
    w = builder.add_initializer("w", Array.from_numpy(weight))
    for _ in range(3):
        (x,) = builder.add_node("Conv", [x, w], attributes={"pads": (1, 1, 1, 1)})
    builder.add_output(x)
    return builder.build()


sessions = [Session(model(), mode) for mode in ArithmeticMode for _ in range(8)]


def work(reverse=False):
    # Kernels, packed and transformed weights, plans, drawn numbers, errors and NumPy's types.
    for session in reversed(sessions) if reverse else sessions:
        session.run(image)
    om.rand(1000).numpy()
    (om.rand(64, 64) @ om.rand(64, 64)).sum().item()
    try:
        om.zeros(2) + om.zeros(3)
    except ValueError:
        pass


thread = threading.Thread(target=work)
children = []
thread.start()
while thread.is_alive() and len(children) < 64:
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        work(reverse=len(children) % 2 == 1)
        os._exit(0)
    children.append(pid)
thread.join()
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
"""


def test_children_do_not_wait_for_what_another_thread_was_making() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    codes = [int(code) for code in done.stdout.strip("[]\n").split(",")]
    assert codes == [0] * len(codes)
