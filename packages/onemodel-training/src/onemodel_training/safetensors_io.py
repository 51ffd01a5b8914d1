"""The safetensors file format: eight bytes of header length, a JSON header, the tensors' bytes.

Files are written with tensors in the order given and equal contents give equal bytes. Reading
maps the file and copies nothing until a tensor is used.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import OneModelError
from onemodel_kernels.saving import write_atomically
from onemodel_tensors import Tensor

__all__ = ["SafetensorsError", "load_safetensors", "save_safetensors"]

_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_WIDTHS = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
_LARGEST_HEADER = 100 * 1024 * 1024


class SafetensorsError(OneModelError, ValueError):
    """A file that is not valid safetensors."""


def save_safetensors(
    tensors: Mapping[str, Tensor], path: str | Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors to a file, replacing it in one step and flushed to the disk.

    Args:
        tensors: by name; any dtype of this library.
        path: of the file; one that is there stays whole until the new one is complete.
        metadata: text that the header carries.
    """
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    offset = 0
    for name, tensor in tensors.items():
        if name == "__metadata__":
            raise SafetensorsError("save_safetensors: __metadata__ is not a name for a tensor")
        size = tensor._array.nbytes
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor._array.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)

    def chunks() -> Iterator[bytes]:
        yield len(text).to_bytes(8, "little") + text
        for tensor in tensors.values():
            yield tensor._array.contiguous().tobytes()

    write_atomically(path, chunks())


def _header(path: Path, data: mmap.mmap | bytes) -> tuple[dict[str, Any], int]:
    if len(data) < 8:
        raise SafetensorsError(f"{path}: expected at least 8 bytes, got {len(data)}")
    length = int.from_bytes(data[:8], "little")
    if length > min(_LARGEST_HEADER, len(data) - 8):
        raise SafetensorsError(
            f"{path}: expected a header inside the file, got a header length of {length}"
        )
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
    except (ValueError, RecursionError) as error:
        raise SafetensorsError(f"{path}: the header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise SafetensorsError(f"{path}: expected a JSON object as header")
    return header, 8 + length


def _entry(path: Path, name: str, entry: Any, room: int) -> tuple[str, tuple[int, ...], int]:
    try:
        kind, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (TypeError, KeyError, ValueError) as error:
        raise SafetensorsError(f"{path}, tensor {name!r}: malformed header entry") from error
    if kind not in _DTYPES:
        raise SafetensorsError(f"{path}, tensor {name!r}: unknown dtype {kind!r}")
    numbers = (*shape, start, end)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise SafetensorsError(f"{path}, tensor {name!r}: expected sizes of 0 or more")
    if end > room or end - start != math.prod(shape) * _WIDTHS[kind]:
        raise SafetensorsError(
            f"{path}, tensor {name!r}: bytes {start} to {end} do not fit shape {shape} of {kind} "
            f"in {room} bytes of data"
        )
    return _DTYPES[kind], shape, start


def load_safetensors(path: str | Path) -> dict[str, Tensor]:
    """Reads all tensors of a file; they are read-only views of the mapped file.

    Raises:
        SafetensorsError: naming what in the file is malformed.
        OSError: when the file cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    header, start = _header(path, data)
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, offset = _entry(path, name, entry, len(data) - start)
        tensors[name] = Tensor(Array.from_buffer(data, dtype, shape, offset=start + offset))
    return tensors
