"""The symbols of one trace, the atoms made from them, and the facts that the trace relies on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from onemodel_trace.extents import bounds
from onemodel_trace.extents.bounds import SymbolRange
from onemodel_trace.extents.expression import (
    Atom,
    Expression,
    Monomial,
    add,
    constant,
    exact_quotient,
    of_atom,
    scale,
    subtract,
)

if TYPE_CHECKING:
    from onemodel_tensors.recording import Recorder
    from onemodel_trace.errors import TraceException

_RELATIONS: dict[str, Callable[[int], bool]] = {
    "==": lambda s: s == 0,
    "!=": lambda s: s != 0,
    "<": lambda s: s < 0,
    "<=": lambda s: s <= 0,
    ">": lambda s: s > 0,
    ">=": lambda s: s >= 0,
}


@dataclass(frozen=True, slots=True)
class Axis:
    """Name of a symbolic axis and the sizes that it may have.

    Attributes:
        name: The name in the graph (``dim_param``); the same name is the same size everywhere.
        minimum: Least permitted size. Undeclared axes are at least 1.
        maximum: Greatest permitted size, None for no limit.
        multiple: Every permitted size is a multiple of it.

    Declared limits become part of the graph: a session rejects sizes outside them.
    """

    name: str
    minimum: int | None = None
    maximum: int | None = None
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Guard:
    """A relation between extents that the graph relies on.

    Attributes:
        relation: "==", "!=", "<", "<=", ">", ">=" or "%" (left is a multiple of right).
        left: Left side.
        right: Right side.
        reason: What made the trace rely on it.
        location: The user's ``file:line``; kept in memory only, never written to a file.
    """

    relation: str
    left: Expression
    right: Expression
    reason: str = field(default="", compare=False)
    location: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The relation in the user's axis names."""
        if self.relation == "%":
            return f"{self.left.text()} % {self.right.text()} == 0"
        return f"{self.left.text()} {self.relation} {self.right.text()}"

    def source(self) -> str:
        """The relation as it is written into a file; see :meth:`Expression.source`."""
        left, right = self.left.source(), self.right.source()
        return (
            f"({left}) % {right} == 0"
            if self.relation == "%"
            else f"{left} {self.relation} {right}"
        )

    def holds(self, sizes: dict[str, int]) -> bool:
        """Whether the relation is true when the symbols have these sizes."""
        left, right = self.left.evaluate(sizes), self.right.evaluate(sizes)
        if self.relation == "%":
            return left % right == 0
        return _RELATIONS[self.relation](left - right)


class ExtentScope:
    """Symbols, derived atoms and guards of one recording.

    Atoms are interned: the same formula is the same atom, so extents of parallel branches of a
    model compare equal without search.

    Attributes:
        recorder: The tracer while it records; None makes the extents of this scope plain numbers.
        axes: Declared axes by name, in order of declaration.
        note_refusal: Remembers what an extent of this scope refused.
    """

    def __init__(
        self,
        locate: Callable[[], str | None] = lambda: None,
        note_refusal: Callable[[TraceException], None] = lambda _: None,
    ) -> None:
        self.note_refusal = note_refusal
        self.recorder: Recorder | None = None
        self.axes: dict[str, Axis] = {}
        self._symbols: dict[str, Atom] = {}
        self._derived: dict[tuple[str, Expression, Expression], Atom] = {}
        self._atom_count = 0
        self._guards: dict[Guard, Guard] = {}
        self._locate = locate
        self.remembered: dict[tuple[Any, ...], Any] = {}
        """Results of shape inference by operation and arguments: models repeat their layers."""

    def declare(self, axis: Axis, example: int) -> Expression:
        """The expression of a symbol, declared now or before with the same limits.

        Raises:
            ValueError: The limits contradict the example, each other or an earlier declaration.
        """
        atom = self._symbols.get(axis.name)
        if atom is None:
            _check_limits(axis, example)
            atom = Atom(
                self._atom_count, "symbol", axis.name, (), example // axis.multiple, axis.multiple
            )
            self._atom_count += 1
            self._symbols[axis.name] = atom
            self.axes[axis.name] = axis
        elif axis not in (self.axes[axis.name], Axis(axis.name)):
            raise ValueError(f"axis {axis.name!r} was declared before as {self.axes[axis.name]}")
        return _size_of(atom)

    def symbol_sizes(self) -> dict[str, int]:
        """Example size of every declared symbol, in order of declaration."""
        return {name: atom.example * atom.unit for name, atom in self._symbols.items()}

    @property
    def guards(self) -> list[Guard]:
        """Declared limits first, then the facts that were relied on, in order of recording."""
        declared: list[Guard] = []
        for name, axis in self.axes.items():
            size = _size_of(self._symbols[name])
            if axis.minimum is not None:
                declared.append(Guard(">=", size, constant(axis.minimum), "declared minimum"))
            if axis.maximum is not None:
                declared.append(Guard("<=", size, constant(axis.maximum), "declared maximum"))
            if axis.multiple != 1:
                declared.append(Guard("%", size, constant(axis.multiple), "declared multiple"))
        return declared + [guard for guard in self._guards.values() if guard not in declared]

    def assume(self, relation: str, left: Expression, right: Expression, reason: str) -> None:
        """Record a fact that holds for the example and must hold at every run."""
        guard = Guard(relation, left, right, reason)
        if guard not in self._guards:
            self._guards[guard] = replace(guard, location=self._locate())

    def permitted(self, atom: Atom) -> SymbolRange:
        """Values that a symbol's atom may have: the declared ones, at least 1 by default."""
        return self._range(atom, 1)

    def _declared(self, atom: Atom) -> SymbolRange:
        return self._range(atom, 0)

    def _range(self, atom: Atom, default: int) -> SymbolRange:
        axis = self.axes[atom.name]
        minimum = default if axis.minimum is None else axis.minimum
        maximum = None if axis.maximum is None else axis.maximum // atom.unit
        return SymbolRange(-(-minimum // atom.unit), maximum)

    def sign(self, difference: Expression) -> int | None:
        """-1, 0 or 1 if it is the same for every permitted size, else None.

        When the answer needs that an undeclared axis is not empty, that becomes a guard.
        """
        result = bounds.sign(difference, self._declared)
        if result is None:
            result = bounds.sign(difference, self.permitted)
            if result is not None:
                self._rely_on_non_empty(difference)
        return result

    def surely_at_least(self, expression: Expression, least: int) -> bool:
        """As :meth:`at_least`, without relying on axes that are not empty."""
        low = bounds.bounds(expression, self._declared)[0]
        return low is not None and low >= least

    def at_least(self, expression: Expression, least: int) -> bool:
        """Whether the expression is shown to be >= a number for every permitted size."""
        if self.surely_at_least(expression, least):
            return True
        low = bounds.bounds(expression, self.permitted)[0]
        if low is not None and low >= least:
            self._rely_on_non_empty(expression)
            return True
        return False

    def at_most(self, expression: Expression, most: int) -> bool:
        """Whether the expression is shown to be <= a number for every permitted size."""
        return self.at_least(scale(expression, -1), -most)

    def decide(self, left: Expression, relation: str, right: Expression) -> bool | None:
        """The truth of a relation if it is the same for every permitted size, else None."""
        difference = subtract(left, right)
        if relation in ("==", "!="):
            if not difference.terms:
                return relation == "=="
            if bounds.never_zero(difference, self._declared):
                return relation == "!="
            sign = self.sign(difference)
            if sign is not None:
                return _RELATIONS[relation](sign)
            if bounds.never_zero(difference, self.permitted):
                self._rely_on_non_empty(difference)
                return relation == "!="
            return None
        if relation == "<":
            true, false = self._ordered(difference, -1, 0)
        elif relation == "<=":
            true, false = self._ordered(difference, 0, 1)
        else:
            opposite = self.decide(left, "<=" if relation == ">" else "<", right)
            return None if opposite is None else not opposite
        return True if true else False if false else None

    def _ordered(self, difference: Expression, most: int, least: int) -> tuple[bool, bool]:
        if self.at_most(difference, most):
            return True, False
        return False, self.at_least(difference, least)

    def _rely_on_non_empty(self, expression: Expression) -> None:
        for symbol in expression.symbols():
            if self.axes[symbol.name].minimum is None:
                self.assume(">=", _size_of(symbol), constant(1), "the axis is not empty")

    def floor_quotient(self, numerator: Expression, denominator: Expression) -> Expression:
        """Floor division in normal form: what divides exactly is taken out of the atom."""
        exact = exact_quotient(numerator, denominator)
        if exact is not None:
            return exact
        divisor = denominator.constant
        if divisor == 0:
            raise ZeroDivisionError("an extent was divided by 0")
        if divisor is None:
            return self._derive("floordiv", numerator, denominator)
        if divisor < 0:
            return self.floor_quotient(scale(numerator, -1), constant(-divisor))
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for atoms, factor in numerator.terms:
            if not atoms:
                whole[atoms] = factor // divisor
                rest[atoms] = factor % divisor
            elif factor % divisor == 0:
                whole[atoms] = factor // divisor
            else:
                rest[atoms] = factor
        return add(Expression(whole), self._reduced_quotient(Expression(rest), divisor))

    def _reduced_quotient(self, numerator: Expression, divisor: int) -> Expression:
        if numerator.constant is not None:
            return constant(numerator.constant // divisor)
        if numerator.terms[0][1] < 0:
            # floor(-n/d) is -ceil(n/d): one atom serves both.
            opposite = add(scale(numerator, -1), constant(divisor - 1))
            return scale(self.floor_quotient(opposite, constant(divisor)), -1)
        varying = Expression({atoms: factor for atoms, factor in numerator.terms if atoms})
        common = divisor
        for _, factor in varying.terms:
            common = _gcd(common, factor)
        if common > 1:
            reduced = exact_quotient(varying, constant(common))
            assert reduced is not None
            numerator = add(reduced, constant(numerator.offset // common))
            return self.floor_quotient(numerator, constant(divisor // common))
        single = varying.monomial
        if single is not None and single[0] == 1 and len(single[1]) == 1:
            atom = single[1][0]
            inner = atom.operands[1].constant if atom.kind == "floordiv" else None
            if inner is not None and inner > 0:
                shifted = add(atom.operands[0], constant(numerator.offset * inner))
                return self.floor_quotient(shifted, constant(divisor * inner))
        return self._derive("floordiv", numerator, constant(divisor))

    def greatest(self, left: Expression, right: Expression) -> Expression:
        """The larger of two expressions: one of them where that is certain, else an atom."""
        if self.at_least(subtract(left, right), 0):
            return left
        if self.at_least(subtract(right, left), 0):
            return right
        return self._derive("max", *_in_order(left, right))

    def least(self, left: Expression, right: Expression) -> Expression:
        """The smaller of two expressions: one of them where that is certain, else an atom."""
        if self.at_least(subtract(right, left), 0):
            return left
        if self.at_least(subtract(left, right), 0):
            return right
        return self._derive("min", *_in_order(left, right))

    def _derive(self, kind: str, left: Expression, right: Expression) -> Expression:
        key = (kind, left, right)
        atom = self._derived.get(key)
        if atom is None:
            if kind == "floordiv":
                example = left.example // right.example
            else:
                choose = max if kind == "max" else min
                example = choose(left.example, right.example)
            atom = Atom(self._atom_count, kind, "", (left, right), example)
            self._atom_count += 1
            self._derived[key] = atom
        return of_atom(atom)


def holds(relation: str, left: int, right: int) -> bool:
    """Whether a relation is true of two numbers."""
    return _RELATIONS[relation](left - right)


def _size_of(symbol: Atom) -> Expression:
    return Expression({(symbol,): symbol.unit})


def _check_limits(axis: Axis, example: int) -> None:
    if axis.multiple < 1 or (axis.minimum is not None and axis.minimum < 0):
        raise ValueError(f"axis {axis.name!r}: multiple must be positive and minimum not negative")
    fits = example % axis.multiple == 0 and example >= (axis.minimum or 0)
    if not fits or (axis.maximum is not None and example > axis.maximum):
        raise ValueError(f"axis {axis.name!r}: the example size {example} is outside {axis}")


def _gcd(left: int, right: int) -> int:
    while right:
        left, right = right, left % right
    return abs(left)


def _in_order(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    return (left, right) if left.text() <= right.text() else (right, left)
