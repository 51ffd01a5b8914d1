"""Load an ONNX or OneModel file, plan it and run it: fast, or bit for bit the same everywhere.

>>> import onemodel_graph as og
>>> builder = og.GraphBuilder()
>>> x = builder.add_input("x", "float32", ("n",))
>>> (y,) = builder.add_node("Relu", [x], ["y"], types=[("float32", ("n",))])
>>> builder.add_output(y)
>>> session = og.Session(builder.build(), mode="exact")     # or the path of a file
>>> (y,) = session.run({"x": [-1.0, 2.0]})
>>> y.tolist()
[0.0, 2.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onemodel_graph import _interfaces  # noqa: F401  (checked before anything else is imported)

if TYPE_CHECKING:
    from onemodel_graph.format import save_v1
    from onemodel_graph.ir import Graph, GraphBuilder, Model, Node, Value
    from onemodel_graph.loading import load
    from onemodel_graph.model_format import ModelFormat, save
    from onemodel_graph.onnx_io import register_function, save_onnx, to_onnx
    from onemodel_graph.session import ArithmeticMode, Session

_PLACES = {
    "ArithmeticMode": "session",
    "Graph": "ir",
    "GraphBuilder": "ir",
    "Model": "ir",
    "ModelFormat": "model_format",
    "Node": "ir",
    "Session": "session",
    "Value": "ir",
    "load": "loading",
    "register_function": "onnx_io",
    "save": "model_format",
    "save_onnx": "onnx_io",
    "save_v1": "format",
    "to_onnx": "onnx_io",
}
__all__ = [
    "ArithmeticMode",
    "Graph",
    "GraphBuilder",
    "Model",
    "ModelFormat",
    "Node",
    "Session",
    "Value",
    "load",
    "register_function",
    "save",
    "save_onnx",
    "save_v1",
    "to_onnx",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{place}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
