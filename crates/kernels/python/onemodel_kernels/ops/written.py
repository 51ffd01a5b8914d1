"""Constants that a decomposition writes number by number: how many there may be."""

from __future__ import annotations

from math import prod

from onemodel_kernels.errors import MemoryLimitError

MOST = 1 << 25
"""Numbers that are written for one constant: beyond it they take gigabytes and many seconds."""


def require_writable(what: str, *extents: int) -> None:
    """Raises unless a constant of these extents is small enough to be written.

    Args:
        what: What the extents are of, for the error.
        extents: Static sizes; negative ones count as 0.

    Raises:
        MemoryLimitError: naming the extents.
    """
    if prod(max(extent, 0) for extent in extents) > MOST:
        shown = " by ".join(map(str, extents))
        raise MemoryLimitError(f"{what}: expected at most {MOST} numbers, got {shown}")
