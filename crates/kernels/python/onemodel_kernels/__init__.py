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
    "Array",
    "Kernel",
    "Program",
    "__version__",
    "errors",
    "get_num_threads",
    "isa",
    "set_num_threads",
]
