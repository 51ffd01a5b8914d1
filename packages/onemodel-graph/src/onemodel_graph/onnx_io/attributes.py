"""Attributes of nodes, as ONNX's protobuf holds them."""

from __future__ import annotations

from typing import Any

from onemodel_graph.onnx_io.messages import AttributeProto
from onemodel_graph.onnx_io.tensors import ExternalData, to_array
from onemodel_graph.onnx_io.types import dtype_name
from onemodel_graph.onnx_io.value_types import typed
from onemodel_graph.text_data import unpacked
from onemodel_kernels.errors import UnsupportedError

DTYPES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "softmax_precision"})
"""Attributes that hold an element type."""


def attribute_value(proto: AttributeProto, name: str, external: ExternalData, where: str) -> Any:
    """The value of an attribute that holds no graph: a number, a text, a tensor, a tuple of them.

    Args:
        proto: The attribute.
        name: What it is called where it is used; a function's node may use one of another name.
        external: Reads tensors beside the file.
        where: The node, for errors.

    Raises:
        UnsupportedError: naming the node, for a kind of attribute that graphs do not hold.
    """
    kind = proto.type
    if kind == AttributeProto.INT:
        return dtype_name(proto.i) if name in DTYPES and proto.i else int(proto.i)
    if kind == AttributeProto.FLOAT:
        return float(proto.f)
    if kind == AttributeProto.STRING:
        return proto.s.decode("utf-8", "surrogateescape")
    if kind == AttributeProto.INTS:
        return tuple(proto.ints)
    if kind == AttributeProto.FLOATS:
        return tuple(proto.floats)
    if kind == AttributeProto.STRINGS:
        return tuple(entry.decode("utf-8", "surrogateescape") for entry in proto.strings)
    if kind == AttributeProto.TENSOR and dtype_name(proto.t.data_type) == "string":
        return tuple(unpacked(to_array(proto.t, external)))
    if kind == AttributeProto.TENSOR:
        return to_array(proto.t, external)
    if kind == AttributeProto.TYPE_PROTO:
        return typed(proto.tp)[0]
    kind_name = AttributeProto.AttributeType.Name(kind)
    raise UnsupportedError(f"{where}: the attribute {name!r} of kind {kind_name} is not supported")
