"""Batches of sequences of several lengths: padded, packed, and back.

A packed batch keeps the padded tensor and the lengths: recurrent layers stop at each length, and a
trace passes the lengths on to the graph's recurrent nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import Tensor

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
]


class PackedSequence:
    """A padded batch whose sequences end at their own lengths; made by :func:`pack_padded_sequence`.

    Attributes:
        padded: (T, N, …), time first.
        lengths: (N) int64.
    """

    __slots__ = ("lengths", "padded")

    def __init__(self, padded: Tensor, lengths: Tensor) -> None:
        self.padded = padded
        self.lengths = lengths

    @property
    def data(self) -> Tensor:
        """The elements that count, (sum of the lengths, …): step by step, the longest sequence first."""
        order = self.lengths.argsort(descending=True)
        padded = self.padded.index_select(1, order)
        counts = om.arange(padded.shape[0]).unsqueeze(1) < self.lengths[order].unsqueeze(0)
        return padded[counts]

    @property
    def batch_sizes(self) -> Tensor:
        """How many sequences have each step, (longest length), int64."""
        steps = om.arange(int(self.lengths.max())).unsqueeze(1)
        return (steps < self.lengths.unsqueeze(0)).sum(1)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same in another dtype."""
        return PackedSequence(self.padded.to(*args, **kwargs), self.lengths)

    def __repr__(self) -> str:
        return f"PackedSequence(padded={tuple(self.padded.shape)}, lengths={self.lengths})"


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Says where the sequences of a padded batch end.

    Args:
        input: (T, N, …), or (N, T, …) with ``batch_first``.
        lengths: (N) integers, a tensor or a sequence, from 1 to T.
        batch_first: whether the batch is the first axis.
        enforce_sorted: accepted for compatibility: any order will do.

    Raises:
        ShapeError: there is not one length for each sequence.
        AttributeValueError: a length is out of range. Lengths that a trace made are not looked at.
    """
    if input.ndim < 2:
        raise ShapeError(f"pack_padded_sequence: expected (T, N, …), got {tuple(input.shape)}")
    padded = input.transpose(0, 1) if batch_first else input
    counts = lengths if isinstance(lengths, Tensor) else om.tensor(list(lengths), dtype="int64")
    counts = counts.to("int64")
    steps, batch = padded.detach()._array.shape[:2]
    if counts.ndim != 1 or counts.detach()._array.shape[0] != batch:
        raise ShapeError(
            f"pack_padded_sequence: expected {batch} lengths, got {tuple(counts.shape)}"
        )
    if counts._asked() is None:
        listed = counts.tolist()
        if any(not 1 <= count <= steps for count in listed):
            raise AttributeValueError(
                f"pack_padded_sequence: expected lengths from 1 to {steps}, got {listed}"
            )
    return PackedSequence(padded, counts)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch and the lengths of a packed one.

    Args:
        sequence: from :func:`pack_padded_sequence` or a recurrent layer.
        batch_first: whether the batch comes first in the result.
        padding_value: what stands past each length.
        total_length: the extent of the time axis; as it was when packed if None, which is PyTorch's
            extent wherever the batch's longest sequence reaches the end.

    Raises:
        AttributeValueError: ``total_length`` is below the packed extent.
    """
    padded, lengths = sequence.padded, sequence.lengths
    steps = padded.shape[0]
    if total_length is not None and total_length < steps:
        raise AttributeValueError(
            f"pad_packed_sequence: expected total_length of {steps} or more, got {total_length}"
        )
    there = om.arange(steps).unsqueeze(1) < lengths.unsqueeze(0)
    there = there.reshape(*there.shape, *[1] * (padded.ndim - 2))
    padded = om.where(there, padded, padding_value)
    if total_length is not None and total_length > steps:
        tail = padded.new_full((total_length - steps, *padded.shape[1:]), padding_value)
        padded = om.cat([padded, tail], 0)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (Tᵢ, …) as one batch (T, N, …), the shorter ones filled up.

    Raises:
        ShapeError: there are none, or their other axes differ.
        AttributeValueError: another side than left or right.
    """
    listed = list(sequences)
    if not listed or any(t.ndim < 1 or t.shape[1:] != listed[0].shape[1:] for t in listed):
        raise ShapeError(
            "pad_sequence: expected at least one sequence, all of one shape but for the first axis, got "
            f"{[tuple(t.shape) for t in listed]}"
        )
    if padding_side not in ("left", "right"):
        raise AttributeValueError(
            f"pad_sequence: expected padding_side left or right, got {padding_side!r}"
        )
    longest = max(t.shape[0] for t in listed)
    filled = []
    for tensor in listed:
        missing = longest - tensor.shape[0]
        tail = tensor.new_full((missing, *tensor.shape[1:]), padding_value)
        parts = [tensor, tail] if padding_side == "right" else [tail, tensor]
        filled.append(om.cat(parts, 0) if missing else tensor)
    return om.stack(filled, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences (Tᵢ, …) of a padded batch."""
    padded = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(count)] for row, count in zip(padded, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (Tᵢ, …) as a packed batch."""
    return pack_padded_sequence(pad_sequence(sequences), [t.shape[0] for t in sequences])
