"""What a training step costs: forward, loss, backward and AdamW, as multiples of a forward run.

The forward run is ONNX Runtime's, of the same net on the same batch, in the same run and with the
same number of threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime

import convolutional
import onemodel_tensors as om
import sequential
from onemodel_kernels import set_num_threads
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training import AdamW, NnModule

Loss = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class StepWorkload:
    """One line of the table.

    Args:
        name: what the table calls it.
        most: how many forward runs a step may take.
        build: makes the model.
        batch: makes its input and the loss of its output, from a seeded generator.
    """

    name: str
    most: float
    build: Callable[[], NnModule]
    batch: Callable[[np.random.Generator], tuple[Tensor, Loss]]


@dataclass(frozen=True)
class StepCost:
    """Median seconds of ONNX Runtime's forward run, of our forward pass with records, of a step."""

    peer: float
    forward: float
    step: float


def _images(count: int) -> Callable[[np.random.Generator], tuple[Tensor, Loss]]:
    def batch(draw: np.random.Generator) -> tuple[Tensor, Loss]:
        x = om.from_numpy(draw.standard_normal((count, 1, 28, 28), np.float32))
        labels = om.from_numpy(draw.integers(0, 10, count))
        return x, lambda logits: F.cross_entropy(logits, labels)

    return batch


def _lines(draw: np.random.Generator) -> tuple[Tensor, Loss]:
    x = om.from_numpy(draw.standard_normal((8, 1, 32, 160), np.float32))
    targets = om.from_numpy(draw.integers(1, 80, (8, 10)))
    steps, lengths = om.full((8,), 40, dtype="int64"), om.full((8,), 10, dtype="int64")
    return x, lambda logp: F.ctc_loss(logp, targets, steps, lengths)


def _texts(draw: np.random.Generator) -> tuple[Tensor, Loss]:
    ids = om.from_numpy(draw.integers(0, 8192, (8, 128)))
    labels = om.from_numpy(draw.integers(0, 2, 8 * 128))
    return ids, lambda logits: F.cross_entropy(logits.flatten(0, 1), labels)


STEPS = (
    StepWorkload("lenet step, batch 32", 3.5, convolutional.lenet, _images(32)),
    StepWorkload("lenet step, batch 128", 3.5, convolutional.lenet, _images(128)),
    StepWorkload("crnn step with ctc, 8 x 160", 4.0, convolutional.Crnn, _lines),
    StepWorkload("encoder6 step, 8 x 128", 3.5, sequential.encoder6, _texts),
)


def training_step(workload: StepWorkload) -> tuple[NnModule, Tensor, Callable[[], float]]:
    """The seeded model, its input, and a function that takes one step and returns the loss."""
    om.manual_seed(0)
    model = workload.build()
    x, loss = workload.batch(np.random.Generator(np.random.PCG64(0)))
    optimizer = AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        optimizer.zero_grad()
        value = loss(model(x))
        value.backward()
        optimizer.step()
        return float(value.item())

    return model, x, step


def _peer(model: NnModule, x: Tensor, threads: int) -> Callable[[], object]:
    traced = model.eval().trace(x, input_names=["x"], verify=False)
    model.train()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Workers that spin between runs would take the time of the engine whose turn it is.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        traced.to_onnx().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {"x": x.numpy()}
    return lambda: session.run(None, feeds)


def step_cost(workload: StepWorkload, threads: int, seconds: float) -> StepCost:
    """The three times, measured in turns for about ``seconds``."""
    model, x, step = training_step(workload)
    runs = (_peer(model, x, threads), lambda: model(x), step)
    set_num_threads(threads)
    times: tuple[list[float], ...] = ([], [], [])
    for run in runs:
        run()
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or time.perf_counter() < end:
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return StepCost(*(statistics.median(taken) for taken in times))
