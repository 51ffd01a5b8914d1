"""Arrays, deterministic kernels, operator facts and the plan executor of OneModel.

>>> from onemodel_kernels import Array, Kernel
>>> x = Array.full((2, 3), 2.0, "float32")
>>> Kernel("ReduceSum", axes=(1,), keepdims=0)(x).tolist()
[6.0, 6.0]
>>> Kernel("Transpose", perm=(1, 0)).infer([("float32", (2, 3))])
[('float32', (3, 2))]
"""

from onemodel_kernels import errors
from onemodel_kernels._native import (
    Array,
    Kernel,
    Outline,
    Program,
    __version__,
    cached_bytes,
    get_num_threads,
    isa,
    release_cached,
    set_num_threads,
)

__all__ = [
    "INTERFACE_VERSION",
    "Array",
    "Kernel",
    "Outline",
    "Program",
    "__version__",
    "cached_bytes",
    "errors",
    "get_num_threads",
    "isa",
    "release_cached",
    "set_num_threads",
]

INTERFACE_VERSION = (1, 7)
"""The version of the interface kernels.array: ``(major, minor)``, see :mod:`onemodel_kernels.interfaces`."""
