"""The form in which a graph holds an initializer of strings: the bytes of a JSON list."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError


def packed(texts: Sequence[str]) -> Array:
    """Texts as an array of bytes, as a graph holds an initializer of strings."""
    data = json.dumps(list(texts)).encode()
    return Array.from_buffer(data, "uint8", (len(data),))


def unpacked(array: Array) -> list[str]:
    """The texts of :func:`packed`."""
    found: list[str] = json.loads(array.tobytes())
    return found


def check_packed(array: Array, count: int, where: str) -> None:
    """Raises ``AttributeValueError`` unless an array holds so many texts as :func:`packed` does."""
    if array.dtype == "uint8" and array.ndim == 1:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(array.tobytes())
            texts = isinstance(found, list) and all(isinstance(text, str) for text in found)
            if texts and len(found) == count:
                return
    raise AttributeValueError(f"{where}: expected {count} texts, as the bytes of a JSON list")
