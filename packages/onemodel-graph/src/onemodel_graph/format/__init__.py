"""The library's own file format, version 1."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onemodel_graph.format.v1 import read_v1, save_v1

HEADER_LIMIT = 100_000_000
"""Bytes of header that safetensors readers accept."""
__all__ = ["HEADER_LIMIT", "is_v1", "read_v1", "save_v1"]


def is_v1(head: bytes) -> bool:
    """Whether a file that starts with these (at least 9) bytes is a safetensors file."""
    return len(head) >= 9 and head[8:9] == b"{" and struct.unpack("<Q", head[:8])[0] <= HEADER_LIMIT


def __getattr__(name: str) -> object:
    # The reader is imported where a file has the format: ONNX files are told apart without it.
    if name not in ("read_v1", "save_v1"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from onemodel_graph.format import v1

    return getattr(v1, name)
