"""The size of a symbolic axis as Python sees it while a trace records."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from onemodel_tensors.recording import SymbolicSize
from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.extents import expression as algebra
from onemodel_trace.extents.expression import Expression, constant
from onemodel_trace.extents.scope import holds
from onemodel_trace.extents.symbolic import (
    SymbolicExtent,
    SymbolicShapeError,
    expression_of,
)

if TYPE_CHECKING:
    from onemodel_tensors.recording import Recorder
    from onemodel_tensors.tensor import Tensor


class Extent(SymbolicSize):
    """A size that differs from run to run, taken from ``x.shape`` of a traced tensor.

    It passes ``isinstance(n, int)`` but is no subclass of int: every way in which Python could turn
    it into a number asks this class first. Sums, products and floor divisions of extents and ints
    are extents again (or ints, where no symbol is left). A comparison, ``%`` or truth test that
    has one answer for every permitted size gives it. Every other use as a number raises
    ``TraceException`` of kind SYMBOLIC_SHAPE that states the relation in the user's axis names. Its
    text is the formula, ``T + 1``, so that not even a message can carry the number away.
    Once its trace has finished it behaves as the number of the recorded run.
    """

    __slots__ = ("_size",)

    def __init__(self, size: SymbolicExtent) -> None:
        self._size = size

    # isinstance(size, int) is true, as the code of models asks; type(size) is int is not.
    __class__ = property(lambda _: int)

    @property
    def example(self) -> int:
        """The size in the recorded run."""
        return self._size.example

    @property
    def recorder(self) -> Recorder | None:
        """The tracer while it records, else None."""
        return self._size.scope.recorder

    @property
    def symbolic(self) -> SymbolicExtent:
        """The formula that shape inference computes with."""
        return self._size

    @property
    def text(self) -> str:
        """The formula in the user's axis names."""
        return self._size.expression.text()

    def tensor(self, dtype: str = "int64") -> Tensor:
        """A traced 0-d tensor that holds the size.

        Args:
            dtype: Element type of the result.

        Raises:
            TraceException: INVALID_USAGE when the trace has finished.
        """
        recorder = self.recorder
        if recorder is None:
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"tensor(): the trace of {self.text} has finished; this size is the number {self.example}",
            )
        return recorder.size_tensor(self, dtype)

    def rely_on(self, relation: str, number: int, reason: str) -> None:
        """Record the guard ``size relation number`` unless it holds for every permitted size.

        Args:
            relation: "==", "!=", "<", "<=", ">" or ">=".
            number: Right side.
            reason: What relies on it.

        Raises:
            TraceException: SYMBOLIC_SHAPE when the relation is false in this run or for every permitted
                size.
        """
        scope, expression, right = self._size.scope, self._size.expression, constant(number)
        answer = scope.decide(expression, relation, right)
        if answer is False or not holds(relation, self.example, number):
            raise TraceException(
                TraceErrorKind.SYMBOLIC_SHAPE,
                f"{reason} needs {self.text} {relation} {number}, which does not hold at {self.example}",
            )
        if answer is None:
            scope.assume(relation, expression, right, reason)

    def _active(self) -> bool:
        return self.recorder is not None

    def _escape(self, use: str, advice: str = "") -> NoReturn:
        self._refuse(
            f"{use} needs the size {self._size.text()} as a plain number, which would freeze the size "
            "of the recorded run into the graph; "
            + (advice or "keep it a size, or make it a tensor with .tensor(dtype)")
        )

    def _refuse(self, message: str) -> NoReturn:
        refusal = TraceException(TraceErrorKind.SYMBOLIC_SHAPE, message)
        # Another thread that asks has no recorder of its own to remember this.
        self._size.scope.note_refusal(refusal)
        raise refusal

    def _number(self, use: str, advice: str = "") -> int:
        if self._active():
            self._escape(use, advice)
        return self.example

    def _arithmetic(
        self,
        other: Any,
        symbol: str,
        compute: Callable[[Any], Any],
        plain: Callable[[int, Any], Any],
    ) -> Any:
        if not self._active():
            return plain(self.example, _plain(other))
        if type(other) is Extent:
            return _wrap(compute(other._size))
        if isinstance(other, numbers.Integral):
            return _wrap(compute(int(other)))
        if _is_tensor(other):
            return NotImplemented
        return self._escape(f"{symbol} with {_described(other)}")

    def __add__(self, other: Any) -> Any:
        return self._arithmetic(other, "+", lambda o: self._size + o, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._arithmetic(other, "+", lambda o: o + self._size, lambda a, b: b + a)

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic(other, "-", lambda o: self._size - o, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._arithmetic(other, "-", lambda o: o - self._size, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._arithmetic(other, "*", lambda o: self._size * o, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return self._arithmetic(other, "*", lambda o: o * self._size, lambda a, b: b * a)

    def __floordiv__(self, other: Any) -> Any:
        return self._arithmetic(other, "//", lambda o: self._size // o, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._arithmetic(other, "//", lambda o: o // self._size, lambda a, b: b // a)

    def __mod__(self, other: Any) -> Any:
        return self._arithmetic(other, "%", self._remainder, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        if isinstance(other, str | bytes):
            self._escape("% formatting", "use an f-string, which shows the formula")
        return self._arithmetic(
            other,
            "%",
            self._remainder_of,
            lambda a, b: b % a,
        )

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def _remainder(self, other: Any) -> Any:
        return self._modulo(self._size.expression, expression_of(other))

    def _remainder_of(self, other: Any) -> Any:
        return self._modulo(expression_of(other), self._size.expression)

    def _modulo(self, dividend: Expression, divisor: Expression) -> Any:
        if divisor.constant == 0:
            raise ZeroDivisionError("a size modulo 0")
        quotient = self._size.scope.floor_quotient(dividend, divisor)
        number = algebra.subtract(dividend, algebra.multiply(quotient, divisor)).constant
        if number is None:
            text = divisor.text()
            advice = f"declare multiple={text} for the axis" if divisor.constant else ""
            self._undecided(f"{dividend.text()} % {text}", advice)
        return number

    def __truediv__(self, other: Any) -> Any:
        if _is_tensor(other):
            return NotImplemented
        return self._number("/", "use // for a size, or .tensor(dtype) for a value") / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._number("/", "use // for a size, or .tensor(dtype) for a value")

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if not self._active():
            return pow(self.example, _plain(other), modulus)
        if type(other) is int and other >= 0 and modulus is None:
            result: Any = 1
            for _ in range(other):
                result = self * result
            return result
        if _is_tensor(other):
            return NotImplemented
        return self._escape(f"** {_described(other)}")

    def __rpow__(self, other: Any) -> Any:
        return other ** self._number("**")

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def _compare(self, relation: str, other: Any, plain: Callable[[int, Any], Any]) -> Any:
        if not self._active():
            return plain(self.example, _plain(other))
        if type(other) is Extent:
            right = other._size.expression
        elif isinstance(other, numbers.Integral):
            right = constant(int(other))
        elif isinstance(other, numbers.Number):
            self._escape(f"{relation} {other!r}")
        else:
            return NotImplemented
        answer = self._size.scope.decide(self._size.expression, relation, right)
        if answer is None:
            self._undecided(f"{self.text} {relation} {right.text()}")
        return answer

    def _undecided(self, relation: str, advice: str = "") -> NoReturn:
        self._refuse(
            f"the program asks whether {relation} ({self.text} = {self.example} in this run), and the answer is "
            "not the same for every permitted size, so it would be frozen; "
            + (
                advice
                or "declare the axis's minimum, maximum or multiple so that it is implied, or avoid the question"
            )
        )

    def __eq__(self, other: object) -> Any:
        return self._compare("==", other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Any:
        return self._compare("!=", other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other, lambda a, b: a >= b)

    def __bool__(self) -> bool:
        return bool(self._compare("!=", 0, lambda a, b: a != b))

    def __hash__(self) -> int:
        return hash(self._number("use as a key of a dict or set"))

    def __index__(self) -> int:
        return self._number("range(), an index, a repetition count or a C function")

    def __int__(self) -> int:
        return self._number("int()")

    def __float__(self) -> float:
        return float(self._number("float() or a function of the math module"))

    def __complex__(self) -> complex:
        return complex(self._number("complex()"))

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(self._number("round()"), digits)

    def __trunc__(self) -> Any:
        return self

    def __floor__(self) -> Any:
        return self

    def __ceil__(self) -> Any:
        return self

    # What every int has, for code that asks isinstance(size, int) first.

    @property
    def real(self) -> Any:
        """The size itself."""
        return self

    numerator = real

    @property
    def imag(self) -> int:
        """0."""
        return 0

    @property
    def denominator(self) -> int:
        """1."""
        return 1

    def conjugate(self) -> Any:
        """The size itself."""
        return self

    def as_integer_ratio(self) -> tuple[Any, int]:
        """The size itself over 1."""
        return self, 1

    def is_integer(self) -> bool:
        """True."""
        return True

    def bit_count(self) -> int:
        """Ones in binary once the trace has finished; refused while it records."""
        return self._number("bit_count()").bit_count()

    def to_bytes(self, *arguments: Any, **options: Any) -> bytes:
        """As for an int once the trace has finished; refused while it records."""
        return self._number("to_bytes()").to_bytes(*arguments, **options)

    def bit_length(self) -> int:
        """Bits of the number once the trace has finished; refused while it records."""
        return self._number("bit_length()").bit_length()

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other)

    def __rlshift__(self, other: Any) -> Any:
        return other << self._number("<<")

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other)

    def __rrshift__(self, other: Any) -> Any:
        return other >> self._number(">>")

    def __and__(self, other: Any) -> Any:
        if type(other) is int and other >= 0 and other & (other + 1) == 0:
            return self % (other + 1)
        return self._number("&") & other

    def __rand__(self, other: Any) -> Any:
        return self & other

    def __or__(self, other: Any) -> Any:
        return self._number("|") | other

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return self._number("^") ^ other

    __rxor__ = __xor__

    def __invert__(self) -> Any:
        return self * -1 - 1

    def __repr__(self) -> str:
        return self.text if self._active() else str(self.example)

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        if not specification:
            return str(self)
        return format(self._number(f"formatting with {specification!r}"), specification)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return int, (self._number("pickle or deepcopy"),)

    def __copy__(self) -> Extent:
        return self

    def __deepcopy__(self, memo: object) -> Extent:
        return self

    __array_ufunc__ = None
    __array_priority__ = 1000

    def __array__(self, *_: Any, **__: Any) -> Any:
        import numpy

        return numpy.asarray(self._number("a numpy function"))


numbers.Integral.register(Extent)


def _inference(name: str) -> Any:
    """The function of ``onemodel_kernels.ops.extents`` of that name, on sizes as Python sees them."""
    compute = getattr(SymbolicExtent, name)

    def method(*arguments: Any) -> Any:
        try:
            result = compute(*(unwrap(argument) for argument in arguments))
        except SymbolicShapeError as error:
            raise TraceException(TraceErrorKind.SYMBOLIC_SHAPE, str(error)) from None
        return wrap_shape(result) if type(result) is tuple else _wrap(result)

    return staticmethod(method)


for _name in ("add", "sub", "mul", "floordiv", "broadcast", "unify", "window", "same_window",
              "transposed_window", "slice_length", "range_length", "scaled", "reshape"):  # fmt: skip
    setattr(Extent, _name, _inference(_name))


def _wrap(value: Any) -> Any:
    return Extent(value) if isinstance(value, SymbolicExtent) else value


def _plain(value: Any) -> Any:
    return value.example if type(value) is Extent else value


def _is_tensor(value: object) -> bool:
    from onemodel_tensors.tensor import Tensor

    return isinstance(value, Tensor)


def _described(value: object) -> str:
    return repr(value) if isinstance(value, numbers.Number) else f"a {type(value).__name__}"


def unwrap(value: Any) -> Any:
    """An attribute value with every Extent replaced by its symbolic extent, also inside tuples."""
    kind = type(value)
    if kind is Extent:
        return value._size
    if kind is tuple or kind is list:
        for item in value:
            if type(item) not in _PLAIN:
                return tuple([unwrap(item) for item in value])
        return tuple(value)
    return value


_PLAIN = frozenset({int, float, bool, str})


def wrap_shape(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape as Python sees it: ints, and an Extent where an axis is symbolic."""
    return tuple(Extent(size) if type(size) is not int else size for size in shape)
