"""Names of inputs, axes and outputs: what the user asked for, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.extents import Axis

AxisNames = Mapping[int, Any] | Sequence[Any] | None
"""For each axis a name, an :class:`Axis` or None; or a mapping from axis to name."""


def invalid(message: str) -> TraceException:
    """The error of a call that has no meaning."""
    return TraceException(TraceErrorKind.INVALID_USAGE, message)


def checked_name(what: str, name: object, taken: Mapping[str, str]) -> str:
    """A name that is a non-empty text and that nothing else has.

    Args:
        what: What is to be named, for the message.
        name: The name that was given.
        taken: What has each name already.

    Raises:
        TraceException: INVALID_USAGE.
    """
    if not isinstance(name, str) or not name:
        raise invalid(f"{what}: expected a name that is a text and not empty, got {name!r}")
    if name in taken:
        raise invalid(f"{what}: the name {name!r} is used twice, it already names {taken[name]}")
    return name


def axes_of(input_name: str, rank: int, axis_names: AxisNames) -> list[Axis | None]:
    """One :class:`Axis` or None for each axis of an input.

    Raises:
        TraceException: INVALID_USAGE for an axis that the input lacks or a name that is none.
    """
    named: list[Axis | None] = [None] * rank
    if axis_names is None:
        return named
    if isinstance(axis_names, str):
        axis_names = (axis_names,)
    if isinstance(axis_names, Mapping):
        entries: list[tuple[Any, Any]] = list(axis_names.items())
    else:
        if len(axis_names) > rank:
            raise invalid(
                f"input {input_name!r}: expected axis_names for {rank} axes, got {len(axis_names)}"
            )
        entries = list(enumerate(axis_names))
    for axis, entry in entries:
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise invalid(
                f"input {input_name!r}: axis_names has an entry for axis {axis!r}, "
                f"expected one of {-rank} to {rank - 1}"
            )
        if entry is None:
            continue
        if isinstance(entry, str):
            entry = Axis(entry)
        if not isinstance(entry, Axis) or not entry.name:
            raise invalid(
                f"input {input_name!r}, axis {axis}: expected a name, an Axis or None, got {entry!r}"
            )
        position = axis % rank
        if named[position] is not None:
            raise invalid(f"input {input_name!r}: axis {position} is named twice")
        named[position] = entry
    return named


def dimension(extent: Any, symbols: Mapping[str, object]) -> int | str | None:
    """How a graph states an extent: a number, a symbol's name, a formula of symbols."""
    if type(extent) is int:
        return extent
    text: str = extent.expression.text()
    single = extent.expression.monomial
    plain = single is not None and len(single[1]) == 1 and single[1][0].kind == "symbol"
    if plain and single is not None and single[1][0].unit == single[0]:
        return text
    # A formula that reads like another axis's name would claim to be that axis.
    return None if text in symbols else text
