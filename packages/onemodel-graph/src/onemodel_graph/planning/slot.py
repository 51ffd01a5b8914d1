"""What the planner knows of a value: its type, and where its elements come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onemodel_kernels import Array, Kernel

Shape = tuple[int, ...]


class Slot:
    """One tensor of a plan.

    Attributes:
        dtype: Its element type.
        shape: Its concrete shape.
        array: Its elements, when they are known at plan time.
        permanent: The array lives as long as the session, so packed forms of it are shared.
        base: For a view, the slot whose memory it shows (never a view itself), contiguous.
        offset: For a view, elements from the base's first one.
    """

    __slots__ = ("array", "base", "dtype", "offset", "permanent", "shape")

    def __init__(self, dtype: str, shape: Shape, array: Array | None = None) -> None:
        self.dtype = dtype
        self.shape = shape
        self.array = array
        self.permanent = False
        self.base: Slot | None = None
        self.offset = 0

    @property
    def root(self) -> Slot:
        """The slot that owns the memory."""
        return self if self.base is None else self.base

    def __repr__(self) -> str:
        kind = "constant" if self.array is not None else "view" if self.base else "run time"
        return f"{self.dtype}{list(self.shape)} ({kind})"


@dataclass(eq=False, slots=True)
class Items:
    """A sequence whose length is known at plan time; ``None`` entries stand for absent optionals."""

    slots: list[Any]
    dtype: str | None = None


Known = Slot | Items | None
"""What the planner holds for a value of the graph."""


@dataclass(eq=False, slots=True)
class Call:
    """One kernel call of a plan."""

    kernel: Kernel
    inputs: list[Slot | None]
    outputs: list[Slot]
    label: str


def constant(array: Array, permanent: bool = False) -> Slot:
    """A slot whose elements are known."""
    slot = Slot(array.dtype, tuple(array.shape), array)
    slot.permanent = permanent
    return slot


def flat(known: Known) -> list[Slot]:
    """The tensors inside a value."""
    if known is None:
        return []
    if isinstance(known, Slot):
        return [known]
    return [slot for item in known.slots for slot in flat(item)]


def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides in elements."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def count(shape: Shape) -> int:
    """The number of elements."""
    n = 1
    for extent in shape:
        n *= extent
    return n


SIZES = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2,
    "uint32": 4, "int32": 4, "float32": 4, "uint64": 8, "int64": 8, "float64": 8,
}  # fmt: skip


def nbytes(slot: Slot) -> int:
    """The bytes of a slot's elements."""
    return count(slot.shape) * SIZES[slot.dtype]
