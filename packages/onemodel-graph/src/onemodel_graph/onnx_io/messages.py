"""The message classes of ONNX, without the rest of its package.

``import onnx`` also brings the checker, the composer, JSON and text formats: four fifths of the time
that it takes to load a small model. Reading needs the messages alone, which are one generated
module; it is registered under its own name, so that a later ``import onnx`` has the same classes.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

_NAME = "onnx.onnx_ml_pb2"


def _module() -> Any:
    if "onnx" in sys.modules or _NAME in sys.modules:
        return importlib.import_module(_NAME)
    package = importlib.util.find_spec("onnx")
    for folder in () if package is None else package.submodule_search_locations or ():
        path = Path(folder) / "onnx_ml_pb2.py"
        spec = importlib.util.spec_from_file_location(_NAME, path) if path.is_file() else None
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[_NAME] = module
            return module
    return importlib.import_module(_NAME)


if TYPE_CHECKING:
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        TensorProto,
        ValueInfoProto,
    )
else:
    _messages = _module()
    AttributeProto = _messages.AttributeProto
    FunctionProto = _messages.FunctionProto
    GraphProto = _messages.GraphProto
    ModelProto = _messages.ModelProto
    NodeProto = _messages.NodeProto
    TensorProto = _messages.TensorProto
    ValueInfoProto = _messages.ValueInfoProto

__all__ = [
    "AttributeProto",
    "FunctionProto",
    "GraphProto",
    "ModelProto",
    "NodeProto",
    "TensorProto",
    "ValueInfoProto",
]
