"""Constants of a trace: weights, buffers and numbers, each kept once under its name."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onemodel_kernels import Array
from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.view_layout import ViewLayout, view_layout

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor
    from onemodel_trace.tracer import Tracer

MAX_CONSTANT_BYTES = 2**31 - 1
"""The most that one constant may hold: a protobuf message ends there."""

_Key = tuple[Any, ...]


class ConstantTable:
    """Finds the value of a constant tensor by what it shows: storage, offset, shape and strides.

    Args:
        tracer: The tracer that the values belong to.
        limit: Greatest size of one constant in bytes.
    """

    def __init__(self, tracer: Tracer, limit: int = MAX_CONSTANT_BYTES) -> None:
        self._tracer = tracer
        self._limit = limit
        self._by_key: dict[_Key, GraphValue] = {}
        self._by_bits: dict[tuple[str, bytes], GraphValue] = {}
        self._filled: dict[tuple[Any, ...], GraphValue] = {}
        self._integers: dict[tuple[int, ...] | int, GraphValue] = {}
        self._versions: list[tuple[GraphValue, Array, int]] = []
        self._names: dict[str, _Key] = {}
        self._named: dict[_Key, tuple[str, Array]] = {}
        self._named_storage: dict[int, str] = {}
        self._view_counts: dict[str, int] = {}

    def name(self, name: str, tensor: Tensor) -> None:
        """Give a constant tensor a name; the first name of tied weights stays.

        Raises:
            TraceException: INVALID_USAGE for an empty or repeated name and for a captured tensor.
        """
        held = tensor._array
        key = _key(held)
        if self._names.get(name, key) != key:
            raise TraceException(
                TraceErrorKind.INVALID_USAGE, f"parameter: the name {name!r} is used twice"
            )
        self._names[name] = key
        if key in self._named:
            return
        if key in self._by_key:
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"parameter {name!r}: the tensor of shape {held.shape} was already used by a recorded "
                "operator; name parameters before the model runs",
            )
        self._named[key] = (name, held)
        self._named_storage.setdefault(held.storage_id, name)

    @property
    def names(self) -> set[str]:
        """Names given by :meth:`name`."""
        return set(self._names)

    def capture(self, tensor: Tensor) -> GraphValue:
        """The value of a tensor that does not depend on an input."""
        held = tensor._array
        if held.ndim == 0 and held.storage_id not in self._named_storage:
            number = self.number(held)
            self._versions.append((number, held, held.version))
            return number
        key = _key(held)
        value = self._by_key.get(key)
        if value is None:
            value = self._by_key[key] = self._capture(held, key)
        return value

    def _capture(self, held: Array, key: _Key) -> GraphValue:
        if held.nbytes > self._limit:
            raise TraceException(
                TraceErrorKind.UNSUPPORTED_OPERATION,
                f"a constant of shape {held.shape} and dtype {held.dtype} holds {held.nbytes} bytes, "
                f"the greatest that a graph can hold is {self._limit}; split it, or make it an input",
            )
        label = ""
        if key in self._named:
            label = self._named[key][0]
        else:
            owner = self._named_storage.get(held.storage_id)
            if owner is not None:
                weight = self._named[self._names[owner]][1]
                layout = view_layout(weight, held)
                if layout is not None:
                    return self._view_of(weight, layout, owner)
                label = self._view_name(owner)
        # Copied now: writes through memory that numpy shares change no version.
        value = GraphValue(self._tracer, held.dtype, held.shape, label, held.copy())
        self._versions.append((value, held, held.version))
        return value

    def _view_of(self, weight: Array, layout: ViewLayout, owner: str) -> GraphValue:
        """A view of a named weight as nodes on it, so that the weight is there once, as it is stored."""
        key = self._names[owner]
        value = self._by_key.get(key)
        if value is None:
            value = self._by_key[key] = self._capture(weight, key)
        writer = self._tracer.writer
        start, count = layout.start, layout.count
        if count != weight.size:
            rows = weight.size // weight.shape[0]
            if start % rows or count % rows:
                value = writer.reshape(value, (weight.size,))
                rows = 1
            ends = ((start + count) // rows,)
            value = writer.emit("Slice", value, starts=(start // rows,), ends=ends, axes=(0,))
        value = writer.reshape(value, layout.stored)
        if layout.order != tuple(range(len(layout.order))):
            value = writer.emit("Transpose", value, perm=layout.order)
        if layout.shape != value.shape:
            value = writer.emit("Expand", value, shape=layout.shape)
        if value.node is not None:
            value.label = self._view_name(owner)
        return value

    def _view_name(self, owner: str) -> str:
        while True:
            count = self._view_counts.get(owner, 0) + 1
            self._view_counts[owner] = count
            if f"{owner}.view_{count}" not in self._names:
                return f"{owner}.view_{count}"

    def number(self, held: Array) -> GraphValue:
        """The value of a 0-d array, shared by all of equal dtype and bits."""
        key = (held.dtype, held.tobytes())
        value = self._by_bits.get(key)
        if value is None:
            copied = held.copy()
            value = self._by_bits[key] = GraphValue(
                self._tracer, held.dtype, (), "constant", copied
            )
        return value

    def scalar(self, number: float | bool, dtype: str) -> GraphValue:
        """The 0-d constant of a Python number."""
        return self.number(Array.full((), number, dtype))

    def integers(self, numbers: Sequence[int] | int) -> GraphValue:
        """The int64 constant of a list of numbers (1-d) or of one number (0-d)."""
        key = numbers if isinstance(numbers, int) else tuple(numbers)
        value = self._integers.get(key)
        if value is None:
            shape = () if isinstance(key, int) else (len(key),)
            flat = array.array("q", (key,) if isinstance(key, int) else key)
            held = (
                Array.from_buffer(flat, "int64", shape)
                if len(flat)
                else Array.full((0,), 0, "int64")
            )
            value = self._integers[key] = GraphValue(self._tracer, "int64", shape, "constant", held)
        return value

    def floats(self, numbers: Sequence[float]) -> GraphValue:
        """The 1-d float32 constant of a list of numbers."""
        return self.add(Array.from_buffer(array.array("f", numbers), "float32", (len(numbers),)))

    def filled(self, number: float | bool, shape: tuple[int, ...], dtype: str) -> GraphValue:
        """The constant with one number in every place."""
        key = (number, shape, dtype)
        value = self._filled.get(key)
        if value is None:
            value = self._filled[key] = self.add(Array.full(shape, number, dtype))
        return value

    def add(self, held: Array) -> GraphValue:
        """A constant that the tracer made itself; the array is kept as it is."""
        return GraphValue(self._tracer, held.dtype, held.shape, "constant", held)

    def check_unchanged(self) -> None:
        """Raise when a captured constant was written into since it was captured.

        Raises:
            TraceException: IN_PLACE_MUTATION naming the constant.
        """
        for value, held, version in self._versions:
            if held.version != version:
                named = (
                    "a constant" if value.label in ("", "constant") else f"constant {value.label!r}"
                )
                raise TraceException(
                    TraceErrorKind.IN_PLACE_MUTATION,
                    f"{named} of shape {held.shape} and dtype {held.dtype} was written into after an "
                    "operator of this trace had used it, so the graph would hold the earlier values; "
                    "write before the trace, or make the tensor an input",
                )


def _key(held: Array) -> _Key:
    return held.storage_id, held.offset, held.shape, held.strides, held.dtype
