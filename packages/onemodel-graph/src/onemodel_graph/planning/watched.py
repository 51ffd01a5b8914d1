"""Shapes that tell when their extents are read, so that it is known what depends on sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self


class Watched(tuple):  # type: ignore[type-arg]  # noqa: SLOT001 (of a tuple none can be filled)
    """A shape that calls a function when anything but the number of its axes is read."""

    told: Callable[[], None]

    def __new__(cls, shape: tuple[int, ...], told: Callable[[], None]) -> Self:
        """A shape with the extents of another one."""
        made = super().__new__(cls, shape)
        made.told = told
        return made


def _telling(name: str) -> Callable[..., Any]:
    plain = getattr(tuple, name)

    def method(self: Watched, *arguments: Any) -> Any:
        self.told()
        return plain(self, *arguments)

    return method


def _added_behind(self: Watched, before: tuple[Any, ...]) -> tuple[Any, ...]:
    self.told()
    return before + tuple(self)


for _name in (
    "__add__", "__contains__", "__eq__", "__ge__", "__getitem__", "__gt__", "__hash__", "__iter__",
    "__le__", "__lt__", "__mul__", "__ne__", "__repr__", "__rmul__", "count", "index",
):  # fmt: skip
    setattr(Watched, _name, _telling(_name))
Watched.__radd__ = _added_behind  # type: ignore[attr-defined]
