"""Reads pickles as data: opcodes are followed, but no class is looked up and nothing is called.

Containers, numbers and text become themselves. A reference to a class or function becomes a
:class:`GlobalName`; calling one is left to a table of the reader's, and becomes an
:class:`Opaque` if it is not in the table.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from onemodel_kernels.errors import OneModelError

__all__ = ["GlobalName", "Opaque", "PickleError", "read_pickle"]


class PickleError(OneModelError, ValueError):
    """Bytes that are no pickle, or one with opcodes that plain data does not need."""


@dataclass(frozen=True)
class GlobalName:
    """A class or function by name; nothing was imported."""

    module: str
    name: str

    @property
    def path(self) -> str:
        """``module.name``."""
        return f"{self.module}.{self.name}"


@dataclass
class Opaque:
    """An object of a class that the reader does not know: its name, arguments and state."""

    kind: str
    arguments: tuple[Any, ...]
    state: Any = None


_MARK = object()
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": set,
    "MARK": lambda: _MARK,
}
_LITERALS = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Reader:
    def __init__(
        self,
        calls: Mapping[str, Callable[..., Any]],
        persistent: Callable[[Any], Any] | None,
    ) -> None:
        self.calls = calls
        self.persistent = persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise PickleError("read_pickle: a mark where a value was expected")
        return value

    def to_mark(self) -> list[Any]:
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is _MARK:
                values = self.stack[position + 1 :]
                del self.stack[position:]
                return values
        raise PickleError("read_pickle: a mark is missing")

    def call(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, GlobalName) or not isinstance(arguments, tuple):
            raise PickleError("read_pickle: only a name can be called, with a tuple")
        known = self.calls.get(function.path)
        return Opaque(function.path, arguments) if known is None else known(*arguments)

    def build(self, state: Any) -> None:
        if isinstance(self.stack[-1], Opaque):
            self.stack[-1].state = state

    def add_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, dict) and len(values) % 2 == 0:
            target.update(zip(values[::2], values[1::2], strict=True))
        elif isinstance(target, list):
            target.extend(values)
        elif isinstance(target, set):
            target.update(values)
        elif not isinstance(target, Opaque):
            raise PickleError(f"read_pickle: {type(target).__name__} takes no items")

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _LITERALS:
            stack.append(argument)
        elif name in _TUPLES:
            values = [self.pop() for _ in range(_TUPLES[name])]
            stack.append(tuple(reversed(values)))
        elif name == "TUPLE":
            stack.append(tuple(self.to_mark()))
        elif name == "LIST":
            stack.append(self.to_mark())
        elif name in ("DICT", "FROZENSET"):
            values = self.to_mark()
            stack.append({} if name == "DICT" else frozenset(values))
            if name == "DICT":
                self.add_items(values)
        elif name in ("SETITEMS", "APPENDS", "ADDITEMS"):
            self.add_items(self.to_mark())
        elif name == "APPEND":
            value = self.pop()
            self.add_items([value])
        elif name == "SETITEM":
            value = self.pop()
            key = self.pop()
            self.add_items([key, value])
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[int(argument)] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[int(argument)])
        elif name == "GLOBAL":
            module, _, attribute = str(argument).partition(" ")
            stack.append(GlobalName(module, attribute))
        elif name == "STACK_GLOBAL":
            attribute, module = self.pop(), self.pop()
            stack.append(GlobalName(str(module), str(attribute)))
        elif name in ("REDUCE", "NEWOBJ"):
            arguments = self.pop()
            stack.append(self.call(self.pop(), arguments))
        elif name == "BUILD":
            self.build(self.pop())
        elif name == "BINPERSID" and self.persistent is not None:
            stack.append(self.persistent(self.pop()))
        elif name == "POP":
            stack.pop()
        elif name == "POP_MARK":
            self.to_mark()
        elif name == "DUP":
            stack.append(stack[-1])
        elif name not in ("PROTO", "FRAME"):
            raise PickleError(
                f"read_pickle: opcode {name} is not needed for data, and not followed"
            )


def read_pickle(
    stream: BytesIO,
    calls: Mapping[str, Callable[..., Any]],
    persistent: Callable[[Any], Any] | None = None,
) -> Any:
    """Reads one pickle and leaves the stream behind it.

    Args:
        stream: positioned at the pickle.
        calls: what stands for calls of functions and classes, by dotted name.
        persistent: what stands for persistent identifiers.

    Raises:
        PickleError: the bytes are malformed, or hold something other than data.
    """
    reader = _Reader(calls, persistent)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name == "STOP":
                return reader.pop()
            reader.step(opcode.name, argument)
    except OneModelError:
        raise
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise PickleError(f"read_pickle: malformed pickle: {error!r}") from error
    raise PickleError("read_pickle: the pickle ends without STOP")
