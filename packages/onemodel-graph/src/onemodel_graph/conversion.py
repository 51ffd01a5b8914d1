"""What users hand in as arrays, and arrays as users get them."""

from __future__ import annotations

import sys
from typing import Any

from onemodel_graph.narrow import held
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, DtypeError
from onemodel_kernels.ops.narrow import HELD


def require_dtype(array: Array, dtype: str | None, name: str) -> None:
    """Raises unless an input may have the dtype of an array that is not the declared one."""
    if dtype not in (None, "sequence", "optional"):
        raise DtypeError(f"input {name!r}: expected {dtype}, got {array.dtype}; convert it first")


def to_array(given: Any, dtype: str | None, name: str) -> Any:
    """An input as an array, a list of arrays for a sequence or ``None`` for an absent optional.

    Args:
        given: A numpy array, numbers, or what has the buffer protocol, DLPack or ``__array__``.
        dtype: The declared type.
        name: The input's name.
    """
    if dtype in HELD:
        return _narrow(given, dtype, name)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and type(given) is numpy.ndarray:
        return _from_numpy(given, name)
    if given is None:
        if dtype == "optional":
            return None
        raise AttributeValueError(f"input {name!r}: expected an array, got None")
    if dtype in ("sequence", "optional") and isinstance(given, list | tuple):
        return [e if type(e) is Array else to_array(e, None, name) for e in given]
    import numpy

    if isinstance(given, numpy.ndarray):
        return _from_numpy(given, name)
    if hasattr(given, "__dlpack__") and not hasattr(given, "__array__"):
        return Array.from_dlpack(given)
    known = dtype if dtype not in (None, "sequence", "optional", "bfloat16") else None
    if isinstance(given, bool | int | float | list | tuple):
        return _from_numpy(numpy.asarray(given, dtype=known), name)
    try:
        array = numpy.asarray(given)
    except (TypeError, ValueError) as error:
        raise DtypeError(
            f"input {name!r}: {type(given).__name__} is not an array: {error}"
        ) from None
    return _from_numpy(array, name)


def _narrow(given: Any, dtype: str, name: str) -> Array:
    """The numbers of a narrow input, an array of ml_dtypes."""
    import numpy

    array: Array = Array.from_numpy(held(numpy.asarray(given), dtype, f"input {name!r}"))
    return array


def _from_numpy(given: Any, name: str) -> Array:
    try:
        return Array.from_numpy(given, copy=False)
    except DtypeError:
        raise DtypeError(
            f"input {name!r}: expected an array of numbers or bools, got dtype {given.dtype}; "
            "convert it first"
        ) from None


def to_numpy(entry: Any) -> Any:
    """An output as numpy has it."""
    if isinstance(entry, list):
        return [to_numpy(part) for part in entry]
    return entry if entry is None else entry.numpy()
