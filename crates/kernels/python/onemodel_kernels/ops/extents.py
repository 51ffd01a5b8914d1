"""Arithmetic on extents, for plain ints and for symbolic ones alike.

An extent is an ``int`` or any object with the methods of :class:`SymbolicExtent`. Each function
computes on ints directly; as soon as one argument is symbolic it calls the method of its own name
on the first symbolic one, *with all of its arguments in their order* (so an implementation writes
them as static methods). Nothing here knows the classes that implement it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from onemodel_kernels.errors import ShapeError


class SymbolicExtent(Protocol):
    """What a symbolic extent offers; every method gets all arguments of the function of its name."""

    def add(self, *arguments: Any) -> Any:
        """:func:`add` of the arguments."""

    def sub(self, *arguments: Any) -> Any:
        """:func:`sub` of the arguments."""

    def mul(self, *arguments: Any) -> Any:
        """:func:`mul` of the arguments."""

    def floordiv(self, *arguments: Any) -> Any:
        """:func:`floordiv` of the arguments."""

    def broadcast(self, *arguments: Any) -> Any:
        """:func:`broadcast` of the arguments."""

    def unify(self, *arguments: Any) -> Any:
        """:func:`unify` of the arguments."""

    def window(self, *arguments: Any) -> Any:
        """:func:`window` of the arguments."""

    def same_window(self, *arguments: Any) -> Any:
        """:func:`same_window` of the arguments."""

    def transposed_window(self, *arguments: Any) -> Any:
        """:func:`transposed_window` of the arguments."""

    def slice_length(self, *arguments: Any) -> Any:
        """:func:`slice_length` of the arguments."""

    def range_length(self, *arguments: Any) -> Any:
        """:func:`range_length` of the arguments."""

    def scaled(self, *arguments: Any) -> Any:
        """:func:`scaled` of the arguments."""

    def reshape(self, *arguments: Any) -> Any:
        """:func:`reshape` of the arguments."""


Extent = Any
"""An ``int`` or a :class:`SymbolicExtent`."""


def is_static(extent: Extent) -> bool:
    """Whether an extent is a plain int. (A symbolic one may pass ``isinstance(x, int)``.)"""
    return type(extent) is int


def _symbol(*extents: Extent) -> Any:
    for extent in extents:
        if type(extent) is not int:
            return extent
    return None


def add(a: Extent, b: Extent) -> Extent:
    """``a + b``."""
    if type(a) is int and type(b) is int:
        return a + b
    return _symbol(a, b).add(a, b)


def sub(a: Extent, b: Extent) -> Extent:
    """``a - b``."""
    if type(a) is int and type(b) is int:
        return a - b
    return _symbol(a, b).sub(a, b)


def mul(a: Extent, b: Extent) -> Extent:
    """``a * b``."""
    if type(a) is int and type(b) is int:
        return a * b
    return _symbol(a, b).mul(a, b)


def floordiv(a: Extent, b: Extent) -> Extent:
    """The greatest integer not above ``a / b``."""
    if type(a) is int and type(b) is int:
        return a // b
    return _symbol(a, b).floordiv(a, b)


def product(extents: Iterable[Extent]) -> Extent:
    """The product of all extents; 1 for none."""
    result: Extent = 1
    for extent in extents:
        if type(extent) is int and type(result) is int:
            result *= extent
        else:
            result = mul(result, extent)
    return result


def total(extents: Iterable[Extent]) -> Extent:
    """The sum of all extents; 0 for none."""
    found = list(extents)
    if not found:
        return 0
    result = found[0]
    for extent in found[1:]:
        result = add(result, extent)
    return result


def broadcast(a: Extent, b: Extent) -> Extent:
    """The extent of two aligned axes under broadcasting: equal ones stay, 1 yields to the other."""
    if type(a) is not int or type(b) is not int:
        return _symbol(a, b).broadcast(a, b)
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    raise ShapeError(f"extents {a} and {b} do not broadcast: they must be equal, or one must be 1")


def broadcast_shapes(*shapes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The shape that all shapes broadcast to, aligned at the last axis."""
    if len(shapes) == 2 and shapes[0] == shapes[1] and all(type(e) is int for e in shapes[0]):
        return tuple(shapes[0])
    result: list[Extent] = []
    for shape in shapes:
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        offset = len(result) - len(shape)
        for axis, extent in enumerate(shape):
            try:
                result[offset + axis] = broadcast(result[offset + axis], extent)
            except ShapeError as error:
                forms = " and ".join(str(tuple(s)) for s in shapes)
                raise type(error)(f"shapes {forms} do not broadcast: {error}") from None
    return tuple(result)


def unify(a: Extent, b: Extent, what: str, *values: object) -> Extent:
    """The one extent that two axes must share; ``what`` names them in the error, with ``values`` in
    place of its braces.
    """
    if type(a) is int and type(b) is int:
        if a == b:
            return a
        named = what.format(*values) if values else what
        raise ShapeError(f"{named} must be equal, but they are {a} and {b}")
    return _symbol(a, b).unify(a, b, what.format(*values) if values else what)


def window(
    size: Extent,
    kernel: int,
    stride: int,
    dilation: int,
    pad_begin: int,
    pad_end: int,
    ceil_mode: bool = False,
) -> Extent:
    """The number of window positions of a convolution or pool along one axis.

    ``floor((size + pads - dilation*(kernel-1) - 1) / stride) + 1``; with ``ceil_mode`` rounded up,
    but a last window that would start in the padding at the end is dropped.
    """
    if type(size) is not int:
        return size.window(size, kernel, stride, dilation, pad_begin, pad_end, ceil_mode)
    reach = dilation * (kernel - 1) + 1
    room = size + pad_begin + pad_end - reach
    if room < 0:
        raise ShapeError(
            f"a window of {reach} (kernel {kernel}, dilation {dilation}) does not fit an extent of {size}"
            f" with pads {pad_begin} and {pad_end}"
        )
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    if (count - 1) * stride >= size + pad_begin:
        count -= 1
    return count


def same_window(size: Extent, stride: int) -> Extent:
    """``ceil(size / stride)``: the window positions under ``auto_pad=SAME_*``."""
    symbol = _symbol(size)
    return -(-size // stride) if symbol is None else symbol.same_window(size, stride)


def transposed_window(
    size: Extent,
    kernel: int,
    stride: int,
    dilation: int,
    pad_begin: int,
    pad_end: int,
    output_padding: int,
) -> Extent:
    """The output extent of a transposed convolution along one axis."""
    symbol = _symbol(size)
    if symbol is not None:
        return symbol.transposed_window(
            size, kernel, stride, dilation, pad_begin, pad_end, output_padding
        )
    return stride * (size - 1) + output_padding + dilation * (kernel - 1) + 1 - pad_begin - pad_end


def slice_length(size: Extent, start: Extent, end: Extent, step: int) -> Extent:
    """The number of elements that ONNX Slice takes from an axis (starts and ends clamped, negatives
    counted back).
    """
    symbol = _symbol(size, start, end)
    if symbol is not None:
        return symbol.slice_length(size, start, end, step)
    begin, stop, _ = slice_bounds(size, start, end, step)
    return len(range(begin, stop, step))


def slice_bounds(size: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    """Start, stop and step as ``range`` takes them, for ONNX's start and end on an axis of
    ``size``.
    """
    if step == 0:
        raise ShapeError("a slice step must not be 0")
    if start < 0:
        start += size
    if end < 0:
        end += size
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size), step
    return min(max(start, 0), size - 1), min(max(end, -1), size - 1), step


def range_length(start: Any, limit: Any, delta: Any) -> Extent:
    """``max(0, ceil((limit - start) / delta))`` for numbers or extents."""
    for value in (start, limit, delta):
        if type(value) not in (int, float):
            return value.range_length(start, limit, delta)
    if delta == 0:
        raise ShapeError("the delta of a range must not be 0")
    if all(type(value) is int for value in (start, limit, delta)):
        return max(0, -((start - limit) // delta))
    return max(0, math.ceil((limit - start) / delta))


def scaled(size: Extent, scale: float) -> Extent:
    """``floor(size * scale)``, the product rounded to float32 as ONNX's scales are."""
    symbol = _symbol(size)
    if symbol is not None:
        return symbol.scaled(size, scale)
    return int(_float32(_float32(size) * _float32(scale)) // 1)


def _float32(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def reshape(
    shape: Sequence[Extent], target: Sequence[Extent], allowzero: bool = False
) -> tuple[Extent, ...]:
    """The shape that ONNX Reshape gives: one -1 is computed, 0 copies the input's extent unless
    ``allowzero``.
    """
    symbol = _symbol(*shape, *target)
    if symbol is not None:
        return tuple(symbol.reshape(tuple(shape), tuple(target), allowzero))
    count = math.prod(shape)
    result = list(target)
    open_axis = None
    known = 1
    for axis, extent in enumerate(target):
        if extent > 0:
            known *= extent
            continue
        if extent == -1:
            if open_axis is not None:
                raise ShapeError(f"the target shape {tuple(target)} has more than one -1")
            open_axis = axis
            continue
        if extent == 0 and not allowzero:
            if axis >= len(shape):
                raise ShapeError(
                    f"the target shape {tuple(target)} copies axis {axis}, which {tuple(shape)} lacks"
                )
            result[axis] = shape[axis]
        elif extent < 0:
            raise ShapeError(f"the target shape {tuple(target)} has the extent {extent}")
        known *= result[axis]
    if open_axis is not None:
        if known == 0 or count % known:
            raise ShapeError(
                f"{tuple(shape)} ({count} elements) does not fit the target shape {tuple(target)}"
            )
        result[open_axis] = count // known
    elif known != count:
        raise ShapeError(
            f"{tuple(shape)} has {count} elements, the target shape {tuple(target)} has {known}"
        )
    return tuple(result)
