"""What is true of an expression for every permitted size.

Lower and upper bounds by interval arithmetic after shifting each atom by its least value, so that
``T*T - T`` over T >= 1 is seen to be non-negative. A floor division ``q = n // d`` by a plain
number also takes part through ``d*q = n - r`` with ``0 <= r < d``, which relates ``4*(H//4)`` to H.
Bounds are always valid and not always tight: a question that they leave open is answered "unknown".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from onemodel_trace.extents.expression import Atom, Expression

Range = tuple[int | None, int | None]
_Term = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SymbolRange:
    """Least and greatest value (None: unbounded) of a symbol's atom."""

    minimum: int
    maximum: int | None


RangeOf = Callable[[Atom], SymbolRange]


def bounds(expression: Expression, range_of: RangeOf) -> Range:
    """Least and greatest value over all permitted sizes; None where no bound was found."""
    variables: dict[int, Range] = {}
    terms: dict[_Term, int] = {}
    for atoms, factor in expression.terms:
        for atom in atoms:
            if atom.index not in variables:
                variables[atom.index] = _atom_range(atom, range_of)
        terms[tuple(atom.index for atom in atoms)] = factor
    best = _shifted_bounds(terms, variables)
    for atom in expression.atoms():
        if atom.kind == "floordiv":
            best = _intersect(best, _bounds_without(expression, atom, range_of))
    return best


def _bounds_without(expression: Expression, quotient: Atom, range_of: RangeOf) -> Range:
    """Bounds after replacing ``q`` by ``(n - r)/d``; all terms are multiplied by d first."""
    numerator, denominator = quotient.operands
    divisor = denominator.constant
    if divisor is None or divisor <= 0:
        return None, None
    if any(atoms.count(quotient) > 1 for atoms, _ in expression.terms):
        return None, None
    known = remainder(numerator, divisor)
    variables: dict[int, Range] = {-1: (0, divisor - 1) if known is None else (known, known)}
    terms: dict[_Term, int] = {}

    def accumulate(atoms: tuple[Atom, ...], remainder: bool, factor: int) -> None:
        for atom in atoms:
            if atom.index not in variables:
                variables[atom.index] = _atom_range(atom, range_of)
        key = tuple(sorted([atom.index for atom in atoms] + ([-1] if remainder else [])))
        terms[key] = terms.get(key, 0) + factor

    for atoms, factor in expression.terms:
        if quotient not in atoms:
            accumulate(atoms, False, factor * divisor)
            continue
        others = tuple(atom for atom in atoms if atom is not quotient)
        for number_atoms, number_factor in numerator.terms:
            accumulate(others + number_atoms, False, factor * number_factor)
        accumulate(others, True, -factor)
    low, high = _shifted_bounds(terms, variables)
    return None if low is None else -(-low // divisor), None if high is None else high // divisor


def _atom_range(atom: Atom, range_of: RangeOf) -> Range:
    if atom.kind == "symbol":
        declared = range_of(atom)
        return declared.minimum, declared.maximum
    left, right = (bounds(operand, range_of) for operand in atom.operands)
    if atom.kind == "floordiv":
        return _quotient_range(left, right)
    pick = max if atom.kind == "max" else min
    lows, highs = (left[0], right[0]), (left[1], right[1])
    known_lows = [low for low in lows if low is not None]
    known_highs = [high for high in highs if high is not None]
    if atom.kind == "max":
        low = pick(known_lows) if known_lows else None
        return low, pick(known_highs) if len(known_highs) == 2 else None
    low = pick(known_lows) if len(known_lows) == 2 else None
    return low, pick(known_highs) if known_highs else None


def _quotient_range(numerator: Range, denominator: Range) -> Range:
    least = denominator[0]
    if least is None or least < 1:
        return None, None
    low, high = numerator
    if low is not None:
        if low < 0:
            low = low // least
        else:
            low = low // denominator[1] if denominator[1] is not None else 0
    if high is not None:
        if high >= 0:
            high = high // least
        else:
            high = high // denominator[1] if denominator[1] is not None else -1
    return low, high


def _shifted_bounds(terms: dict[_Term, int], variables: dict[int, Range]) -> Range:
    """Interval of a polynomial whose variables are replaced by least value + non-negative rest."""
    shifted = dict(terms)
    spans: dict[int, int | None] = {}
    for index, (low, high) in variables.items():
        if low is None:
            return None, None
        spans[index] = None if high is None else high - low
        if low:
            shifted = _shift(shifted, index, low)
    lower: int | None = 0
    upper: int | None = 0
    for term, factor in shifted.items():
        if not factor:
            continue
        greatest: int | None = 1
        for index in term:
            span = spans[index]
            greatest = None if span is None or greatest is None else greatest * span
        if not term:
            lower = None if lower is None else lower + factor
            upper = None if upper is None else upper + factor
        elif factor > 0:
            upper = None if upper is None or greatest is None else upper + factor * greatest
        else:
            lower = None if lower is None or greatest is None else lower + factor * greatest
    return lower, upper


def _shift(terms: dict[_Term, int], index: int, by: int) -> dict[_Term, int]:
    """The polynomial after ``variable -> variable + by``."""
    result: dict[_Term, int] = {}
    for term, factor in terms.items():
        power = term.count(index)
        others = tuple(i for i in term if i != index)
        binomial = 1
        for keep in range(power, -1, -1):
            key = tuple(sorted(others + (index,) * keep))
            value = factor * binomial * by ** (power - keep)
            result[key] = result.get(key, 0) + value
            binomial = binomial * keep // (power - keep + 1)
    return result


def _intersect(left: Range, right: Range) -> Range:
    low = right[0] if left[0] is None else left[0] if right[0] is None else max(left[0], right[0])
    high = right[1] if left[1] is None else left[1] if right[1] is None else min(left[1], right[1])
    return low, high


def varying_divisor(expression: Expression) -> int:
    """A number that divides the varying part of the expression (0 if there is none)."""
    result = 0
    for atoms, factor in expression.terms:
        if atoms:
            result = gcd(result, factor)
    return result


def remainder(expression: Expression, modulus: int) -> int | None:
    """Expression modulo a plain number if it is the same for every size, else None."""
    return expression.offset % modulus if varying_divisor(expression) % modulus == 0 else None


def sign(expression: Expression, range_of: RangeOf) -> int | None:
    """-1, 0 or 1 if the sign is the same for every permitted size, else None."""
    if not expression.terms:
        return 0
    low, high = bounds(expression, range_of)
    if low is not None and low > 0:
        return 1
    if high is not None and high < 0:
        return -1
    if low == 0 and high == 0:
        return 0
    return None


def never_zero(expression: Expression, range_of: RangeOf) -> bool:
    """Whether the expression is shown to be different from 0 for every permitted size."""
    if sign(expression, range_of) in (-1, 1):
        return True
    divisor = varying_divisor(expression)
    return divisor > 1 and expression.offset % divisor != 0
