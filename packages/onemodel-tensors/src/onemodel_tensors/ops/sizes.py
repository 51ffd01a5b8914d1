"""Sizes that users pass: ints, tensors of one integer, or symbolic sizes."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.recording import SymbolicSize

__all__ = ["axes_of", "axis_of", "example", "examples", "listed", "pair", "size_of", "sizes_of"]


def size_of(value: Any) -> Any:
    """One size: an int, or a symbolic size of a trace that still records."""
    if type(value) is int:
        return value
    if isinstance(value, SymbolicSize):
        return value if value.recorder is not None else value.example
    return operator.index(value)


def sizes_of(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes given as ``f(2, 3)`` or as ``f((2, 3))``."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    return tuple([size_of(size) for size in sizes])


def listed(
    sizes: tuple[Any, ...], given: dict[str, Any], keyword: str, name: str
) -> tuple[Any, ...]:
    """Sizes or axes given one by one or in one sequence, or by keyword.

    Raises:
        TypeError: another keyword, or both.
    """
    if not given:
        return sizes
    if set(given) != {keyword} or sizes:
        raise TypeError(
            f"{name}: expected {keyword} either by position or by keyword, got {', '.join(given)}"
        )
    return (given[keyword],)


def example(size: Any) -> int:
    """The number that a size is in this run."""
    return size.example if isinstance(size, SymbolicSize) else size


def examples(sizes: Iterable[Any]) -> tuple[int, ...]:
    """The numbers that sizes are in this run."""
    return tuple([s if type(s) is int else example(s) for s in sizes])


def axis_of(axis: int, rank: int, name: str) -> int:
    """An axis counted from the first one.

    Raises:
        ShapeError: there is no such axis. A 0-d tensor counts as having one.
    """
    axis = operator.index(axis)
    count = rank or 1
    if not -count <= axis < count:
        raise ShapeError(
            f"{name}: expected an axis in [{-count}, {count}) for a tensor of {rank} axes, got {axis}"
        )
    return axis + count if axis < 0 else axis


def axes_of(axes: Any, rank: int, name: str) -> tuple[int, ...]:
    """Axes counted from the first one and sorted; all for ``None`` and for none given.

    Raises:
        ShapeError: there is no such axis, or one is named twice.
    """
    if axes is None:
        return tuple(range(rank))
    listed = axes if isinstance(axes, (tuple, list)) else (axes,)
    if not listed:
        return tuple(range(rank))
    found = sorted(axis_of(axis, rank, name) for axis in listed)
    if len(set(found)) != len(found):
        raise ShapeError(f"{name}: expected distinct axes, got {axes}")
    return tuple(found) if rank else ()


def pair(value: Any, count: int, name: str) -> tuple[int, ...]:
    """One int for each of ``count`` spatial axes, given as one for all or one for each.

    Raises:
        AttributeValueError: another number of them is given.
    """
    if isinstance(value, (tuple, list)):
        numbers = tuple([operator.index(v) for v in value])
        if len(numbers) == 1:
            return numbers * count
        if len(numbers) != count:
            raise AttributeValueError(f"{name}: expected one int or {count} of them, got {value}")
        return numbers
    return (operator.index(value),) * count
