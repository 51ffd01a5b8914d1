"""The symbolic extent that shape inference computes with.

Its static methods are those that ``onemodel_kernels.ops.extents`` calls as soon as one argument is
symbolic. A result that no longer depends on a symbol is a plain int, so ``type(extent) is int``
tells static axes from symbolic ones everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from typing import Any, NoReturn

from onemodel_kernels.errors import ShapeError
from onemodel_trace.extents import expression as algebra
from onemodel_trace.extents.expression import Expression, constant
from onemodel_trace.extents.reading import ReadingError, Target, read_reshape
from onemodel_trace.extents.scope import ExtentScope

_OPEN = 2**31 - 1
"""Slice ends from here on mean "to the end": no axis is that long."""


class SymbolicShapeError(ShapeError):
    """A symbolic extent reached something that cannot express it for every size."""


def _remembered(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, computed once for each combination of arguments in a scope."""

    @wraps(compute)
    def look_up(*arguments: Any) -> Any:
        scope = _scope(*arguments)
        key = (compute, *arguments)
        found = scope.remembered.get(key)
        if found is None:
            found = scope.remembered[key] = compute(*arguments)
        return found

    return look_up


class SymbolicExtent:
    """An extent that depends on declared symbols.

    Attributes:
        expression: Its formula.
        scope: The trace that it belongs to.
    """

    __slots__ = ("expression", "scope")

    def __init__(self, expression: Expression, scope: ExtentScope) -> None:
        self.expression = expression
        self.scope = scope

    @property
    def example(self) -> int:
        """The size in the recorded run."""
        return self.expression.example

    def text(self) -> str:
        """The formula and the example size, for messages."""
        return f"{self.expression.text()} (= {self.example})"

    def __repr__(self) -> str:
        return self.expression.text()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicExtent) and self.expression == other.expression

    def __hash__(self) -> int:
        return hash(self.expression)

    def __add__(self, other: Any) -> Any:
        return self.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return self.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return self.sub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.sub(other, self)

    def __mul__(self, other: Any) -> Any:
        return self.mul(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self.floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.floordiv(other, self)

    def __mod__(self, other: Any) -> Any:
        return self.sub(self, self.mul(self.floordiv(self, other), other))

    def __lt__(self, other: Any) -> bool:
        return self._decide("<", other)

    def __le__(self, other: Any) -> bool:
        return self._decide("<=", other)

    def __gt__(self, other: Any) -> bool:
        return self._decide(">", other)

    def __ge__(self, other: Any) -> bool:
        return self._decide(">=", other)

    def __bool__(self) -> bool:
        return self._decide("!=", 0)

    def __index__(self) -> NoReturn:
        raise SymbolicShapeError(
            f"an extent that is {self.text()} is needed as a plain number, which would freeze it"
        )

    __int__ = __index__
    __float__ = __index__

    def _decide(self, relation: str, other: Any) -> bool:
        answer = self.scope.decide(self.expression, relation, expression_of(other))
        if answer is None:
            raise SymbolicShapeError(
                f"{self.expression.text()} {relation} {expression_of(other).text()} is not the same "
                "for every permitted size; declare the axis's minimum, maximum or multiple"
            )
        return answer

    @staticmethod
    def add(a: Any, b: Any) -> Any:
        """``a + b``."""
        return _extent(algebra.add(expression_of(a), expression_of(b)), _scope(a, b))

    @staticmethod
    def sub(a: Any, b: Any) -> Any:
        """``a - b``."""
        return _extent(algebra.subtract(expression_of(a), expression_of(b)), _scope(a, b))

    @staticmethod
    def mul(a: Any, b: Any) -> Any:
        """``a * b``."""
        return _extent(algebra.multiply(expression_of(a), expression_of(b)), _scope(a, b))

    @staticmethod
    def floordiv(a: Any, b: Any) -> Any:
        """``a // b``."""
        scope = _scope(a, b)
        return _extent(scope.floor_quotient(expression_of(a), expression_of(b)), scope)

    @staticmethod
    def broadcast(a: Any, b: Any) -> Any:
        """The extent of two aligned axes; two formulas of one example size become a guard."""
        if type(a) is int and a == 1:
            return b
        if type(b) is int and b == 1:
            return a
        return _meet(a, b, "broadcast against each other")

    @staticmethod
    def unify(a: Any, b: Any, what: str) -> Any:
        """The one extent that two axes must share."""
        return _meet(a, b, f"must be equal ({what})")

    @staticmethod
    @_remembered
    def window(
        size: Any,
        kernel: int,
        stride: int,
        dilation: int,
        pad_begin: int,
        pad_end: int,
        ceil_mode: bool = False,
    ) -> Any:
        """Window positions along an axis; with ``ceil_mode`` none starts in the end padding."""
        scope = _scope(size)
        room = algebra.add(
            size.expression, constant(pad_begin + pad_end - dilation * (kernel - 1) - 1)
        )
        one, step = constant(1), constant(stride)
        if not ceil_mode:
            return _extent(algebra.add(scope.floor_quotient(room, step), one), scope)
        count = algebra.add(_ceil_quotient(scope, room, stride), one)
        begun = algebra.add(size.expression, constant(pad_begin))
        return _extent(scope.least(count, _ceil_quotient(scope, begun, stride)), scope)

    @staticmethod
    def same_window(size: Any, stride: int) -> Any:
        """``ceil(size / stride)``."""
        scope = _scope(size)
        return _extent(_ceil_quotient(scope, size.expression, stride), scope)

    @staticmethod
    @_remembered
    def transposed_window(
        size: Any,
        kernel: int,
        stride: int,
        dilation: int,
        pad_begin: int,
        pad_end: int,
        output_padding: int,
    ) -> Any:
        """Output extent of a transposed convolution."""
        rest = output_padding + dilation * (kernel - 1) + 1 - pad_begin - pad_end - stride
        grown = algebra.scale(size.expression, stride)
        return _extent(algebra.add(grown, constant(rest)), _scope(size))

    @staticmethod
    @_remembered
    def slice_length(size: Any, start: Any, end: Any, step: int) -> Any:
        """Elements that a slice takes; fixed ends must be inside for every permitted size."""
        scope = _scope(size, start, end)
        whole = expression_of(size)
        if step > 0:
            begin = _from_end(start, whole, constant(0), whole)
            if type(start) is int and -_OPEN < start < 0:
                begin = scope.greatest(begin, constant(0))
            stop = _from_end(end, whole, constant(0), whole)
            stop = _inside(scope, stop, whole, "end", size, type(end) is not int)
            distance = algebra.subtract(stop, begin)
        else:
            last = algebra.add(whole, constant(-1))
            begin = _from_end(start, whole, constant(-1), last)
            begin = _inside(scope, begin, last, "start", size, type(start) is not int)
            if type(start) is int and -_OPEN < start < 0 and not scope.at_least(begin, 0):
                # ONNX and Python clamp such a start differently.
                raise SymbolicShapeError(
                    f"a backward slice that starts {-start} before the end of an axis of {size.text()}"
                    " is not the same for every permitted size; declare the axis's minimum"
                )
            stop = _from_end(end, whole, constant(-1), last)
            if type(end) is int and -_OPEN < end < 0:
                stop = scope.greatest(stop, constant(-1))
            distance = algebra.subtract(begin, stop)
        count = _ceil_quotient(scope, distance, abs(step))
        return _extent(scope.greatest(count, constant(0)), scope)

    @staticmethod
    def range_length(start: Any, limit: Any, delta: Any) -> Any:
        """``max(0, ceil((limit - start) / delta))`` for whole numbers and extents."""
        scope = _scope(start, limit, delta)
        if isinstance(delta, SymbolicExtent) or delta == 0:
            raise SymbolicShapeError(f"the step of a range must be a plain number, it is {delta!r}")
        if any(type(value) is float and not value.is_integer() for value in (start, limit, delta)):
            raise SymbolicShapeError(
                f"a range from {start} to {limit} by {delta} has a length that is not whole-number "
                "arithmetic of the axis sizes; scale an integer range"
            )
        ends = [
            value if isinstance(value, SymbolicExtent) else int(value) for value in (start, limit)
        ]
        distance = algebra.subtract(expression_of(ends[1]), expression_of(ends[0]))
        step = int(delta)
        if step < 0:
            distance = algebra.scale(distance, -1)
        count = _ceil_quotient(scope, distance, abs(step))
        return _extent(scope.greatest(count, constant(0)), scope)

    @staticmethod
    def scaled(size: Any, scale: float) -> Any:
        """``floor(size * scale)`` for a scale that is a small fraction."""
        ratio = Fraction(scale)
        if ratio.denominator > 1024:
            raise SymbolicShapeError(
                f"scaling an axis of {size.text()} by {scale} rounds differently at different sizes; "
                "use a scale such as 2, 1.5 or 0.25"
            )
        scope = _scope(size)
        grown = algebra.scale(size.expression, ratio.numerator)
        return _extent(scope.floor_quotient(grown, constant(ratio.denominator)), scope)

    @staticmethod
    def reshape(shape: Sequence[Any], target: Sequence[Any], allowzero: bool = False) -> Any:
        """Extents of a reshaped value by the one reading that holds for every size."""
        scope = _scope(*shape, *target)
        key = ("reshape", tuple(shape), tuple(target), allowzero)
        found = scope.remembered.get(key)
        if found is None:
            found = scope.remembered[key] = _reshape(scope, shape, target, allowzero)
        return found


def _reshape(
    scope: ExtentScope, shape: Sequence[Any], target: Sequence[Any], allowzero: bool
) -> tuple[Any, ...]:
    entries: list[Target | None] = []
    for axis, asked in enumerate(target):
        if type(asked) is int and asked == -1:
            entries.append(None)
        elif type(asked) is int and asked == 0 and not allowzero:
            entries.append(Target(expression_of(shape[axis]), True))
        else:
            entries.append(Target(expression_of(asked), type(asked) is not int))
    if entries.count(None) > 1:
        raise ShapeError(f"the target shape {tuple(target)} has more than one -1")

    def equal(left: Expression, right: Expression) -> bool:
        return scope.decide(left, "==", right) is True

    came = [expression_of(extent) for extent in shape]
    _check_counts(came, entries, target)
    try:
        read = read_reshape(came, entries, equal)
    except ReadingError as error:
        raise SymbolicShapeError(str(error)) from None
    return tuple(_extent(extent, scope) for extent in read)


def _extent(value: Expression, scope: ExtentScope) -> Any:
    number = value.constant
    return number if number is not None else SymbolicExtent(value, scope)


def expression_of(extent: Any) -> Expression:
    """The expression of a plain int or of a symbolic extent."""
    if isinstance(extent, SymbolicExtent):
        return extent.expression
    return constant(int(extent))


def _scope(*extents: Any) -> ExtentScope:
    for extent in extents:
        if isinstance(extent, SymbolicExtent):
            return extent.scope
    raise TypeError(f"none of {extents} is symbolic")


def _ceil_quotient(scope: ExtentScope, value: Expression, divisor: int) -> Expression:
    return scope.floor_quotient(algebra.add(value, constant(divisor - 1)), constant(divisor))


def _from_end(value: Any, size: Expression, least: Expression, most: Expression) -> Expression:
    """A slice end counted from the front; open ends become the ends of the axis."""
    if type(value) is int:
        if value >= _OPEN:
            return most
        if value <= -_OPEN:
            return least
        return algebra.add(size, constant(value)) if value < 0 else constant(value)
    expression: Expression = value.expression
    if value.scope.at_least(expression, 0):
        return expression
    if value.scope.at_most(expression, -1):
        return algebra.add(size, expression)
    raise SymbolicShapeError(
        f"a slice end of {value.text()} counts from the front at some sizes and from the end at others"
    )


def _inside(
    scope: ExtentScope, value: Expression, most: Expression, which: str, size: Any, clamp: bool
) -> Expression:
    if value == most or scope.at_least(algebra.subtract(most, value), 0):
        return value
    if scope.at_least(algebra.subtract(value, most), 0):
        return most
    if clamp:
        if most.constant is not None and value.example <= most.example:
            # A table of fixed length that is cut to a size: it must be long enough at every run.
            scope.assume("<=", value, most, "a fixed axis is cut to this size")
            return value
        return scope.least(value, most)
    shown = size.text() if isinstance(size, SymbolicExtent) else str(size)
    raise SymbolicShapeError(
        f"a slice with the fixed {which} {value.text()} of an axis of {shown} is not the same for every "
        "permitted size; take the end from x.shape, or declare the axis's minimum"
    )


def _meet(a: Any, b: Any, how: str) -> Any:
    if type(a) is int or type(b) is int:
        number, symbol = (a, b) if type(a) is int else (b, a)
        if symbol.scope.decide(symbol.expression, "==", constant(number)) is True:
            return number
        raise SymbolicShapeError(
            f"the fixed extent {number} and {symbol.text()} {how}: this is right only at that one "
            "size; derive the fixed one from x.shape"
        )
    if a == b:
        return a
    if a.example != b.example:
        raise SymbolicShapeError(
            f"extents {a.text()} and {b.text()} {how}, and differ in the recorded run"
        )
    if a.scope.decide(a.expression, "!=", b.expression) is True:
        raise SymbolicShapeError(f"extents {a.text()} and {b.text()} {how}, and are never equal")
    a.scope.assume("==", a.expression, b.expression, how)
    return min(a, b, key=_simplicity)


def _simplicity(extent: SymbolicExtent) -> tuple[int, int, int, str]:
    terms = extent.expression.terms
    derived = sum(atom.kind != "symbol" for atom in extent.expression.atoms())
    size = sum(len(atoms) for atoms, _ in terms)
    return size, derived, max(abs(factor) for _, factor in terms), extent.expression.text()


def _check_counts(
    shape: Sequence[Expression], entries: Sequence[Target | None], target: Sequence[Any]
) -> None:
    count = known = 1
    for extent in shape:
        count *= extent.example
    for entry in entries:
        known *= 1 if entry is None else entry.value.example
    fits = (known != 0 and count % known == 0) if None in entries else known == count
    if not fits:
        raise ShapeError(
            f"{tuple(e.example for e in shape)} has {count} elements, "
            f"which do not fit the target shape {tuple(target)}"
        )
