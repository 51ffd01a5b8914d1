"""Tensors of a file as arrays, external data included, and back."""

from __future__ import annotations

import array
import math
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onemodel_graph.narrow import BITS, packed, packed_size, unpacked
from onemodel_graph.onnx_io.types import ARRAYS, dtype_name, dtype_number
from onemodel_graph.text_data import packed as packed_texts
from onemodel_graph.text_data import unpacked as unpacked_texts
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, BoundsError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from onnx import TensorProto

from onemodel_graph.planning.slot import SIZES

TYPED = {
    "float32": ("float_data", "f"), "float64": ("double_data", "d"), "int64": ("int64_data", "q"),
    "uint64": ("uint64_data", "Q"), "uint32": ("uint64_data", "I"), "int32": ("int32_data", "i"),
    "int16": ("int32_data", "h"), "uint16": ("int32_data", "H"), "int8": ("int32_data", "b"),
    "uint8": ("int32_data", "B"), "bool": ("int32_data", "B"), "float16": ("int32_data", "H"),
    "bfloat16": ("int32_data", "H"),
}  # fmt: skip
"""Where a message holds numbers that are not raw data, and how wide each is stored."""


class ExternalData:
    """Reads external data below the folder of the model, mapped into memory once for each file.

    Args:
        folder: The model's folder; ``None`` for a model from bytes, which cannot have any.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder.resolve()
        self._maps: dict[Path, mmap.mmap] = {}

    def read(self, tensor: TensorProto, dtype: str, shape: tuple[int, ...], size: int) -> Array:
        """The array of a tensor whose bytes are in a file of their own."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        where = f"initializer {tensor.name!r}"
        if self._folder is None:
            raise AttributeValueError(
                f"{where}: its data is in the file {entries.get('location')!r}; load the model by its path"
            )
        path = self._path(entries.get("location", ""), where)
        offset = _whole(entries.get("offset", "0"), "offset", where)
        length = _whole(entries.get("length", str(size)), "length", where)
        if length != size:
            raise ShapeError(f"{where}: {length} bytes of external data, {size} are needed")
        if size == 0:
            return Array.from_buffer(b"", dtype, shape)
        mapped = self._maps.get(path)
        if mapped is None:
            try:
                with path.open("rb") as file:
                    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise AttributeValueError(f"{where}: cannot read {path.name!r}: {error}") from None
            self._maps[path] = mapped
        if offset < 0 or offset + size > len(mapped):
            raise BoundsError(
                f"{where}: bytes {offset} to {offset + size} of {path.name!r}, which has {len(mapped)}"
            )
        if offset % SIZES[dtype]:
            return Array.from_buffer(mapped[offset : offset + size], dtype, shape)
        return Array.from_buffer(mapped, dtype, shape, offset)

    def _path(self, location: str, where: str) -> Path:
        assert self._folder is not None
        parts = Path(location).parts
        if not location or os.path.isabs(location) or ".." in parts:
            raise AttributeValueError(
                f"{where}: external data at {location!r}; it must be below the model's folder"
            )
        try:
            path = (self._folder / location).resolve()
        except (OSError, ValueError) as error:
            raise AttributeValueError(
                f"{where}: external data at {location!r:.200}: {error}"
            ) from None
        if not path.is_relative_to(self._folder):
            raise AttributeValueError(
                f"{where}: external data at {location!r} leaves the model's folder"
            )
        return path


def _whole(text: str, what: str, where: str) -> int:
    if not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise AttributeValueError(
            f"{where}: expected the {what} of its external data to be a number, got {text!r:.60}"
        )
    return int(text)


def to_array(tensor: TensorProto, external: ExternalData, raw: bytes | None = None) -> Array:
    """The array of a tensor; raw and external data are not copied.

    Args:
        tensor: The tensor.
        external: Where external data is read.
        raw: Its raw data, where that was left out of the message.

    Raises:
        UnsupportedError: for element types that arrays do not hold.
        ShapeError: when the data does not fit the shape.
    """
    dtype = dtype_name(tensor.data_type)
    where = f"initializer {tensor.name!r}"
    shape = tuple(tensor.dims)
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"{where}: its shape {shape} has a negative extent")
    if dtype == "string":
        if len(tensor.string_data) != math.prod(shape):
            raise ShapeError(
                f"{where}: {len(tensor.string_data)} strings, but its shape {shape} needs "
                f"{math.prod(shape)}"
            )
        return packed_texts([t.decode("utf-8", "surrogateescape") for t in tensor.string_data])
    if dtype in BITS:
        return _narrow(tensor, external, raw, dtype, shape, where)
    if dtype not in ARRAYS:
        raise UnsupportedError(f"{where}: elements of type {dtype} are not supported")
    elements = 1
    for extent in shape:
        elements *= extent
    size = elements * SIZES[dtype]
    if tensor.data_location == tensor.EXTERNAL:
        return external.read(tensor, dtype, shape, size)
    if raw is not None or tensor.HasField("raw_data"):
        data = tensor.raw_data if raw is None else raw
        if len(data) != size:
            raise ShapeError(f"{where}: {len(data)} bytes, but its shape {shape} needs {size}")
        return Array.from_buffer(data, dtype, shape)
    field, code = TYPED[dtype]
    numbers = getattr(tensor, field)
    if len(numbers) != elements:
        raise ShapeError(f"{where}: {len(numbers)} numbers, but its shape {shape} needs {elements}")
    try:
        packed = array.array(code, map(bool, numbers) if dtype == "bool" else numbers)
    except OverflowError as error:
        raise ShapeError(f"{where}: a number does not fit {dtype}: {error}") from None
    return Array.from_buffer(packed.tobytes(), dtype, shape)


def _narrow(
    tensor: TensorProto,
    external: ExternalData,
    raw: bytes | None,
    dtype: str,
    shape: tuple[int, ...],
    where: str,
) -> Array:
    """The numbers of elements of 8 bits or fewer: raw, beside the model, or a byte in each int32."""
    size = packed_size(dtype, math.prod(shape))
    data: Any
    if tensor.data_location == tensor.EXTERNAL:
        data = external.read(tensor, "uint8", (size,), size)
    elif raw is not None or tensor.HasField("raw_data"):
        data = tensor.raw_data if raw is None else raw
    else:
        data = bytes(number & 255 for number in tensor.int32_data)
    try:
        return unpacked(bytes(data), dtype, shape)
    except ShapeError as error:
        raise ShapeError(f"{where}: {error}") from None


def stored_bytes(values: Array, dtype: str | None = None) -> bytes:
    """The elements as ONNX stores them.

    Args:
        values: The array.
        dtype: The element type, where it is one of 8 bits or fewer that the array holds.
    """
    return packed(values, dtype) if dtype in BITS else values.tobytes()


def to_proto(
    values: Array,
    name: str,
    dtype: str | None = None,
    shape: Sequence[int | str | None] | None = None,
) -> TensorProto:
    """A tensor with the array's elements as raw data, or with the texts that it stands for.

    Args:
        values: The array.
        name: The tensor's name.
        dtype: As in :func:`stored_bytes`, or ``"string"``.
        shape: The shape of texts.
    """
    from onemodel_graph.onnx_io.messages import TensorProto

    if dtype == "string":
        return text_proto(unpacked_texts(values), name, shape)
    return TensorProto(
        dims=values.shape,
        data_type=dtype_number(dtype if dtype in BITS else values.dtype),
        name=name,
        raw_data=stored_bytes(values, dtype),
    )


def text_proto(
    texts: Sequence[str], name: str, shape: Sequence[int | str | None] | None
) -> TensorProto:
    """A tensor of texts; without a shape it has one axis."""
    from onemodel_graph.onnx_io.messages import TensorProto

    data = [text.encode("utf-8", "surrogateescape") for text in texts]
    dims: Any = (len(data),) if shape is None else shape
    return TensorProto(dims=dims, data_type=dtype_number("string"), name=name, string_data=data)
