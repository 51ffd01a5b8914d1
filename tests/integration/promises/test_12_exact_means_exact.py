"""12. A row's result depends on no batch size, thread count, instruction set or optimisation."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_tensors import functional as F
from onemodel_training import (
    LSTM,
    BatchNorm2d,
    Conv2d,
    LayerNorm,
    Linear,
    MaxPool2d,
    NnModule,
    Sequential,
)


class Mixed(NnModule):
    """Convolution, norms, a recurrent layer, attention and softmax in one model."""

    def __init__(self) -> None:
        super().__init__()
        self.features = Sequential(Conv2d(1, 5, 3, padding=1), BatchNorm2d(5), MaxPool2d(2))
        self.lstm = LSTM(20, 7, bidirectional=True)
        self.norm = LayerNorm(14)
        self.classify = Linear(14, 9)

    def forward(self, image: om.Tensor) -> om.Tensor:
        columns = F.gelu(self.features(image)).permute(3, 0, 1, 2).flatten(2)
        steps, _ = self.lstm(columns)
        steps = self.norm(steps).transpose(0, 1)
        steps = steps + F.scaled_dot_product_attention(steps, steps, steps)
        return F.softmax(self.classify(steps), dim=-1)


def traced():
    om.manual_seed(0)
    model = Mixed().eval()
    return model, model.trace(
        om.rand(3, 1, 8, 26), axis_names={"image": {0: "batch", 3: "width"}}, verify=False
    )


def images(batch: int, width: int = 26) -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(11))
    return generator.standard_normal((batch, 1, 8, width), np.float32)


@pytest.mark.parametrize("batch", [2, 7, 16, 33])
def test_a_row_does_not_depend_on_its_batch(batch: int) -> None:
    session = Session(traced()[1].graph, mode=ArithmeticMode.EXACT)
    image = images(batch)
    (together,) = session.run({"image": image})
    for row in range(batch):
        (alone,) = session.run({"image": image[row : row + 1]})
        assert alone.tobytes() == together[row : row + 1].tobytes()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_no_bit(threads: int) -> None:
    graph = traced()[1].graph
    image = images(16, 64)
    results = {
        Session(graph, mode=ArithmeticMode.EXACT, threads=count).run({"image": image})[0].tobytes()
        for count in (1, threads)
    }
    assert len(results) == 1


def test_session_equals_eager() -> None:
    model, graph = traced()
    image = images(4)
    (session,) = Session(graph.graph, mode=ArithmeticMode.EXACT).run({"image": image})
    with om.no_grad():
        eager = model(om.from_numpy(image)).numpy()
    assert session.tobytes() == eager.tobytes()


PROGRAM = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from test_12_exact_means_exact import traced, images
from onemodel_graph import ArithmeticMode, Session
(y,) = Session(traced()[1].graph, mode=ArithmeticMode.EXACT).run({{"image": images(5)}})
print(hashlib.sha256(y.tobytes()).hexdigest())
"""


def run_with(instruction_set: str) -> str | None:
    environment = {**os.environ, "ONEMODEL_KERNELS_ISA": instruction_set}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=os.path.dirname(__file__))],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        assert "ONEMODEL_KERNELS_ISA" in result.stderr, result.stderr
        return None
    return result.stdout.strip()


def test_instruction_sets_change_no_bit() -> None:
    """Those that this machine lacks say so; the portable one is always there."""
    (y,) = Session(traced()[1].graph, mode=ArithmeticMode.EXACT).run({"image": images(5)})
    expected = hashlib.sha256(y.tobytes()).hexdigest()
    found = {name: run_with(name) for name in ("scalar", "avx2", "avx512", "neon")}
    assert found["scalar"] == expected
    assert {value for value in found.values() if value is not None} == {expected}


def test_fast_stays_near() -> None:
    """1e-5 of the largest value is what the fast mode promises."""
    graph = traced()[1].graph
    image = images(5)
    (exact,) = Session(graph, mode=ArithmeticMode.EXACT).run({"image": image})
    (fast,) = Session(graph, mode=ArithmeticMode.FAST).run({"image": image})
    assert np.abs(fast - exact).max() <= 1e-5 * np.abs(exact).max()
