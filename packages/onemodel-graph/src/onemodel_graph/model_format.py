"""The forms in which a model is saved."""

from __future__ import annotations

import enum
import os
from pathlib import Path

from onemodel_graph.ir import Graph, Model
from onemodel_kernels.errors import AttributeValueError


class ModelFormat(enum.Enum):
    """The form of a model file.

    Attributes:
        ONNX: ONNX's protobuf, for every other runtime.
        V1: The library's own: safetensors with the graph in its metadata, mapped into memory on
            load.
    """

    ONNX = "onnx"
    V1 = "v1"

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> ModelFormat:
        """The form that a file name asks for: ``.onnx``; or ``.om1``, ``.om`` and ``.safetensors``.

        Raises:
            AttributeValueError: for another ending.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".onnx":
            return cls.ONNX
        if suffix in (".om1", ".om", ".safetensors"):
            return cls.V1
        raise AttributeValueError(
            f"{str(path)!r}: the name of a model file ends in .onnx, .om1, .om or .safetensors, not {suffix!r}"
        )


def save(
    model: Model | Graph, path: str | os.PathLike[str], format: ModelFormat | str | None = None
) -> None:
    """Saves a model, replacing the file in one step.

    Args:
        model: The model.
        path: Where to.
        format: Its form; by default the one that the file's ending asks for.
    """
    form = ModelFormat.of(path) if format is None else ModelFormat(format)
    if form is ModelFormat.ONNX:
        from onemodel_graph.onnx_io import save_onnx

        save_onnx(model, path)
    else:
        from onemodel_graph.format import save_v1

        save_v1(model, path)
