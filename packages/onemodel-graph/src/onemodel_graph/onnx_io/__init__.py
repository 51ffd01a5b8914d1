"""Reading and writing ONNX files: the only folder that knows protobuf."""

from __future__ import annotations

from onemodel_graph.onnx_io.functions import register_function
from onemodel_graph.onnx_io.importer import import_model
from onemodel_graph.onnx_io.writer import save_onnx, to_onnx

__all__ = ["import_model", "register_function", "save_onnx", "to_onnx"]
