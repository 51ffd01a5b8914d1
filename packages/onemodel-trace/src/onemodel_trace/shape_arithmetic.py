"""Writes extents as nodes: the shape operand of a Reshape, the end of a slice, a size as a value.

An extent is read with ``Shape`` from a value that has it as an axis (its holder, a graph input if
there is one) or computed from its parts. Chains are cached, and a session evaluates them once for
each input shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onemodel_trace.extents import Expression
from onemodel_trace.extents.expression import Atom, of_atom

if TYPE_CHECKING:
    from onemodel_trace.graph_value import GraphValue
    from onemodel_trace.graph_writer import GraphWriter


class ShapeArithmetic:
    """The part of a writer that turns extents into int64 values."""

    def __init__(self, writer: GraphWriter) -> None:
        self._writer = writer
        self._holders: dict[Expression, tuple[GraphValue, int]] = {}
        self._computed: dict[Expression, GraphValue] = {}
        self._scalars: dict[Expression, GraphValue] = {}
        self._runs: dict[tuple[GraphValue, int, int], GraphValue] = {}

    def hold(self, value: GraphValue) -> None:
        """Let a new value serve as the holder of extents that none has yet."""
        for axis, extent in enumerate(value.shape):
            if type(extent) is not int and extent.expression not in self._holders:
                self._holders[extent.expression] = (value, axis)

    def vector(self, extents: Sequence[Any]) -> GraphValue:
        """A 1-d int64 value of the extents: a constant, or parts read and computed and joined."""
        parts: list[GraphValue] = []
        numbers: list[int] = []
        position = 0
        while position < len(extents):
            extent = extents[position]
            if type(extent) is int:
                numbers.append(extent)
                position += 1
                continue
            if numbers:
                parts.append(self._writer.constants.integers(numbers))
                numbers = []
            holder = self._holders.get(extent.expression)
            if holder is None:
                parts.append(self.single(extent.expression))
                position += 1
                continue
            count = self._run_length(holder, extents, position)
            parts.append(self._shape(holder[0], holder[1], holder[1] + count))
            position += count
        if numbers or not parts:
            parts.append(self._writer.constants.integers(numbers))
        if len(parts) == 1:
            return parts[0]
        return self._writer.emit("Concat", *parts, axis=0)

    def _run_length(
        self, holder: tuple[GraphValue, int], extents: Sequence[Any], position: int
    ) -> int:
        """How many of the following extents are consecutive symbolic axes of the same holder."""
        value, axis = holder
        count = 1
        while position + count < len(extents) and axis + count < value.rank:
            extent = extents[position + count]
            if type(extent) is int or value.shape[axis + count] != extent:
                break
            count += 1
        return count

    def scalar(self, extent: Any) -> GraphValue:
        """A 0-d int64 value of an extent."""
        if type(extent) is int:
            return self._writer.constants.integers(extent)
        expression = extent.expression
        value = self._scalars.get(expression)
        if value is None:
            axes = self._writer.constants.integers([0])
            value = self._writer.node("Squeeze", [self.single(expression), axes], ("int64", ()))
            self._scalars[expression] = value
        return value

    def single(self, expression: Expression) -> GraphValue:
        """A 1-d int64 value of one element."""
        holder = self._holders.get(expression)
        if holder is not None:
            return self._shape(holder[0], holder[1], holder[1] + 1)
        value = self._computed.get(expression)
        if value is None:
            number = expression.constant
            if number is not None:
                return self._writer.constants.integers([number])
            value = self._computed[expression] = self._compute(expression)
        return value

    def _shape(self, holder: GraphValue, start: int, end: int) -> GraphValue:
        key = (holder, start, end)
        value = self._runs.get(key)
        if value is None:
            value = self._writer.emit("Shape", holder, start=start, end=end)
            self._runs[key] = value
        return value

    def _compute(self, expression: Expression) -> GraphValue:
        single = expression.monomial
        if single is not None:
            return self._product(*single)
        total: GraphValue | None = None
        for atoms, factor in expression.terms:
            if total is not None and factor < 0:
                term = self.single(Expression({atoms: -factor}))
                total = self._binary("Sub", total, term)
                continue
            term = self.single(Expression({atoms: factor}))
            total = term if total is None else self._binary("Add", total, term)
        assert total is not None
        return total

    def _product(self, factor: int, atoms: tuple[Atom, ...]) -> GraphValue:
        result: GraphValue | None = None
        for atom in atoms:
            if atom.unit > 1 and factor % atom.unit == 0:
                factor //= atom.unit
                part = self.single(Expression({(atom,): atom.unit}))
            elif len(atoms) == 1 and factor == 1:
                part = self._atom(atom)
            else:
                part = self.single(of_atom(atom))
            result = part if result is None else self._binary("Mul", result, part)
        assert result is not None
        if factor == 1:
            return result
        return self._binary("Mul", result, self._writer.constants.integers([factor]))

    def _atom(self, atom: Atom) -> GraphValue:
        if atom.kind == "symbol":
            size = self.single(Expression({(atom,): atom.unit}))
            return self._binary("Div", size, self._writer.constants.integers([atom.unit]))
        left, right = (self.single(operand) for operand in atom.operands)
        if atom.kind != "floordiv":
            return self._binary(atom.kind.capitalize(), left, right)
        numerator, denominator = atom.operands
        scope = self._writer.scope
        if scope.surely_at_least(numerator, 0) and scope.surely_at_least(denominator, 0):
            return self._binary("Div", left, right)
        # ONNX divides towards zero; what Mod leaves has the divisor's sign, so this floors.
        whole = self._binary("Sub", left, self._binary("Mod", left, right))
        return self._binary("Div", whole, right)

    def _binary(self, operator: str, left: GraphValue, right: GraphValue) -> GraphValue:
        return self._writer.node(operator, [left, right], ("int64", (1,)))

    def reshape_operand(self, target: Sequence[Any]) -> tuple[GraphValue, bool]:
        """The shape operand of a Reshape, constants, one -1, or a chain; and whether a run computes it."""
        symbolic = [axis for axis, extent in enumerate(target) if type(extent) is not int]
        if len(symbolic) == 1 and 0 not in [e for e in target if type(e) is int]:
            numbers = [extent if type(extent) is int else -1 for extent in target]
            return self._writer.constants.integers(numbers), False
        return self.vector(target), bool(symbolic)

    def expand_operand(self, shape: Sequence[Any], target: Sequence[Any]) -> GraphValue:
        """The shape operand of an Expand: 1 for axes that keep their extent."""
        offset = len(target) - len(shape)
        asked: list[Any] = []
        for axis, extent in enumerate(target):
            kept = axis >= offset and shape[axis - offset] == extent
            asked.append(1 if kept else extent)
        return self.vector(asked)
