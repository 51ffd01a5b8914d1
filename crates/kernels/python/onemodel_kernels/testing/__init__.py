"""Shared cases of every operator, and the suites that check a kernel, a spec or a layer against them.

A family writes its cases in ``cases/<family>.py``; whoever implements or consumes operators runs the
suites of :mod:`onemodel_kernels.testing.suites` over them.
"""

from onemodel_kernels.testing.case import Bound, Case, Outcome, bound
from onemodel_kernels.testing.discovery import FAMILIES, cases_of, every_case

INTERFACE_VERSION = (1, 0)
__all__ = [
    "FAMILIES",
    "INTERFACE_VERSION",
    "Bound",
    "Case",
    "Outcome",
    "bound",
    "cases_of",
    "every_case",
]
