"""Element types of 8 bits and fewer: int4, uint4, int2, uint2, float8 and float4.

A graph names them as ONNX does. Arrays hold their numbers in int8, uint8 or float32
(:mod:`onemodel_kernels.ops.narrow`), so only what makes such numbers needs to know the type: a
session rewrites those nodes once, before its passes.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.pipeline import copy
from onemodel_graph.planning.checks import reading
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import DtypeError, ShapeError, UnsupportedError
from onemodel_kernels.ops.narrow import FLOATS, HELD, INTEGERS, values
from onemodel_kernels.ops.rules import OWN

BITS = {name: form.bits for name, form in FLOATS.items()} | {
    name: int(name[-1]) for name in INTEGERS
}
MOVED = frozenset({
    "Compress", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "Pad", "Reshape", "ScatterElements", "ScatterND",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose results hold elements of their first input."""
_NUMPY = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float4e2m1": "float4_e2m1fn",
}
"""The names of ml_dtypes where they are others."""


def packed_size(name: str, elements: int) -> int:
    """The bytes of so many elements, packed as ONNX packs them."""
    return math.ceil(elements * BITS[name] / 8)


def unpacked(data: bytes | Any, name: str, shape: tuple[int, ...]) -> Array:
    """The numbers of packed elements, the first in the lowest bits of a byte.

    Args:
        data: As many bytes as :func:`packed_size` says.
        name: The element type.
        shape: Its shape.
    """
    elements = math.prod(shape)
    if len(data) != packed_size(name, elements):
        raise ShapeError(
            f"expected {packed_size(name, elements)} bytes for {elements} numbers of {name}, "
            f"got {len(data)}"
        )
    if elements == 0:
        return Array.from_buffer(b"", HELD[name], shape)
    per = 8 // BITS[name]
    found: Array = Kernel("Gather", axis=0)(
        _table(name, per),
        Kernel("Cast", to="int32")(Array.from_buffer(data, "uint8", (len(data),))),
    )
    whole = found.reshape((len(data) * per,)).slice(0, 0, elements, 1).contiguous()
    return whole.reshape(shape)


def _table(name: str, per: int) -> Array:
    """The numbers in each byte."""
    bits = BITS[name]
    codes = _numbers(name)
    last = len(codes) - 1
    numbers = [codes[byte >> (bits * i) & last] for byte in range(256) for i in range(per)]
    letter = {"float32": "f", "int8": "b", "uint8": "B"}[HELD[name]]
    return Array.from_buffer(
        struct.pack(f"<{len(numbers)}{letter}", *numbers), HELD[name], (256, per)
    )


def packed(array: Array, name: str) -> bytes:
    """The bytes of numbers that a narrow type has, as :func:`unpacked` reads them.

    Raises:
        DtypeError: for an array of another type, or with a number that the type does not have.
    """
    if array.dtype != HELD[name]:
        raise DtypeError(f"expected an array of {HELD[name]} for {name}, got {array.dtype}")
    bits = BITS[name]
    per = 8 // bits
    codes = {_key(number): code for code, number in reversed([*enumerate(_numbers(name))])}
    numbers = array.contiguous().reshape((array.size,)).tolist()
    try:
        found = [codes[_key(number)] for number in numbers]
    except KeyError as error:
        raise DtypeError(f"{name} has no number {error.args[0][0]}") from None
    found += [0] * (-len(found) % per)
    return bytes(
        sum(code << (bits * i) for i, code in enumerate(found[at : at + per]))
        for at in range(0, len(found), per)
    )


def _key(number: float) -> tuple[Any, float]:
    """What tells numbers apart, the two zeros too; all NaN are one."""
    return ("nan", 1.0) if number != number else (number, math.copysign(1.0, number))


def _numbers(name: str) -> list[float]:
    """The number of each code."""
    if name in FLOATS:
        return values(name)
    count = 1 << BITS[name]
    return [code - count if code > INTEGERS[name][1] else code for code in range(count)]


def resolve(graph: Graph) -> tuple[Graph, tuple[str | None, ...]]:
    """A graph in which nodes that make narrow numbers name their type; the same one without any.

    Returns:
        The graph, and the narrow type of each output or ``None``.
    """
    if not any(_narrow(part) for part in _parts(graph)):
        return graph, (None,) * len(graph.outputs)
    result = copy(graph)
    types: dict[Value, str] = {}
    _resolve(result, types)
    return result, tuple(types.get(value) for value in result.outputs)


def _parts(graph: Graph) -> list[Graph]:
    found = [graph]
    for node in graph.walk():
        found += [body for body in node.attributes.values() if isinstance(body, Graph)]
    return found


def _narrow(graph: Graph) -> bool:
    if any(value.dtype in HELD for value in [*graph.inputs, *graph.values.values()]):
        return True
    return any(
        isinstance(entry, str) and entry in HELD
        for node in graph.nodes
        for entry in (node.attributes.get("to"), node.attributes.get("output_dtype"))
    ) or any(value.dtype in HELD for node in graph.nodes for value in node.outputs if value)


def _resolve(graph: Graph, types: dict[Value, str]) -> None:
    for value in [*graph.inputs, *graph.values.values()]:
        if value.dtype in HELD:
            types[value] = value.dtype
    for node in graph.nodes:
        for body in node.attributes.values():
            if isinstance(body, Graph):
                _resolve(body, types)
        with reading(node):
            made = None if node.domain else _made(node, types)
        if made is not None:
            types.update((value, made) for value in node.outputs if value is not None)


def _type(node: Node, position: int, types: dict[Value, str]) -> str | None:
    value = node.inputs[position] if position < len(node.inputs) else None
    return None if value is None else types.get(value)


def _made(node: Node, types: dict[Value, str]) -> str | None:
    """The narrow type of a node's results; the node then says it."""
    name = node.operator
    if name == "Constant":
        result = node.outputs[0]
        return result.dtype if result is not None and result.dtype in HELD else None
    if name in ("Cast", "CastLike"):
        made = node.attributes.get("to") if name == "Cast" else _type(node, 1, types)
        if made not in HELD:
            return None
        node.domain, node.operator, node.inputs = OWN, "NarrowCast", node.inputs[:1]
        node.attributes = {"to": made, "saturate": node.attributes.get("saturate", 1)}
        return made
    if name == "QuantizeLinear":
        made = _type(node, 2, types) or node.attributes.get("output_dtype")
        if made not in HELD:
            return None
        node.attributes["output_dtype"] = made
        return made
    if name == "If":
        bodies = [body for body in node.attributes.values() if isinstance(body, Graph)]
        found = [types[v] for body in bodies for v in body.outputs if v in types]
        return found[0] if found else None
    return _type(node, 0, types) if name in MOVED else None


def held(given: Any, name: str, where: str) -> Any:
    """The numbers of an array of ml_dtypes in the type that holds them."""
    if getattr(given.dtype, "name", None) != _NUMPY.get(name, name):
        raise DtypeError(
            f"{where}: expected an array of ml_dtypes.{_NUMPY.get(name, name)}, got {given.dtype}; "
            "convert it first"
        )
    return given.astype(HELD[name])


def shown(given: Any, name: str) -> Any:
    """An array of ml_dtypes with the numbers of one that holds them.

    Raises:
        UnsupportedError: without ml_dtypes, which comes with onnx.
    """
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(f"outputs of {name} need the package ml_dtypes") from None
    return given.astype(getattr(ml_dtypes, _NUMPY.get(name, name)))
