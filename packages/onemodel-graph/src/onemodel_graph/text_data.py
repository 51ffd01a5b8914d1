"""The form in which a graph holds an initializer of strings: the bytes of a JSON list."""

from __future__ import annotations

import json
from collections.abc import Sequence

from onemodel_kernels import Array


def packed(texts: Sequence[str]) -> Array:
    """Texts as an array of bytes, as a graph holds an initializer of strings."""
    data = json.dumps(list(texts)).encode()
    return Array.from_buffer(data, "uint8", (len(data),))


def unpacked(array: Array) -> list[str]:
    """The texts of :func:`packed`."""
    found: list[str] = json.loads(array.tobytes())
    return found
