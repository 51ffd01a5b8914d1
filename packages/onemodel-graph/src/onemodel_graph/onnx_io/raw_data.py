"""Large weights of a model file, read past protobuf.

Protobuf copies every weight into a message and again out of it, on top of the file's own bytes. Here
the file is looked through field by field, the large ``raw_data`` of the main graph's initializers is
left out of what protobuf parses, and is read from the file once, into the memory that it stays in.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LEAST_FILE = 1 << 20
"""Smaller files are parsed whole."""
LEAST = 1 << 12
"""Raw data of fewer bytes stays in the message."""
GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
"""Numbers of the fields ``ModelProto.graph``, ``GraphProto.initializer``, ``TensorProto.raw_data``."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class _Strange(Exception):
    """The bytes are not those that a writer of protobuf makes; the parser judges them."""


class RawData:
    """A model file without the large raw data of its initializers, and the means to read that.

    Args:
        path: The model file.

    Attributes:
        message: What protobuf parses.
    """

    def __init__(self, path: Path) -> None:
        self._places: list[tuple[int, int] | None] = []
        self._file: BinaryIO = path.open("rb")
        size = os.fstat(self._file.fileno()).st_size
        self.message = b""
        if size >= LEAST_FILE:
            with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                try:
                    self.message = self._without_weights(data)
                except _Strange:
                    self._places = []
        if not self._places:
            self.message = self._file.read()

    def close(self) -> None:
        """Closes the file; arrays that were read stay."""
        self._file.close()

    def read(self, index: int) -> bytes | None:
        """The raw data of an initializer of the main graph that was left out of the message."""
        place = self._places[index] if index < len(self._places) else None
        if place is None:
            return None
        begin, end = place
        self._file.seek(begin)
        return self._file.read(end - begin)

    def _without_weights(self, data: mmap.mmap) -> bytes:
        parts: list[bytes] = []
        graphs = 0
        for number, wire, start, body, stop in _fields(data, 0, len(data)):
            if number == GRAPH and wire == BYTES:
                graphs += 1
                graph = self._graph(data, body, stop)
                parts += [data[start : start + 1], _varint_bytes(len(graph)), graph]
            else:
                parts.append(data[start:stop])
        if graphs != 1:
            raise _Strange
        return b"".join(parts)

    def _graph(self, data: mmap.mmap, begin: int, end: int) -> bytes:
        parts: list[bytes] = []
        kept = begin
        for number, wire, start, body, stop in _fields(data, begin, end):
            if number != INITIALIZER or wire != BYTES:
                continue
            tensor: list[bytes] = []
            place = None
            for inner, inner_wire, first, inner_body, last in _fields(data, body, stop):
                if inner == RAW_DATA and inner_wire == BYTES and last - inner_body >= LEAST:
                    if place is not None:
                        raise _Strange
                    place = (inner_body, last)
                else:
                    tensor.append(data[first:last])
            self._places.append(place)
            if place is not None:
                joined = b"".join(tensor)
                parts += [
                    data[kept:start],
                    data[start : start + 1],
                    _varint_bytes(len(joined)),
                    joined,
                ]
                kept = stop
        parts.append(data[kept:end])
        return b"".join(parts)


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
    raise _Strange


def _varint_bytes(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, start, start of the content, end) of each field of a message."""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        wire = tag & 7
        body = at
        if wire == VARINT:
            _, at = _varint(data, at, end)
        elif wire == BYTES:
            length, body = _varint(data, at, end)
            at = body + length
        elif wire == FIXED64:
            at += 8
        elif wire == FIXED32:
            at += 4
        else:
            raise _Strange
        if at > end:
            raise _Strange
        yield tag >> 3, wire, start, body, at
