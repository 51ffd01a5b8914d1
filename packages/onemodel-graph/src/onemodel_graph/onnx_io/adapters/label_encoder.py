"""LabelEncoder with its keys and values in tensors, as lists."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import UnsupportedError

_KINDS = {"int64": "int64s", "float32": "floats", "float64": "floats"}


def lists_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a LabelEncoder without tensors; texts come as tuples.

    Raises:
        UnsupportedError: for tensors of other types.
    """
    found = dict(attributes)
    for name in ("keys", "values", "default"):
        value = found.pop(f"{name}_tensor", None)
        if value is None:
            continue
        if isinstance(value, Array):
            kind = _KINDS.get(value.dtype)
            if kind is None:
                raise UnsupportedError(
                    f"LabelEncoder: {name}_tensor of {value.dtype} is not supported"
                )
            numbers = value.reshape((value.size,)).tolist()
        else:
            kind, numbers = "strings", list(value)
        if name == "default":
            found[f"default_{kind.removesuffix('s')}"] = numbers[0]
        else:
            found[f"{name}_{kind}"] = tuple(numbers)
    return found
