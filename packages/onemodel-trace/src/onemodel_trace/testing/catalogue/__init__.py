"""The cases, one module a family."""

from functools import cache
from importlib import import_module

from onemodel_trace.testing.case import Case

FAMILIES = (
    "elementwise",
    "binary",
    "reductions",
    "shapes",
    "indexing",
    "products",
    "spatial",
    "normalization",
    "losses",
    "methods",
)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of the families."""
    found: list[Case] = []
    for family in FAMILIES:
        found.extend(import_module(f"{__name__}.{family}").CASES)
    return tuple(found)
