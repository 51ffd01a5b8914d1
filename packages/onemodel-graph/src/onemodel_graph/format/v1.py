"""Format v1: a safetensors file whose metadata carries the graph.

Any safetensors tool reads the weights. The file is ``u64 header length, JSON header, data``; the
header's ``__metadata__`` holds ``format``, ``version``, ``graph`` (JSON, see
:mod:`onemodel_graph.format.graph_json`), and the SHA-256 of the graph text and of the data. Equal
models give equal bytes. Loading maps the file into memory and copies no weight.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onemodel_graph.format import HEADER_LIMIT
from onemodel_graph.format.graph_json import read_graph, write_graph
from onemodel_graph.ir import Graph, Model, validate
from onemodel_graph.planning.slot import SIZES
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, BoundsError, UnsupportedError
from onemodel_kernels.saving import write_atomically

FORMAT = "onemodel"
VERSION = 1
ALIGNMENT = 64
DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
    "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64",
}  # fmt: skip
NAMES = {code: name for name, code in DTYPES.items()}


def save_v1(model: Model | Graph, path: str | os.PathLike[str]) -> None:
    """Writes a model, replacing the file in one step.

    Args:
        model: The model; its main graph's initializers keep their names.
        path: Where to.
    """
    write_atomically(Path(path), _chunks(model))


def to_bytes(model: Model | Graph) -> bytes:
    """The bytes that :func:`save_v1` writes."""
    return b"".join(_chunks(model))


def _chunks(model: Model | Graph) -> Iterator[bytes]:
    model = model if isinstance(model, Model) else Model(model, {"": model.opset})
    tensors: dict[str, Array] = {}
    tree = {
        "graph": write_graph(model.graph, tensors),
        "opset_imports": dict(sorted(model.opset_imports.items())),
        "producer": model.producer,
        "doc": model.doc,
    }
    text = _json(tree)
    # Widest elements first, so that every tensor is aligned to its element.
    order = sorted(tensors, key=lambda name: (-SIZES[tensors[name].dtype], name))
    digest = hashlib.sha256()
    header: dict[str, Any] = {}
    offset = 0
    for name in order:
        array = tensors[name]
        digest.update(array.tobytes())
        header[name] = {
            "dtype": DTYPES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    header["__metadata__"] = {
        "format": FORMAT,
        "version": str(VERSION),
        "graph": text,
        "graph_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "data_sha256": digest.hexdigest(),
    }
    packed = json.dumps(header, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    packed += b" " * (-(len(packed) + 8) % ALIGNMENT)
    yield struct.pack("<Q", len(packed)) + packed
    for name in order:
        yield tensors[name].tobytes()


def _json(tree: Any) -> str:
    """The tree as text; texts of bytes that are no UTF-8 have lone surrogates, which are escaped."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(tree, separators=(",", ":"), allow_nan=False)
    return text


def read_v1(source: str | os.PathLike[str] | bytes, *, verify: bool = True) -> Model:
    """Reads a model; weights are mapped, not copied.

    Args:
        source: A path or the bytes of a file.
        verify: Whether to check the data against its checksum.

    Raises:
        UnsupportedError: for a newer version, naming both.
        AttributeValueError, BoundsError: for a damaged file, naming what is wrong with it.
    """
    if isinstance(source, bytes):
        data: bytes | mmap.mmap = source
        shown = "the file"
    else:
        path = Path(source)
        shown = repr(path.name)
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < 8:
                raise BoundsError(f"{shown}: it is too short to be a model")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header, start = _header(data, shown)
    metadata = _metadata(header, shown)
    tensors = _tensors(header, data, start, shown)
    if verify:
        digest = hashlib.sha256(memoryview(data)[start:]).hexdigest()
        if digest != metadata.get("data_sha256"):
            raise AttributeValueError(f"{shown}: the weights are damaged: their checksum differs")
    text = metadata["graph"]
    if hashlib.sha256(text.encode()).hexdigest() != metadata.get("graph_sha256"):
        raise AttributeValueError(f"{shown}: the graph is damaged: its checksum differs")
    try:
        tree = json.loads(text)
        graph = read_graph(tree["graph"], tensors)
        imports = {str(domain): int(version) for domain, version in tree["opset_imports"].items()}
        model = Model(graph, imports, str(tree["producer"]), str(tree["doc"]))
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, AttributeValueError):
            raise AttributeValueError(f"{shown}: {error}") from None
        raise AttributeValueError(f"{shown}: the graph is malformed: {error!r}") from None
    validate(model.graph)
    return model


def _header(data: bytes | mmap.mmap, shown: str) -> tuple[dict[str, Any], int]:
    if len(data) < 8:
        raise BoundsError(f"{shown}: it is too short to be a model")
    (length,) = struct.unpack("<Q", data[:8])
    if length > HEADER_LIMIT or 8 + length > len(data):
        raise BoundsError(f"{shown}: its header has {length} bytes, the file has {len(data)}")
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
    except (ValueError, RecursionError) as error:
        raise AttributeValueError(f"{shown}: its header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise AttributeValueError(f"{shown}: its header is not a JSON object")
    return header, 8 + length


def _metadata(header: dict[str, Any], shown: str) -> dict[str, str]:
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise AttributeValueError(f"{shown}: a safetensors file without a OneModel graph")
    version = metadata.get("version", "")
    if not str(version).isdigit() or int(version) > VERSION:
        raise UnsupportedError(
            f"{shown}: it is of format version {version}, this library reads up to {VERSION}; "
            "upgrade onemodel-graph"
        )
    if not all(isinstance(entry, str) for entry in metadata.values()) or "graph" not in metadata:
        raise AttributeValueError(f"{shown}: its metadata is malformed")
    return metadata


def _tensors(
    header: dict[str, Any], data: bytes | mmap.mmap, start: int, shown: str
) -> dict[str, Array]:
    found = {}
    room = len(data) - start
    for name, entry in header.items():
        try:
            dtype = NAMES[entry["dtype"]]
            shape = [int(extent) for extent in entry["shape"]]
            begin, end = (int(offset) for offset in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise AttributeValueError(
                f"{shown}: the entry of tensor {name!r} is malformed"
            ) from None
        size = SIZES[dtype]
        for extent in shape:
            if extent < 0:
                raise BoundsError(f"{shown}: tensor {name!r} has the extent {extent}")
            size *= extent
        if not 0 <= begin <= end <= room or end - begin != size:
            raise BoundsError(f"{shown}: tensor {name!r} is at {begin} to {end} of {room} bytes")
        if size == 0:
            found[name] = Array.from_buffer(b"", dtype, shape)
        elif (start + begin) % SIZES[dtype]:
            found[name] = Array.from_buffer(bytes(data[start + begin : start + end]), dtype, shape)
        else:
            found[name] = Array.from_buffer(data, dtype, shape, start + begin)
    return found
