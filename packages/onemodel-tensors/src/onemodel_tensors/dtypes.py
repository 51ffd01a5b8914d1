"""Element types: their names, and the type of a result (PyTorch's rules, which are not numpy's).

Types are ordered in categories, bool below integers below floats. A number or a 0-d tensor only raises the category of
a result; within its category it never widens it. So int64 + float32 is float32, and float32 + 2.5 is float32.
"""

from __future__ import annotations

import math
from typing import Any

from onemodel_kernels.errors import DtypeError

__all__ = [
    "bfloat16",
    "bool_",
    "default_dtype",
    "dtype_of",
    "finfo",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "promote_types",
    "set_default_dtype",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool_ = "bool"
uint8 = "uint8"
uint16 = "uint16"
uint32 = "uint32"
uint64 = "uint64"
int8 = "int8"
int16 = "int16"
int32 = "int32"
int64 = "int64"
float16 = "float16"
bfloat16 = "bfloat16"
float32 = "float32"
float64 = "float64"

FLOATING = frozenset((float16, bfloat16, float32, float64))
INTEGERS = frozenset((uint8, uint16, uint32, uint64, int8, int16, int32, int64))
_FORMATS = {float16: (16, 10, 5), bfloat16: (16, 7, 8), float32: (32, 23, 8), float64: (64, 52, 11)}
"""Bits in all, of the fraction, of the exponent."""

HALVES = frozenset((float16, bfloat16))

DTYPES = frozenset(("bool", *INTEGERS, *FLOATING))

_NAMES = {name: name for name in sorted(DTYPES)}
_ALIASES: dict[Any, str] = {
    **_NAMES,
    bool: "bool",
    int: "int64",
    float: "float32",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
DTYPE_NAMES = frozenset(name for name in _ALIASES if isinstance(name, str))
"""Every string that names a dtype."""


class _Default:
    dtype = float32


def get_default_dtype() -> str:
    """The dtype that Python floats become: float32 unless set otherwise."""
    return _Default.dtype


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats become, for the process.

    Raises:
        DtypeError: it is no floating-point dtype.
    """
    name = dtype_of(dtype)
    if name not in FLOATING:
        raise DtypeError(f"set_default_dtype: expected a floating-point dtype, got {name}")
    _Default.dtype = name


def default_dtype(value: Any) -> str:
    """The dtype that a Python number becomes by itself."""
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else _Default.dtype


def dtype_of(dtype: Any) -> str:
    """The name of a dtype given as a name, a Python type or a numpy dtype.

    Raises:
        DtypeError: there is no such dtype here.
    """
    try:
        found = _ALIASES.get(dtype)
    except TypeError:
        found = None
    if found is None:
        found = _NAMES.get(str(getattr(dtype, "name", None) or getattr(dtype, "__name__", "")))
    if found is None:
        raise DtypeError(f"dtype: expected one of {', '.join(sorted(_NAMES))}, got {dtype!r}")
    return found


class finfo:  # noqa: N801 (PyTorch's name)
    """The limits of a floating-point dtype.

    Attributes:
        bits: the width.
        eps: the distance from 1 to the next number.
        max: the largest finite number; ``min`` is its negative.
        tiny: the smallest positive normal number, also ``smallest_normal``.
        dtype: the dtype's name.

    Raises:
        DtypeError: the dtype is no floating-point one.
    """

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = _Default.dtype if dtype is None else dtype_of(dtype)
        if self.dtype not in FLOATING:
            raise DtypeError(f"finfo: expected a floating-point dtype, got {self.dtype}; see iinfo")
        self.bits, fraction, exponent = _FORMATS[self.dtype]
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0 ** (2 ** (exponent - 1) - 1)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (2 - 2 ** (exponent - 1))
        self.resolution = 10.0 ** -int(fraction * math.log10(2))

    def __repr__(self) -> str:
        return f"finfo({self.dtype}, eps={self.eps!r}, max={self.max!r}, tiny={self.tiny!r})"


class iinfo:  # noqa: N801 (PyTorch's name)
    """The limits of an integer dtype: ``bits``, ``min``, ``max``.

    Raises:
        DtypeError: the dtype is no integer one.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype_of(dtype)
        if self.dtype not in INTEGERS:
            raise DtypeError(f"iinfo: expected an integer dtype, got {self.dtype}; see finfo")
        self.bits = _bits(self.dtype)
        unsigned = self.dtype.startswith("u")
        self.min = 0 if unsigned else -(2 ** (self.bits - 1))
        self.max = 2 ** (self.bits if unsigned else self.bits - 1) - 1

    def __repr__(self) -> str:
        return f"iinfo({self.dtype}, min={self.min}, max={self.max})"


def category(dtype: str) -> int:
    """0 for bool, 1 for integers, 2 for floats."""
    return 2 if dtype in FLOATING else 1 if dtype in INTEGERS else 0


def promote_types(a: str, b: str) -> str:
    """The smallest dtype that both of two dtypes of tensors with axes go into, by PyTorch's table.

    Where PyTorch says int16 for uint8 with int8, this library says int32.
    """
    if a == b:
        return a
    rank_a, rank_b = category(a), category(b)
    if rank_a != rank_b:
        return a if rank_a > rank_b else b
    if rank_a == 2:
        if a in HALVES and b in HALVES:
            return float32
        return a if _bits(a) > _bits(b) else b
    if a.startswith("u") == b.startswith("u"):
        return a if _bits(a) > _bits(b) else b
    unsigned, signed = (a, b) if a.startswith("u") else (b, a)
    if _bits(signed) > _bits(unsigned):
        return signed
    wider = max(32, 2 * _bits(unsigned))
    if wider > 64:
        raise DtypeError(f"promotion: no integer dtype holds both {a} and {b}; cast one of them")
    return f"int{wider}"


def _bits(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit()))
