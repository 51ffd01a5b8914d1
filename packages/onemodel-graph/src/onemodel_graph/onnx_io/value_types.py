"""Element types and shapes of values, as ONNX's protobuf states them."""

from __future__ import annotations

from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.onnx_io.messages import AttributeProto, NodeProto, ValueInfoProto
from onemodel_graph.onnx_io.types import dtype_name

NAMELESS = frozenset({"", "?", "-1", "None"})
"""Texts that exporters write for an extent that is not known: they name no common size."""


def type_constant(proto: NodeProto, value: Value, attributes: dict[str, Any]) -> None:
    """Notes what a Constant holds where its array does not say it: narrow numbers and texts."""
    for entry in proto.attribute:
        if entry.type == AttributeProto.TENSOR:
            value.dtype = dtype_name(entry.t.data_type)
            if value.dtype == "string":
                value.shape = tuple(entry.t.dims)
                attributes["value_strings"] = attributes.pop(entry.name)
        elif entry.name in ("value_string", "value_strings"):
            texts = attributes[entry.name]
            value.dtype = "string"
            value.shape = () if isinstance(texts, str) else (len(texts),)


def typed(proto: Any) -> tuple[str | None, tuple[int | str | None, ...] | None]:
    """dtype and shape of a type; ``"sequence"`` and ``"optional"`` for those."""
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        return "sequence", None
    if kind == "optional_type":
        return "optional", None
    if kind != "tensor_type":
        return None, None
    tensor = proto.tensor_type
    dtype = dtype_name(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return dtype, None
    shape: list[int | str | None] = []
    for extent in tensor.shape.dim:
        if extent.HasField("dim_value"):
            shape.append(extent.dim_value if extent.dim_value >= 0 else None)
        else:
            name = extent.dim_param
            shape.append(None if name in NAMELESS else name)
    return dtype, tuple(shape)


def typed_value(info: ValueInfoProto, name: str) -> Value:
    """A value with the type of a value_info."""
    dtype, shape = typed(info.type)
    return Value(name, dtype, shape)
