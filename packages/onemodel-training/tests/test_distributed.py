"""Data-parallel training: the bits depend on the number of ranks alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_training import (
    SGD,
    DataLoader,
    Linear,
    ReLU,
    Sequential,
    TensorDataset,
    Trainer,
    average_gradients,
    broadcast_state,
    manual_seed,
    rank_batches,
)


class Meeting:
    """What the ranks of one process share."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=60)
        self.slots: list[Any] = [None] * size


class ThreadRank:
    """One of several ranks that are threads of this process."""

    def __init__(self, rank: int, meeting: Meeting) -> None:
        self.rank, self.size, self.meeting = rank, len(meeting.slots), meeting

    def allgather(self, sendobj: Any) -> list[Any]:
        self.meeting.slots[self.rank] = sendobj
        self.meeting.barrier.wait()
        found = list(self.meeting.slots)
        self.meeting.barrier.wait()
        return found

    def Allgather(self, sendbuf: np.ndarray, recvbuf: np.ndarray) -> None:
        recvbuf[...] = np.stack(self.allgather(sendbuf))

    def Bcast(self, buf: np.ndarray, root: int = 0) -> None:
        buf[...] = self.allgather(buf.copy())[root]


def on_ranks(size: int, work: Callable[[ThreadRank], Any]) -> list[Any]:
    meeting = Meeting(size)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadRank(rank, meeting))
        except BaseException:
            meeting.barrier.abort()
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def digest(model: Sequential) -> str:
    found = hashlib.sha256()
    for tensor in model.state_dict().values():
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def data() -> TensorDataset:
    x = om.rand(40, 3, generator=om.Generator(4))
    return TensorDataset(x, (x * x).sum(1, keepdim=True))


def models(count: int) -> list[Sequential]:
    manual_seed(3)
    return [Sequential(Linear(3, 8), ReLU(), Linear(8, 1)) for _ in range(count)]


def loss(model: Sequential, batch: Any) -> om.Tensor:
    return om.functional.mse_loss(model(batch[0]), batch[1])


def test_gradients_are_summed_in_the_order_of_the_ranks() -> None:
    numbers = [[1e8, 1.0], [1.0, 2.0], [-1e8, 3.0]]

    def work(comm: ThreadRank) -> list[float]:
        weight = om.zeros(2).requires_grad_()
        unused = om.zeros(1).requires_grad_()
        weight.grad = om.tensor(numbers[comm.rank])
        average_gradients([weight, unused], comm)
        assert unused.grad is not None
        assert unused.grad.tolist() == [0.0]
        return weight.grad.tolist()

    third = np.float32(1.0 / 3.0)
    wanted = [float(((np.float32(1e8) + np.float32(1)) - np.float32(1e8)) * third)]
    wanted.append(float(np.float32(6.0) * third))
    assert on_ranks(3, work) == [wanted] * 3


def test_every_rank_ends_with_the_same_weights() -> None:
    made = models(2)

    def work(comm: ThreadRank) -> str:
        model = made[comm.rank]
        loader = DataLoader(data(), batches=rank_batches(40, 8, comm, seed=1))
        trainer = Trainer(
            model, SGD(model.parameters(), lr=0.1), loss, progress=False, communicator=comm
        )
        trainer.fit(loader, epochs=3)
        return digest(model)

    found = on_ranks(2, work)
    assert found[0] == found[1]

    (alone,) = models(1)
    optimizer = SGD(alone.parameters(), lr=0.1)
    halves = [rank_batches(40, 8, ThreadRank(rank, Meeting(2)), seed=1) for rank in range(2)]
    table = data()
    for epoch in range(3):
        for parts in zip(halves[0](epoch), halves[1](epoch), strict=True):
            gradients = []
            for part in parts:
                optimizer.zero_grad()
                index = om.tensor(list(part))
                loss(alone, [tensor[index] for tensor in table.tensors]).backward()
                gradients.append([parameter.grad for parameter in alone.parameters()])
            for parameter, one, two in zip(alone.parameters(), *gradients, strict=True):
                parameter.grad = (one + two) * 0.5
            optimizer.step()
    assert digest(alone) == found[0]


def test_the_root_gives_its_state() -> None:
    made = models(3)
    wanted = digest(made[0])

    def work(comm: ThreadRank) -> str:
        broadcast_state(made[comm.rank], comm)
        return digest(made[comm.rank])

    assert on_ranks(3, work) == [wanted] * 3


def test_batches_are_shared_out() -> None:
    ranks = [ThreadRank(rank, Meeting(2)) for rank in range(2)]
    parts = [rank_batches(10, 4, rank, seed=2)(0) for rank in ranks]
    assert [len(part) for part in parts] == [2, 2]
    seen = [index for part in parts for batch in part for index in batch]
    assert len(set(seen)) == 8
    with pytest.raises(AttributeValueError, match="2 ranks divide, got 5"):
        rank_batches(10, 5, ranks[0])


SCRIPT = """
import hashlib
from mpi4py import MPI
import onemodel_tensors as om
from onemodel_training import *

comm = MPI.COMM_WORLD
manual_seed(7 + comm.rank)
model = Sequential(Linear(3, 8), ReLU(), Linear(8, 1))
x = om.rand(40, 3, generator=Generator(4))
table = TensorDataset(x, (x * x).sum(1, keepdim=True))
loader = DataLoader(table, batches=rank_batches(40, 8, comm, seed=1))
loss = lambda model, batch: om.functional.mse_loss(model(batch[0]), batch[1])
trainer = Trainer(
    model, SGD(model.parameters(), lr=0.1), loss, progress=False, communicator=comm
)
trainer.fit(loader, epochs=3)
digest = hashlib.sha256(b"".join(t.numpy().tobytes() for t in model.state_dict().values()))
digests = comm.gather(digest.hexdigest())
if comm.rank == 0:
    print(comm.size, *digests)
"""
# Open MPI refuses root, and more ranks than cores, unless told so; the latter has one name in version
# 4 and another in version 5. MPICH needs none of these.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed")
def test_two_processes_over_mpi(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = ["mpirun", "-n", "2", sys.executable, str(script)]
    found = []
    for _ in range(2):
        run = subprocess.run(
            command, env={**os.environ, **MPI_ENVIRONMENT}, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        size, *digests = run.stdout.split()
        # An mpirun of another MPI than mpi4py's starts two worlds of one rank each.
        assert size == "2", run.stdout
        found.append(digests)
    assert len(found[0]) == 2
    assert len({*found[0], *found[1]}) == 1
