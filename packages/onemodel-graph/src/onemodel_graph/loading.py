"""Loading: the form of a file is told by its content."""

from __future__ import annotations

import os
from pathlib import Path

from onemodel_graph.format import is_v1
from onemodel_graph.ir import Graph, Model
from onemodel_kernels.errors import AttributeValueError, OneModelError


def load(source: str | os.PathLike[str] | bytes | Model | Graph) -> Model:
    """The model in a file (ONNX or format v1), in bytes, or in memory.

    Raises:
        AttributeValueError: when there is no such file, or it is neither of the two.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, Graph):
        return Model(source, {"": source.opset})
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_bytes(bytes(source))
    if not isinstance(source, str | os.PathLike):
        raise AttributeValueError(
            f"load: expected a path, bytes, a Model or a Graph, got {type(source).__name__}"
        )
    path = Path(source)
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise AttributeValueError(f"load: cannot read {str(path)!r}: {error.strerror}") from None
    if not head:
        raise AttributeValueError(f"load: {str(path)!r} is empty: it holds no model")
    if is_v1(head):
        from onemodel_graph.format import read_v1

        return read_v1(path)
    from onemodel_graph.onnx_io import import_model

    try:
        return import_model(path)
    except OneModelError as error:
        error.add_note(f"in the file {str(path)!r}")
        raise


def _from_bytes(data: bytes) -> Model:
    if is_v1(data[:16]):
        from onemodel_graph.format import read_v1

        return read_v1(data)
    from onemodel_graph.onnx_io import import_model

    return import_model(data)
