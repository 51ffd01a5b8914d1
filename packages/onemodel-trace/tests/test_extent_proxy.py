"""What Python may do with a size while a trace records, and what it may not."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import pickle
import struct

import numpy as np
import pytest

from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.extents import Axis, Extent, ExtentScope, SymbolicExtent, unwrap, wrap_shape


class Recorder:
    pass


@pytest.fixture
def scope():
    scope = ExtentScope()
    scope.recorder = Recorder()
    return scope


def size(scope, name="T", example=7, **limits):
    return Extent(SymbolicExtent(scope.declare(Axis(name, **limits), example), scope))


ESCAPES = {
    "range": lambda n: range(n),
    "list times size": lambda n: [0] * n,
    "size times list": lambda n: n * [0],
    "list slice": lambda n: [1, 2, 3][:n],
    "list index": lambda n: [1] * 9 and list("abcdefghij")[n],
    "true division": lambda n: n / 2,
    "reflected true division": lambda n: 2 / n,
    "times float": lambda n: 2.5 * n,
    "plus float": lambda n: n + 0.5,
    "negative power": lambda n: n**-0.5,
    "power of two": lambda n: 2**n,
    "sqrt": math.sqrt,
    "log": math.log,
    "float": float,
    "int": int,
    "complex": complex,
    "hash": hash,
    "dict key": lambda n: {n: 1},
    "set": lambda n: {n},
    "bytes": bytes,
    "bin": bin,
    "zeros": np.zeros,
    "arange": np.arange,
    "numpy array": lambda n: np.array([n]),
    "array times size": lambda n: np.arange(3) * n,
    "float32 times size": lambda n: np.float32(3) * n,
    "percent format": lambda n: operator.mod("%d", n),
    "format": lambda n: f"{n:d}",
    "pickle": pickle.dumps,
    "bit length": lambda n: n.bit_length(),
    "bit count": lambda n: n.bit_count(),
    "to bytes": lambda n: n.to_bytes(8, "little"),
    "lru_cache": lambda n: functools.lru_cache(lambda size: size)(n),
    "gcd": lambda n: math.gcd(n, 10),
    "struct": lambda n: struct.pack("i", n),
    "memory": lambda n: bytearray(n),
    "or": lambda n: n | 1,
    "xor": lambda n: n ^ 1,
    "shift by size": lambda n: 1 << n,
    "chr": chr,
    "round to tens": lambda n: round(n, -1),
    "compare with float": lambda n: n < 7.5,
}

QUESTIONS = {
    "greater": (lambda n, m: n > 6, "T > 6"),
    "odd": (lambda n, m: n % 2, "T % 2"),
    "mask": (lambda n, m: n & 3, "T % 4"),
    "equal": (lambda n, m: n == 7, "T == 7"),
    "other size": (lambda n, m: n != m, "T != B"),
    "max": (lambda n, m: max(n, 9), "9 > T"),
    "min": (lambda n, m: min(n, m), "B < T"),
    "truth": (lambda n, m: bool(n - 3), "T - 3 != 0"),
    "reflected remainder": (lambda n, m: 100 % n, "100 % T"),
    "divmod": (lambda n, m: divmod(n, 2), "T % 2"),
    "in": (lambda n, m: n in (3, 4), "T == 3"),
    "shape": (lambda n, m: (m, n) == (2, 7), "B == 2"),
}


@pytest.mark.parametrize("use", ESCAPES)
def test_every_escape_to_a_number_is_refused(scope, use):
    with pytest.raises(TraceException) as caught:
        ESCAPES[use](size(scope))
    assert caught.value.kind is TraceErrorKind.SYMBOLIC_SHAPE
    assert "T (= 7)" in str(caught.value)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_open_question_is_refused_with_its_relation(scope, question):
    ask, relation = QUESTIONS[question]
    with pytest.raises(TraceException) as caught:
        ask(size(scope), size(scope, "B", 2))
    assert caught.value.kind is TraceErrorKind.SYMBOLIC_SHAPE
    mirrored = {"9 > T": "T < 9"}.get(relation, relation)
    assert relation in str(caught.value) or mirrored in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


def test_json_never_writes_a_size(scope):
    with pytest.raises((TraceException, TypeError)):
        json.dumps([size(scope)])


def test_arithmetic_stays_symbolic(scope):
    n, b = size(scope), size(scope, "B", 2)
    assert type(n + 1) is Extent
    assert type(n + 1 - n) is int
    assert (n + 1 - n) == 1
    assert (n * b).text == "T*B"
    assert (2 * n // 2).text == "T"
    assert (n**2).text == "T*T"
    assert (-(-n // 2)).text == "(T + 1)//2"
    assert (n >> 1).text == "T//2"
    assert (n << 1).text == "2*T"
    assert sum([n, n, 1]).text == "2*T + 1"
    assert math.prod([n, b, 3]).text == "3*T*B"
    assert math.ceil(n) is n
    assert round(n) is n
    assert abs(n) is n
    assert (np.int64(3) * n).text == "3*T"
    assert n % 1 == 0
    assert (4 * n) % 2 == 0


def test_answers_that_hold_for_every_size(scope):
    n = size(scope)
    assert n == n
    assert (n != n) is False
    assert n > 0
    assert n
    assert n + 1 > n
    assert 2 * n != 7
    assert (n == None) is False  # noqa: E711
    assert n != "T"
    assert n >= 1
    assert [guard.text for guard in scope.guards] == ["T >= 1"]


def test_a_declared_range_answers(scope):
    n = size(scope, "W", 32, minimum=16, maximum=512, multiple=8)
    assert n > 8
    assert n % 4 == 0
    assert n <= 512
    assert not n < 16
    assert max(n, 4) is n
    with pytest.raises(TraceException, match="W > 20"):
        bool(n > 20)
    texts = [guard.text for guard in scope.guards]
    assert texts == ["W >= 16", "W <= 512", "W % 8 == 0"]


def test_it_passes_for_an_int(scope):
    n = size(scope)
    assert isinstance(n, int)
    assert type(n) is not int
    assert f"{n} {n!r} {n + 1}" == "T T T + 1"


def test_it_has_what_every_int_has(scope):
    n = size(scope)
    assert n.real is n
    assert n.numerator is n
    assert n.conjugate() is n
    assert (n.imag, n.denominator) == (0, 1)
    assert n.as_integer_ratio() == (n, 1)
    assert n.is_integer()


def test_texts_of_quotients_read_as_python_does(scope):
    n, b = size(scope), size(scope, "B", 2)
    assert (-(-5 // b)).text == "-((-5)//B)"
    assert (5 // b).text == "5//B"
    assert (n - 5 // b).text == "T - 5//B"
    assert (3 * (n // 2)).text == "3*(T//2)"


def test_copying_keeps_the_size(scope):
    n = size(scope)
    assert copy.copy(n) is n
    assert copy.deepcopy([n])[0] is n


def test_a_finished_trace_leaves_plain_numbers(scope):
    n, b = size(scope), size(scope, "B", 2)
    scope.recorder = None
    assert int(n) == 7
    assert list(range(n)) == [0, 1, 2, 3, 4, 5, 6]
    assert n == 7
    assert n / 2 == 3.5
    assert n * b == 14
    assert type(n * b) is int
    assert n % b == 1
    assert 2**b == 4
    assert hash(n) == hash(7)
    assert f"{n} {n!r} {n:03d}" == "7 7 007"
    assert pickle.loads(pickle.dumps(n)) == 7
    assert np.zeros(n).shape == (7,)
    with pytest.raises(TraceException, match="has finished"):
        n.tensor()


def test_modulo_and_division_by_zero(scope):
    n = size(scope)
    with pytest.raises(ZeroDivisionError):
        n % 0
    with pytest.raises(ZeroDivisionError):
        n // 0


def test_shapes_are_wrapped_and_unwrapped(scope):
    n = size(scope)
    shape = wrap_shape((unwrap(n), 3))
    assert type(shape[0]) is Extent
    assert shape[1] == 3
    assert unwrap((n, [n, 2], "x")) == (unwrap(n), (unwrap(n), 2), "x")
