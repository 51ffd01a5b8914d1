"""Arrays, deterministic kernels, operator facts and the plan executor of OneModel."""

from onemodel_kernels import errors
from onemodel_kernels._native import (
    Array,
    Kernel,
    Program,
    __version__,
    get_num_threads,
    isa,
    set_num_threads,
)

__all__ = [
    "INTERFACE_VERSION",
    "Array",
    "Kernel",
    "Program",
    "__version__",
    "errors",
    "get_num_threads",
    "isa",
    "set_num_threads",
]

INTERFACE_VERSION = (1, 1)
"""The version of the interface kernels.array: ``(major, minor)``, see :mod:`onemodel_kernels.interfaces`."""
