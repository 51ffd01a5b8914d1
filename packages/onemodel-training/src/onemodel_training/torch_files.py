"""Weights out of PyTorch's files, without PyTorch and without running anything in them."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import Tensor
from onemodel_training.pickled import GlobalName, PickleError, read_pickle

__all__ = ["TorchFileError", "load_torch_file"]

_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
_WIDTHS = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip


class TorchFileError(OneModelError, ValueError):
    """A file that PyTorch did not write, or that holds what this reader does not know."""


@dataclass
class _Storage:
    dtype: str
    count: int
    data: bytes | None = None


@dataclass(frozen=True)
class _Pending:
    """A tensor whose storage may come later in the file."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Pending:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or len(shape) != len(strides):
        raise TorchFileError("load_torch_file: a tensor without a storage or with odd strides")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise TorchFileError("load_torch_file: expected sizes and strides of 0 or more")
    last = sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if math.prod(shape) and offset + last >= storage.count:
        raise TorchFileError(
            f"load_torch_file: a tensor of shape {tuple(shape)} reaches past its storage of "
            f"{storage.count} elements"
        )
    return _Pending(storage, offset, tuple(shape), tuple(strides))


_CALLS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": dict,
    "torch._utils._rebuild_tensor_v2": _rebuild,
    "torch._utils._rebuild_tensor": _rebuild,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    "torch.Size": lambda entries=(): tuple(entries),
}


class _Storages:
    """The storages that a file's pickle refers to, by key."""

    def __init__(self) -> None:
        self.by_key: dict[str, _Storage] = {}

    def find(self, identifier: Any) -> _Storage:
        kind, key, count = identifier[1], str(identifier[2]), identifier[4]
        if identifier[0] != "storage" or not isinstance(kind, GlobalName):
            raise TorchFileError("load_torch_file: expected a reference to a storage")
        if kind.name not in _STORAGES:
            raise TorchFileError(f"load_torch_file: storages of type {kind.path} are not known")
        if type(count) is not int or count < 0:
            raise TorchFileError("load_torch_file: expected a storage size of 0 or more")
        return self.by_key.setdefault(key, _Storage(_STORAGES[kind.name], count))


def _tensor(pending: _Pending) -> Tensor:
    storage = pending.storage
    if storage.data is None:
        raise TorchFileError("load_torch_file: the file ends before the data of a storage")
    shape, strides = pending.shape, pending.strides
    if not math.prod(shape):
        return Tensor(Array.full(shape, 0, storage.dtype))
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != expected:
            raise TorchFileError(
                f"load_torch_file: a tensor of shape {shape} has strides {strides}, which leave gaps"
            )
        expected *= shape[axis]
    array = Array.from_buffer(
        storage.data,
        storage.dtype,
        tuple(shape[axis] for axis in order),
        offset=pending.offset * _WIDTHS[storage.dtype],
    )
    inverse = tuple(order.index(axis) for axis in range(len(shape)))
    return Tensor(array.permute(inverse).contiguous())


def _finished(value: Any) -> Any:
    if isinstance(value, _Pending):
        return _tensor(value)
    if isinstance(value, dict):
        return {key: _finished(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_finished(entry) for entry in value])
    return value


def _load_zip(path: Path) -> Any:
    storages = _Storages()
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise TorchFileError(f"load_torch_file: {path} has no data.pkl in it")
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
            raise TorchFileError(f"load_torch_file: {path} was written by a big-endian machine")
        value = read_pickle(BytesIO(archive.read(pickles[0])), _CALLS, storages.find)
        for key, storage in storages.by_key.items():
            entry = archive.getinfo(f"{root}data/{key}")
            wanted = storage.count * _WIDTHS[storage.dtype]
            if entry.file_size != wanted or entry.compress_type != zipfile.ZIP_STORED:
                raise TorchFileError(
                    f"load_torch_file: {path}, storage {key}: expected {wanted} plain bytes, got "
                    f"{entry.file_size}"
                )
            storage.data = archive.read(entry)
    return _finished(value)


def _load_legacy(path: Path) -> Any:
    stream = BytesIO(path.read_bytes())
    if read_pickle(stream, {}) != _MAGIC:
        raise TorchFileError(f"load_torch_file: {path} was not written by torch.save")
    read_pickle(stream, {})
    machine = read_pickle(stream, {})
    if not isinstance(machine, dict) or not machine.get("little_endian", False):
        raise TorchFileError(f"load_torch_file: {path} was written by a big-endian machine")
    storages = _Storages()
    value = read_pickle(stream, _CALLS, storages.find)
    for key in read_pickle(stream, {}):
        storage = storages.by_key.get(str(key))
        count = int.from_bytes(stream.read(8), "little")
        if storage is None or storage.count != count:
            raise TorchFileError(f"load_torch_file: {path}, storage {key}: its size is odd")
        wanted = count * _WIDTHS[storage.dtype]
        storage.data = stream.read(wanted)
        if len(storage.data) != wanted:
            raise TorchFileError(f"load_torch_file: {path} ends inside storage {key}")
    return _finished(value)


def load_torch_file(path: str | Path) -> Any:
    """What ``torch.save`` wrote: dicts, lists, numbers and tensors.

    Both file forms are read. Opcodes of the pickle inside are followed as data: no class is
    imported and no function is called, so a hostile file can only fail. Objects of classes other
    than tensors and dicts come back as :class:`~onemodel_training.pickled.Opaque`.

    Raises:
        TorchFileError: the file is malformed or holds an unknown kind of tensor.
        PickleError: the pickle in it is malformed.
    """
    path = Path(path)
    try:
        return _load_zip(path) if zipfile.is_zipfile(path) else _load_legacy(path)
    except (KeyError, IndexError, TypeError, zipfile.BadZipFile, RecursionError) as error:
        if isinstance(error, PickleError):
            raise
        raise TorchFileError(f"load_torch_file: {path} is malformed: {error!r}") from error
