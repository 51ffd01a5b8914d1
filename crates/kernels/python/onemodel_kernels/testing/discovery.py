"""Finds the cases of all families."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from onemodel_kernels.testing import cases
from onemodel_kernels.testing.case import Case

FAMILIES = tuple(sorted(entry.name for entry in pkgutil.iter_modules(cases.__path__)))
"""The modules of ``onemodel_kernels.testing.cases``; each has a tuple or list ``CASES``."""


@cache
def cases_of(family: str) -> tuple[Case, ...]:
    """The cases of a family; their names are unique in it."""
    found = tuple(import_module(f"{cases.__name__}.{family}").CASES)
    names = [case.name for case in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"cases of {family}: the names {sorted(twice)} are used twice")
    return found


def every_case() -> list[tuple[str, Case]]:
    """(family, case) of all families."""
    return [(family, case) for family in FAMILIES for case in cases_of(family)]
