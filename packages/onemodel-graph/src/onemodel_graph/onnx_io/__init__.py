"""Reading and writing ONNX files: the only folder that knows protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onemodel_graph.onnx_io.importer import import_model

if TYPE_CHECKING:
    from onemodel_graph.onnx_io.functions import register_function
    from onemodel_graph.onnx_io.writer import save_onnx, to_onnx

#: What needs the whole of the onnx package, which reading does not.
_PLACES = {"register_function": "functions", "save_onnx": "writer", "to_onnx": "writer"}
__all__ = ["import_model", "register_function", "save_onnx", "to_onnx"]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{place}"), name)
