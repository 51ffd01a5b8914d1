"""Constants of a trace: weights, buffers and numbers, each kept once under its name."""

from __future__ import annotations

import array
from collections.abc import Sequence
from itertools import chain
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

_Captured = tuple[GraphValue, Array, int]
"""A value, the array that it was made of, and the version of its storage then."""


class ConstantTable:
    """Finds the value of a constant tensor by what it shows: storage, offset, shape and strides.

    Arrays are looked at in full only where two of them share a storage: a model has thousands.

    Args:
        tracer: The tracer that the values belong to.
        limit: Greatest size of one constant in bytes.
    """

    def __init__(self, tracer: Tracer, limit: int = MAX_CONSTANT_BYTES) -> None:
        self._tracer = tracer
        self._limit = limit
        # By storage what was captured and named first, and what shows the same storage otherwise.
        self._captured: dict[int, _Captured] = {}
        self._other_views: dict[int, list[_Captured]] = {}
        self._named: dict[int, str] = {}
        self._named_views: dict[int, list[tuple[Array, str]]] = {}
        self._names: dict[str, Array] = {}
        self._numbers: list[_Captured] = []
        self._by_bits: dict[tuple[str, bytes], GraphValue] = {}
        self._scalars: dict[tuple[float | bool, str], GraphValue] = {}
        self._filled: dict[tuple[Any, ...], GraphValue] = {}
        self._integers: dict[tuple[int, ...] | int, GraphValue] = {}
        self._view_counts: dict[str, int] = {}

    def name(self, name: str, tensor: Tensor) -> None:
        """Give a constant tensor a name; the first name of tied weights stays.

        Raises:
            TraceException: INVALID_USAGE for an empty or repeated name and for a captured tensor.
        """
        held = tensor._array
        known = self._names.setdefault(name, held)
        if not _alike(known, held):
            raise TraceException(
                TraceErrorKind.INVALID_USAGE, f"parameter: the name {name!r} is used twice"
            )
        storage = held.storage_id
        if self._name_of(storage, held) is not None:
            return
        if self._value_of(storage, held) is not None:
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"parameter {name!r}: the tensor of shape {held.shape} was already used by a recorded "
                "operator; name parameters before the model runs",
            )
        if storage in self._named:
            self._named_views.setdefault(storage, []).append((held, name))
        else:
            self._named[storage] = name

    @property
    def names(self) -> set[str]:
        """Names given by :meth:`name`."""
        return set(self._names)

    def capture(self, tensor: Tensor) -> GraphValue:
        """The value of a tensor that does not depend on an input."""
        held = tensor._array
        storage = held.storage_id
        first = self._captured.get(storage)
        if first is not None:
            if first[1] is held:
                return first[0]
        else:
            named = self._named.get(storage)
            if named is not None and self._names[named] is held:
                return self._keep(storage, held, self._made(held, named))
        if held.ndim == 0 and storage not in self._named:
            value = self.number(held)
            self._numbers.append((value, held, held.version))
            return value
        return self._of(storage, held)

    def _of(self, storage: int, held: Array) -> GraphValue:
        """The value of an array, the same one for all that show the same elements of a storage."""
        value = self._value_of(storage, held)
        if value is None:
            value = self._keep(storage, held, self._capture(storage, held))
        return value

    def _keep(self, storage: int, held: Array, value: GraphValue) -> GraphValue:
        captured = (value, held, held.version)
        if storage in self._captured:
            self._other_views.setdefault(storage, []).append(captured)
        else:
            self._captured[storage] = captured
        return value

    def _value_of(self, storage: int, held: Array) -> GraphValue | None:
        """The value of what an array shows, if that was captured."""
        first = self._captured.get(storage)
        if first is None:
            return None
        for value, shown, _ in [first, *self._other_views.get(storage, [])]:
            if _alike(shown, held):
                return value
        return None

    def _name_of(self, storage: int, held: Array) -> str | None:
        """The name of what an array shows, if it has one."""
        first = self._named.get(storage)
        if first is None:
            return None
        for shown, name in [(self._names[first], first), *self._named_views.get(storage, [])]:
            if _alike(shown, held):
                return name
        return None

    def _capture(self, storage: int, held: Array) -> GraphValue:
        owner = self._named.get(storage)
        if owner is None:
            return self._made(held, "")
        own = self._name_of(storage, held)
        if own is None:
            weight = self._names[owner]
            layout = view_layout(weight, held)
            if layout is not None:
                return self._view_of(weight, layout, owner)
            own = self._view_name(owner)
        return self._made(held, own)

    def _made(self, held: Array, label: str) -> GraphValue:
        size = held.nbytes
        if size > self._limit:
            raise TraceException(
                TraceErrorKind.UNSUPPORTED_OPERATION,
                f"a constant of shape {held.shape} and dtype {held.dtype} holds {size} bytes, "
                f"the greatest that a graph can hold is {self._limit}; split it, or make it an input",
            )
        return GraphValue(self._tracer, held.dtype, held.shape, label, held.late_copy())

    def _view_of(self, weight: Array, layout: ViewLayout, owner: str) -> GraphValue:
        """A view of a named weight as nodes on it, so that the weight is there once, as it is stored."""
        value = self._of(weight.storage_id, weight)
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
        # Zeros differ by their sign and NaN equals nothing: both are told apart by their bits.
        key = (number, dtype)
        value = self._scalars.get(key) if number else None
        if value is None:
            value = self._scalars[key] = self.number(Array.full((), number, dtype))
        return value

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
        kept = (self._captured.values(), *self._other_views.values(), self._numbers)
        for value, held, version in chain.from_iterable(kept):
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


def _alike(one: Array, other: Array) -> bool:
    """Whether two arrays show the same elements of one storage."""
    return one is other or (
        one.storage_id == other.storage_id
        and one.offset == other.offset
        and one.shape == other.shape
        and one.strides == other.strides
        and one.dtype == other.dtype
    )
