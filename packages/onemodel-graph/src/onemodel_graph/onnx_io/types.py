"""Element types: ONNX's enumeration and the names that the rest of the package uses."""

from __future__ import annotations

from onemodel_kernels.errors import DtypeError

NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "string", 9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
    24: "float8e8m0", 25: "uint2", 26: "int2", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip
NUMBERS = {name: number for number, name in NAMES.items()}
ARRAYS = frozenset({
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64",
})  # fmt: skip
"""Types that arrays hold."""


def dtype_name(number: int) -> str:
    """The name of an ONNX element type."""
    name = NAMES.get(number)
    if name is None:
        raise DtypeError(f"ONNX element type {number}: expected one of 1 to {max(NAMES)}")
    return name


def dtype_number(name: str) -> int:
    """The ONNX element type of a name."""
    number = NUMBERS.get(name)
    if number is None:
        raise DtypeError(f"dtype {name!r}: ONNX has no element type of this name")
    return number
