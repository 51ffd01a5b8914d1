"""Integer polynomials over atoms: the values that a symbolic extent can take.

An expression is a sum of terms, each an integer coefficient times a product of atoms. An atom is
a declared symbol or the result of an operation that polynomials cannot express (a floor division,
a maximum, a minimum). Terms are kept in one normal form, so equal formulas compare equal and every
branch of a model that computes the same extent gets the same expression.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterable, Mapping
from functools import lru_cache

Monomial = tuple["Atom", ...]


class Atom:
    """A factor that the algebra does not open up.

    Attributes:
        index: Order of creation in its scope; products are sorted by it.
        kind: "symbol", "floordiv", "max" or "min".
        name: The declared name of a symbol, empty for the others.
        operands: The two expressions that a derived atom was made of.
        example: The value in the recorded run.
        unit: For a symbol whose sizes are multiples of a number: that number. The atom is then the
            size divided by it, so that ``width // 4`` of a multiple of 8 is a plain product.
    """

    __slots__ = ("example", "index", "kind", "name", "operands", "unit")

    def __init__(
        self,
        index: int,
        kind: str,
        name: str,
        operands: tuple[Expression, ...],
        example: int,
        unit: int = 1,
    ) -> None:
        self.index = index
        self.kind = kind
        self.name = name
        self.operands = operands
        self.example = example
        self.unit = unit

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The formula in the user's axis names."""
        if self.kind == "symbol":
            return self.name if self.unit == 1 else f"{self.name}//{self.unit}"
        left, right = (operand.text() for operand in self.operands)
        if self.kind == "floordiv":
            return f"{_grouped(left)}//{_grouped(right)}"
        return f"{self.kind}({left}, {right})"


class Expression:
    """An immutable integer polynomial over atoms, with its value in the recorded run.

    Equality is equality of the normal form: two expressions that are equal for every size but were
    built from different atoms may compare unequal, never the other way round.
    """

    __slots__ = ("_hash", "_text", "example", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [(monomial, factor) for monomial, factor in terms.items() if factor != 0]
        kept.sort(key=_term_order)
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(kept)
        self.example = _example(self.terms)
        self._hash = hash(self.terms)
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Expression({self.text()})"

    @property
    def constant(self) -> int | None:
        """The value if no atom occurs, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def monomial(self) -> tuple[int, Monomial] | None:
        """Coefficient and atoms if there is exactly one term, else None."""
        if len(self.terms) == 1:
            atoms, factor = self.terms[0]
            return factor, atoms
        return None

    @property
    def offset(self) -> int:
        """The constant term."""
        for atoms, factor in self.terms:
            if not atoms:
                return factor
        return 0

    def atoms(self) -> list[Atom]:
        """Atoms that occur in the polynomial itself, in order of creation."""
        found = {atom.index: atom for monomial, _ in self.terms for atom in monomial}
        return [found[index] for index in sorted(found)]

    def symbols(self) -> list[Atom]:
        """Declared symbols on which the value depends, in order of declaration."""
        found: dict[int, Atom] = {}
        pending = self.atoms()
        while pending:
            atom = pending.pop()
            if atom.kind == "symbol":
                found[atom.index] = atom
            for operand in atom.operands:
                pending.extend(operand.atoms())
        return [found[index] for index in sorted(found)]

    def text(self) -> str:
        """The formula in the user's axis names, such as ``4*width + 1``."""
        if self._text is None:
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        if not self.terms:
            return "0"
        # Constants last: "T + 1" is how people write it.
        ordered = [term for term in self.terms if term[0]] + [t for t in self.terms if not t[0]]
        pieces: list[str] = []
        for atoms, factor in ordered:
            size, whole = _whole_symbols(abs(factor), atoms)
            words = [atom.name if full else atom.text() for atom, full in whole]
            if len(words) > 1 or size != 1 or (factor < 0 and not pieces):
                words = [f"({word})" if "//" in word else word for word in words]
            body = "*".join(words)
            text = str(size) if not body else body if size == 1 else f"{size}*{body}"
            if pieces:
                pieces.append(f"- {text}" if factor < 0 else f"+ {text}")
            else:
                pieces.append(f"-{text}" if factor < 0 else text)
        return " ".join(pieces)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The value when every declared symbol has the given size.

        Args:
            sizes: Symbol name to size; every symbol of the expression must be present.

        Raises:
            KeyError: A symbol has no size.
        """
        total = 0
        for atoms, factor in self.terms:
            product, whole = _whole_symbols(factor, atoms)
            for atom, full in whole:
                product *= sizes[atom.name] if full else _evaluate_atom(atom, sizes)
            total += product
        return total

    def source(self) -> str:
        """The formula in the grammar in which guards are written into a file.

        Integers, names, ``+ - * //``, ``max(…)``, ``min(…)``; an axis name that is no identifier is
        written ``symbol("name")``.
        """
        if not self.terms:
            return "0"
        pieces: list[str] = []
        for atoms, factor in self.terms:
            size, whole = _whole_symbols(factor, atoms)
            words = [str(size)] if size != 1 or not atoms else []
            words.extend(_name_source(a) if full else _atom_source(a) for a, full in whole)
            pieces.append("*".join(words))
        return " + ".join(pieces)


def _grouped(text: str) -> str:
    return f"({text})" if any(symbol in text for symbol in " */-") else text


def _term_order(term: tuple[Monomial, int]) -> tuple[int, tuple[int, ...]]:
    atoms = term[0]
    return -len(atoms), tuple(atom.index for atom in atoms)


def _example(terms: Iterable[tuple[Monomial, int]]) -> int:
    total = 0
    for atoms, factor in terms:
        product = factor
        for atom in atoms:
            product *= atom.example
        total += product
    return total


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        return sizes[atom.name] // atom.unit
    left, right = (operand.evaluate(sizes) for operand in atom.operands)
    if atom.kind == "floordiv":
        return left // right
    return max(left, right) if atom.kind == "max" else min(left, right)


def _whole_symbols(factor: int, atoms: Monomial) -> tuple[int, list[tuple[Atom, bool]]]:
    """A term with units put back: ``8 * (T//8)`` is T. The rest of the factor, and which are whole."""
    found: list[tuple[Atom, bool]] = []
    for atom in atoms:
        full = atom.kind == "symbol" and factor % atom.unit == 0
        if full:
            factor //= atom.unit
        found.append((atom, full))
    return factor, found


def _name_source(atom: Atom) -> str:
    plain = atom.name.isidentifier() and not keyword.iskeyword(atom.name)
    return atom.name if plain else f"symbol({json.dumps(atom.name)})"


def _atom_source(atom: Atom) -> str:
    if atom.kind == "symbol":
        name = _name_source(atom)
        return name if atom.unit == 1 else f"({name}//{atom.unit})"
    left, right = (operand.source() for operand in atom.operands)
    if atom.kind == "floordiv":
        return f"(({left})//({right}))"
    return f"{atom.kind}({left}, {right})"


@lru_cache(maxsize=1024)
def constant(value: int) -> Expression:
    """The expression of a plain number."""
    return Expression({(): value})


def of_atom(atom: Atom) -> Expression:
    """The expression that is one atom."""
    return Expression({(atom,): 1})


def add(left: Expression, right: Expression) -> Expression:
    """Sum of two expressions."""
    if not right.terms:
        return left
    terms = dict(left.terms)
    for atoms, factor in right.terms:
        terms[atoms] = terms.get(atoms, 0) + factor
    return Expression(terms)


def scale(expression: Expression, factor: int) -> Expression:
    """The expression times a plain number."""
    if factor == 1:
        return expression
    return Expression({atoms: value * factor for atoms, value in expression.terms})


def subtract(left: Expression, right: Expression) -> Expression:
    """Difference of two expressions."""
    return add(left, scale(right, -1))


def multiply(left: Expression, right: Expression) -> Expression:
    """Product of two expressions."""
    if left.constant is not None:
        return scale(right, left.constant)
    if right.constant is not None:
        return scale(left, right.constant)
    terms: dict[Monomial, int] = {}
    for left_atoms, left_factor in left.terms:
        for right_atoms, right_factor in right.terms:
            atoms = left_atoms + right_atoms
            if left_atoms and right_atoms:
                atoms = tuple(sorted(atoms, key=lambda atom: atom.index))
            terms[atoms] = terms.get(atoms, 0) + left_factor * right_factor
    return Expression(terms)


def monomial_quotient(dividend: Monomial, divisor: Monomial) -> Monomial | None:
    """Atoms that remain when those of the divisor are taken out, or None if one is missing."""
    rest = list(dividend)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def exact_quotient(dividend: Expression, divisor: Expression) -> Expression | None:
    """The expression that times the divisor is the dividend, or None if there is none.

    Long division by the leading term under a graded order: exact when the remainder vanishes.
    """
    if not divisor.terms:
        return None
    lead_atoms, lead_factor = divisor.terms[0]
    rest = dividend
    quotient: dict[Monomial, int] = {}
    while rest.terms:
        atoms, factor = rest.terms[0]
        left = monomial_quotient(atoms, lead_atoms)
        if left is None or factor % lead_factor:
            return None
        quotient[left] = quotient.get(left, 0) + factor // lead_factor
        rest = subtract(rest, multiply(Expression({left: factor // lead_factor}), divisor))
    return Expression(quotient)
