"""Which symbol goes where in a reshape: the one possible reading is taken, several are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from onemodel_trace.extents.expression import (
    Expression,
    Monomial,
    constant,
    exact_quotient,
    monomial_quotient,
    multiply,
    of_atom,
)

Decide = Callable[[Expression, Expression], bool]


class ReadingError(ValueError):
    """The target shape has no reading that is right for every size, or more than one."""


@dataclass(frozen=True, slots=True)
class Target:
    """One asked extent: an expression from the model's extents, or a plain number."""

    value: Expression
    pinned: bool


def read_reshape(
    shape: Sequence[Expression], target: Sequence[Target | None], equal: Decide
) -> tuple[Expression, ...]:
    """Extents of the reshaped value.

    Args:
        shape: Extents of the input.
        target: Asked extents; None is the one that is computed from the others.
        equal: Whether two expressions are equal for every permitted size.

    Raises:
        ReadingError: No reading, or several; the text names them.
    """
    total = _product(shape)
    if not total.terms:
        _check_empty(shape, target)
    asked = _product([entry.value for entry in target if entry is not None])
    open_axis = target.index(None) if None in target else None
    quotient: Expression | None = None
    if open_axis is None:
        if total == asked or equal(total, asked):
            return tuple(entry.value for entry in target if entry is not None)
    else:
        quotient = exact_quotient(total, asked)
        if quotient is not None and quotient.constant is not None:
            return _fill(target, quotient)
    readings = _by_examples(shape, target, total, asked)
    if open_axis is not None and quotient is None:
        # With -1 the plain numbers could as well stay what they are, wherever the rest divides.
        readings = []
    if quotient is not None:
        computed = _fill(target, quotient)
        if all(reading == computed for reading in readings):
            return computed
        readings = list(dict.fromkeys([computed, *readings]))
    if len(readings) == 1:
        return readings[0]
    come = ", ".join(extent.text() for extent in shape)
    if not readings:
        raise ReadingError(
            f"({come}) cannot be written as ({_asked_text(target)}) for every size: the target mixes "
            "symbolic extents or needs a division that is not exact; declare multiple= for the axis, "
            "or reshape whole axes"
        )
    several = " or ".join(f"({', '.join(e.text() for e in reading)})" for reading in readings[:4])
    raise ReadingError(
        f"({come}) to ({_asked_text(target)}) is ambiguous: {several}; take the sizes from x.shape, "
        "or trace with other example sizes"
    )


def _check_empty(shape: Sequence[Expression], target: Sequence[Target | None]) -> None:
    """A shape without elements fits whatever is asked: a number may stand for an axis's size or not."""
    missing = [factor for extent in shape for factor in _factors(extent)]
    for entry in target:
        for factor in _factors(entry.value) if entry is not None and entry.pinned else ():
            if factor in missing:
                missing.remove(factor)
    numbers = [entry.value.example for entry in target if entry is not None and not entry.pinned]
    for factor in missing:
        if any(number and number % factor.example == 0 for number in numbers if factor.example):
            come = ", ".join(extent.text() for extent in shape)
            raise ReadingError(
                f"({come}) to ({_asked_text(target)}) is ambiguous: it has no elements, and a number of "
                f"the target may stand for {factor.text()} or not; take the sizes from x.shape"
            )


def _fill(target: Sequence[Target | None], value: Expression) -> tuple[Expression, ...]:
    return tuple(value if entry is None else entry.value for entry in target)


def _asked_text(target: Sequence[Target | None]) -> str:
    return ", ".join("-1" if entry is None else entry.value.text() for entry in target)


def _product(extents: Sequence[Expression]) -> Expression:
    result = constant(1)
    for extent in extents:
        result = multiply(result, extent)
    return result


def _factors(extent: Expression) -> list[Expression]:
    """Atoms of the extent; what is left of a sum is one opaque factor. Numbers are dropped."""
    if not extent.terms:
        return []
    number = 0
    common: Monomial = extent.terms[0][0]
    for atoms, factor in extent.terms:
        number = gcd(number, factor)
        common = _shared(common, atoms)
    factors = [of_atom(atom) for atom in common]
    if len(extent.terms) > 1:
        rest = {}
        for atoms, factor in extent.terms:
            left = monomial_quotient(atoms, common)
            assert left is not None
            rest[left] = factor // number
        factors.append(Expression(rest))
    return factors


def _shared(left: Monomial, right: Monomial) -> Monomial:
    pool = list(right)
    kept = []
    for atom in left:
        if atom in pool:
            pool.remove(atom)
            kept.append(atom)
    return tuple(kept)


def _by_examples(
    shape: Sequence[Expression],
    target: Sequence[Target | None],
    total: Expression,
    asked: Expression,
) -> list[tuple[Expression, ...]]:
    """All readings that example sizes allow, group by group of equal element count."""
    if total.example == 0 or asked.example == 0 or total.example % asked.example:
        return []
    sizes = [
        total.example // asked.example if entry is None else entry.value.example for entry in target
    ]
    result: list[tuple[Expression, ...]] = [()]
    for inputs, outputs in _groups([extent.example for extent in shape], sizes):
        entries = [target[axis] for axis in outputs]
        readings = _distribute(
            [shape[axis] for axis in inputs],
            [entry if entry is not None and entry.pinned else None for entry in entries],
            [sizes[axis] for axis in outputs],
        )
        # Two readings suffice for a refusal; a few more make its text useful.
        result = [known + reading for known in result for reading in readings][:16]
    return result


def _groups(left: list[int], right: list[int]) -> list[tuple[list[int], list[int]]]:
    """Minimal runs of axes of both sides with equal products; trailing 1s join the last run."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) or j < len(right):
        inputs, outputs = [], []
        left_count = right_count = 1
        while True:
            if left_count <= right_count and i < len(left):
                inputs.append(i)
                left_count *= left[i]
                i += 1
            elif j < len(right):
                outputs.append(j)
                right_count *= right[j]
                j += 1
            else:
                inputs.extend(range(i, len(left)))
                i = len(left)
                break
            if left_count == right_count and inputs and outputs:
                break
        if i == len(left):
            outputs.extend(range(j, len(right)))
            j = len(right)
        if j == len(right):
            inputs.extend(range(i, len(left)))
            i = len(left)
        groups.append((inputs, outputs))
    return groups


def _distribute(
    inputs: list[Expression], pinned: list[Target | None], sizes: list[int]
) -> list[tuple[Expression, ...]]:
    """Ways to give each factor of the inputs to one output that its example size divides."""
    factors = [factor for extent in inputs for factor in _factors(extent)]
    for entry in pinned:
        if entry is None:
            continue
        for factor in _factors(entry.value):
            if factor not in factors:
                return []
            factors.remove(factor)
    number = prod(extent.example for extent in inputs)
    if number == 0:
        return []
    found: dict[tuple[Expression, ...], None] = {}

    def place(index: int, rest: list[int], taken: list[Expression]) -> None:
        if index == len(factors):
            reading = tuple(
                entry.value if entry is not None else multiply(taken[axis], constant(rest[axis]))
                for axis, entry in enumerate(pinned)
            )
            found[reading] = None
            return
        factor = factors[index]
        for axis, entry in enumerate(pinned):
            if entry is None and factor.example and rest[axis] % factor.example == 0:
                rest[axis] //= factor.example
                before, taken[axis] = taken[axis], multiply(taken[axis], factor)
                place(index + 1, rest, taken)
                taken[axis] = before
                rest[axis] *= factor.example

    place(0, list(sizes), [constant(1)] * len(sizes))
    # The coefficients must agree as well: a reading whose product differs from the inputs' is none.
    whole = _product(inputs)
    return [reading for reading in found if _product(reading) == whole]
