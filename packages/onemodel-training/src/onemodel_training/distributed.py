"""Data-parallel training over MPI: each rank trains on its part of every batch.

Gradients are gathered and summed in the order of the ranks, so the bits of a run depend on the
number of ranks and on nothing else. A communicator is mpi4py's, or anything with its ``rank``,
``size``, ``allgather``, ``Allgather`` and ``Bcast``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

import onemodel_tensors as om
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_training.data import permutation
from onemodel_training.module import NnModule

__all__ = [
    "Communicator",
    "average_gradients",
    "broadcast_buffers",
    "broadcast_state",
    "rank_batches",
]


class Communicator(Protocol):
    """What this module uses of ``mpi4py.MPI.Comm``."""

    @property
    def rank(self) -> int:
        """This process's number."""

    @property
    def size(self) -> int:
        """How many processes there are."""

    def allgather(self, sendobj: Any) -> list[Any]:
        """Every rank's object, in the order of the ranks."""

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Every rank's buffer, in the order of the ranks."""

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Fills the buffer with that of the root."""


def average_gradients(parameters: Iterable[Tensor], communicator: Communicator) -> None:
    """Replaces each gradient by the mean over ranks: ((g₀ + g₁) + g₂ + …) / size.

    Args:
        parameters: the same, in the same order, on every rank. A missing gradient counts as zeros.
        communicator: of the ranks.

    Determinism: summed in rank order, one rounding for each addition.
    """
    by_dtype: dict[str, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.requires_grad:
            by_dtype.setdefault(parameter.dtype, []).append(parameter)
    ranks = communicator.size
    for dtype, members in by_dtype.items():
        with om.no_grad():
            gradients = [
                om.zeros_like(member.detach()) if member.grad is None else member.grad
                for member in members
            ]
            flat = om.cat([gradient.reshape(-1) for gradient in gradients])
            gathered = np.empty((ranks, flat.numel()), flat.numpy().dtype)
            communicator.Allgather(np.ascontiguousarray(flat.numpy()), gathered)
            rows = Array.from_numpy(gathered, copy=False)
            total = rows.select(0, 0)
            add = Kernel("Add")
            for rank in range(1, ranks):
                total = add(total, rows.select(0, rank))
            mean = Tensor(Kernel("Mul")(total, Array.full((), 1.0 / ranks, dtype)))
            parts = mean.split([member.numel() for member in members])
            for member, part in zip(members, parts, strict=True):
                member.grad = part.reshape(tuple(member.shape)).clone()


def _broadcast(tensors: Sequence[Tensor], communicator: Communicator, root: int) -> None:
    with om.no_grad():
        for tensor in tensors:
            buffer = np.array(tensor.detach().numpy(), copy=True)
            communicator.Bcast(buffer, root=root)
            tensor.copy_(om.from_numpy(buffer))


def broadcast_state(module: NnModule, communicator: Communicator, root: int = 0) -> None:
    """Gives every rank the root's parameters and buffers."""
    _broadcast(list(module.state_dict(keep_vars=True).values()), communicator, root)


def broadcast_buffers(module: NnModule, communicator: Communicator, root: int = 0) -> None:
    """Gives every rank the root's buffers, such as running statistics."""
    _broadcast(list(module.buffers()), communicator, root)


def rank_batches(
    count: int, batch_size: int, communicator: Communicator, seed: int = 0
) -> Callable[[int], Sequence[Sequence[int]]]:
    """``batches`` for a DataLoader: this rank's part of every shuffled batch.

    Args:
        count: samples in the dataset.
        batch_size: samples of all ranks together; divisible by their number.
        communicator: of the ranks.
        seed: of the order, the same on every rank. A last batch that is smaller is left out.
    """
    if batch_size < 1 or batch_size % communicator.size:
        raise AttributeValueError(
            f"rank_batches: expected a batch_size that {communicator.size} ranks divide, got "
            f"{batch_size}"
        )
    share = batch_size // communicator.size
    first = communicator.rank * share

    def batches(epoch: int) -> list[list[int]]:
        order = permutation(count, seed, epoch)
        starts = range(0, count - batch_size + 1, batch_size)
        return [order[start + first : start + first + share] for start in starts]

    return batches
