"""Writes nodes of the recorded graph, with their types inferred from the operator facts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from onemodel_kernels import ops
from onemodel_kernels.ops import OpSpec, extents
from onemodel_trace.constants import ConstantTable
from onemodel_trace.extents import ExtentScope
from onemodel_trace.graph_value import GraphValue, PendingNode, SymbolicShape
from onemodel_trace.shape_arithmetic import ShapeArithmetic

if TYPE_CHECKING:
    from onemodel_trace.tracer import Tracer

# Operands that are not a 1-d int64 list: a 0-d int64, a 0-d number of the first input's dtype,
# or a float32 list.
_SCALAR_OPERANDS = {("CumSum", "axis"), ("Trilu", "k"), ("OneHot", "depth")}
_LIKE_INPUT = {("Clip", "min"), ("Clip", "max"), ("Pad", "constant_value")}
_FLOAT_LISTS = {("Resize", "scales"), ("Resize", "roi")}
# Attributes that the specs have for the sake of kernels and ONNX does not know.
_NOT_IN_ONNX = {("Range", "dtype")}


class GraphWriter:
    """Collects nodes in order; what no output needs is left out when the graph is built.

    Attributes:
        nodes: Recorded nodes in order.
        constants: The constants.
        scope: Symbols and guards.
        sizes: Writes extents as values.
    """

    def __init__(self, tracer: Tracer, scope: ExtentScope, limit: int) -> None:
        self.tracer = tracer
        self.scope = scope
        self.nodes: list[PendingNode] = []
        self.constants = ConstantTable(tracer, limit)
        self.sizes = ShapeArithmetic(self)

    def release(self) -> None:
        """Let go of all nodes and constants: tensors of the run may outlive the trace."""
        for node in self.nodes:
            node.inputs.clear()
            node.outputs.clear()
        self.nodes.clear()
        self.constants = ConstantTable(self.tracer, 0)
        self.sizes = ShapeArithmetic(self)

    def node(
        self,
        operator: str,
        inputs: list[GraphValue | None],
        type: tuple[str, SymbolicShape],
        attributes: dict[str, Any] | None = None,
    ) -> GraphValue:
        """Add a node with one output whose type is known."""
        return self._add(operator, inputs, [type], attributes or {})[0]

    def _add(
        self,
        operator: str,
        inputs: list[GraphValue | None],
        types: Sequence[tuple[str, SymbolicShape]],
        attributes: dict[str, Any],
        domain: str = "",
    ) -> list[GraphValue]:
        outputs: list[GraphValue] = []
        pending = PendingNode(domain, operator, inputs, attributes, outputs)
        for dtype, shape in types:
            value = GraphValue(self.tracer, dtype, shape)
            value.node = pending
            outputs.append(value)
            for extent in shape:
                if type(extent) is not int:
                    self.sizes.hold(value)
                    break
        self.nodes.append(pending)
        return outputs

    def emit(self, operator: str, *inputs: GraphValue | None, **attributes: Any) -> GraphValue:
        """Add a node of an ONNX operator and give its first output.

        Args:
            operator: Its name; operands (inputs that carry sizes or axes) go by keyword.
            inputs: The tensor inputs in order, None for an absent optional one.
            attributes: Attributes and operands; None leaves one out.
        """
        return self.emit_spec(_spec(operator), list(inputs), attributes, 1)[0]

    def emit_many(
        self, operator: str, count: int, *inputs: GraphValue | None, **attributes: Any
    ) -> tuple[GraphValue, ...]:
        """As :meth:`emit` for the first so many outputs."""
        return tuple(self.emit_spec(_spec(operator), list(inputs), attributes, count))

    def emit_spec(
        self,
        spec: OpSpec,
        inputs: list[GraphValue | None],
        attributes: dict[str, Any],
        outputs: int,
    ) -> list[GraphValue]:
        """As :meth:`emit_many` for a spec that was looked up before."""
        attributes = {name: value for name, value in attributes.items() if value is not None}
        shapes: list[SymbolicShape | None] = []
        dtypes: list[str | None] = []
        for value in inputs:
            shapes.append(None if value is None else value.shape)
            dtypes.append(None if value is None else value.dtype)
        types = spec.infer(shapes, dtypes, attributes)[:outputs]
        domain = "" if spec.domain in ops.RESERVED_DOMAINS else spec.domain
        if not spec.operands:
            return self._add(spec.name, inputs, types, attributes, domain)
        placed = self._place_operands(spec, inputs, attributes, types)
        kept = {
            name: value
            for name, value in attributes.items()
            if name in spec.attributes and (spec.name, name) not in _NOT_IN_ONNX
        }
        return self._add(spec.name, placed, types, kept, domain)

    def _place_operands(
        self,
        spec: OpSpec,
        inputs: list[GraphValue | None],
        attributes: dict[str, Any],
        types: Sequence[tuple[str, SymbolicShape]],
    ) -> list[GraphValue | None]:
        tensors = iter(inputs)
        placed: list[GraphValue | None] = []
        for entry in spec.inputs:
            if entry.kind == "tensor":
                placed.extend(tensors if entry.variadic else [next(tensors, None)])
                continue
            operand = attributes.get(entry.name)
            if operand is None:
                placed.append(None)
                continue
            own = spec.domain in ops.RESERVED_DOMAINS
            named = spec.name if own else f"{spec.domain}::{spec.name}"
            placed.append(self._operand(named, entry.name, operand, inputs, types))
        while placed and placed[-1] is None:
            placed.pop()
        return placed

    def _operand(
        self,
        operator: str,
        name: str,
        operand: Any,
        inputs: list[GraphValue | None],
        types: Sequence[tuple[str, SymbolicShape]],
    ) -> GraphValue:
        key = (operator, name)
        if operator == "Expand":
            source = inputs[0]
            assert source is not None
            return self.sizes.expand_operand(source.shape, types[0][1])
        if key in _LIKE_INPUT:
            source = inputs[0]
            assert source is not None
            return self.constants.scalar(_first(operand), source.dtype)
        if operator == "Range":
            return self._range_operand(_first(operand), types[0][0])
        if key in _SCALAR_OPERANDS:
            return self.sizes.scalar(_first(operand))
        if key in _FLOAT_LISTS:
            return self.constants.floats(operand)
        listed = operand if isinstance(operand, tuple | list) else (operand,)
        return self.sizes.vector([_plain(entry) for entry in listed])

    def _range_operand(self, operand: Any, dtype: str) -> GraphValue:
        if isinstance(operand, int | float):
            return self.constants.scalar(operand, dtype)
        value = self.sizes.scalar(operand)
        return value if dtype == "int64" else self.emit("Cast", value, to=dtype)

    def reshape(self, value: GraphValue, shape: Sequence[Any]) -> GraphValue:
        """The value under another shape, one extent of which may be -1; itself if nothing changes."""
        target = extents.reshape(value.shape, tuple(shape), allowzero=True)
        if target == value.shape:
            return value
        if all(type(extent) is int for extent in target):
            attributes = {"allowzero": 1} if 0 in target else {}
            operand = self.constants.integers(target)
            return self.node("Reshape", [value, operand], (value.dtype, target), attributes)
        operand, computed = self.sizes.reshape_operand(target)
        # A 0 in the operand is an empty axis, also one that a run computes; never "copy the input's".
        zero = computed or 0 in [extent for extent in target if type(extent) is int]
        attributes = {"allowzero": 1} if zero else {}
        return self.node("Reshape", [value, operand], (value.dtype, target), attributes)

    def filled(self, number: float | bool, shape: Sequence[Any], dtype: str) -> GraphValue:
        """A value with one number in every place."""
        if all(type(extent) is int for extent in shape):
            return self.constants.filled(number, tuple(shape), dtype)
        source = self.constants.scalar(number, dtype)
        return self.node("Expand", [source, self.sizes.vector(shape)], (dtype, tuple(shape)))

    def scalar(self, number: float | bool, like: GraphValue) -> GraphValue:
        """The 0-d constant of a number in another value's dtype."""
        return self.constants.scalar(number, like.dtype)


_spec = cache(ops.get)
"""The spec of an operator that a lowering names: specs are never exchanged."""


def _first(operand: Any) -> Any:
    return operand[0] if isinstance(operand, tuple | list) else operand


def _plain(entry: Any) -> Any:
    return int(entry) if isinstance(entry, bool) else entry
