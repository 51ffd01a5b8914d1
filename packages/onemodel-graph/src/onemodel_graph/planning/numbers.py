"""Small constants from Python numbers, without numpy."""

from __future__ import annotations

import struct
from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import BoundsError

_FORMATS = {
    "bool": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I",
    "int32": "i", "uint64": "Q", "int64": "q", "float32": "f", "float64": "d",
}  # fmt: skip
_OVER = float("inf")


def tensor(value: Any, dtype: str) -> Array:
    """An array of a number or of a (nested) list of numbers; floats are rounded to nearest even."""
    shape: list[int] = []
    level = value
    while isinstance(level, list | tuple):
        shape.append(len(level))
        if not level:
            break
        level = level[0]
    numbers: list[Any] = [value]
    for _ in shape:
        numbers = [entry for part in numbers for entry in part]
    if dtype in ("float16", "bfloat16"):
        wide = tensor(value, "float32")
        narrow: Array = Kernel("Cast", to=dtype)(wide)
        return narrow
    code = _FORMATS[dtype]
    if code in "fd":
        numbers = [float(number) for number in numbers]
        if code == "f":
            numbers = [_single(number) for number in numbers]
    elif code == "?":
        numbers = [bool(number) for number in numbers]
    else:
        numbers = [int(number) for number in numbers]
    try:
        packed = struct.pack(f"<{len(numbers)}{code}", *numbers)
    except struct.error as error:
        raise BoundsError(f"a number among {value!r:.60} does not fit {dtype}: {error}") from None
    return Array.from_buffer(packed, dtype, shape)


def _single(number: float) -> float:
    """The number, or the infinity that it rounds to: ``struct`` refuses what overflows a float."""
    if abs(number) > 3.4028235677973366e38 and abs(number) != _OVER:
        return _OVER if number > 0 else -_OVER
    return number


def read(array: Array) -> Any:
    """The numbers in an array: one for a 0-d array, else a (nested) tuple."""
    value = array.tolist()
    return _tuples(value) if isinstance(value, list) else value


def _tuples(value: list[Any]) -> tuple[Any, ...]:
    return tuple(_tuples(entry) if isinstance(entry, list) else entry for entry in value)
