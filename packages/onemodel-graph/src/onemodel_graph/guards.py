"""Symbols of a run and the guards that a graph states about them.

A graph's metadata may hold, under ``"onemodel.guards"``, a JSON list of comparisons between integer
expressions over its symbols: ``["T > 4", "2*(H//2) == H"]``. They were true for the run that the
graph was recorded from, and must be true of every run.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onemodel_graph.ir import Graph, Value
from onemodel_kernels.errors import AttributeValueError, ShapeError

KEY = "onemodel.guards"
_BINARY: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type, Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS: dict[str, Callable[..., int]] = {"max": max, "min": min}


class Guard:
    """One comparison between integer expressions over symbols.

    Args:
        text: Integers, symbol names, ``+ - * // %``, ``max(…)``, ``min(…)``, parentheses and one
            comparison (or a chain of them). A symbol that is not a Python name is written
            ``symbol("name")``.

    Raises:
        AttributeValueError: when the text is anything else.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise AttributeValueError(f"guard {text!r}: this is not a comparison") from None
        if not isinstance(tree, ast.Compare):
            raise AttributeValueError(f"guard {text!r}: this is not a comparison")
        self._tree = tree

    def holds(self, symbols: Mapping[str, int]) -> bool:
        """Whether the comparison is true for these sizes."""
        left = self._number(self._tree.left, symbols)
        for relation, node in zip(self._tree.ops, self._tree.comparators, strict=True):
            right = self._number(node, symbols)
            compare = _COMPARE.get(type(relation))
            if compare is None:
                raise AttributeValueError(f"guard {self.text!r}: unknown comparison")
            if not compare(left, right):
                return False
            left = right
        return True

    def _number(self, node: ast.expr, symbols: Mapping[str, int]) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return self._symbol(node.id, symbols)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            left, right = self._number(node.left, symbols), self._number(node.right, symbols)
            if right == 0 and isinstance(node.op, ast.FloorDiv | ast.Mod):
                raise ShapeError(f"guard {self.text!r}: division by 0")
            return _BINARY[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._number(node.operand, symbols)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id in _CALLS and node.args:
                return _CALLS[node.func.id](*(self._number(entry, symbols) for entry in node.args))
            name = node.args[0] if node.args else None
            if node.func.id == "symbol" and isinstance(name, ast.Constant):
                return self._symbol(str(name.value), symbols)
        raise AttributeValueError(
            f"guard {self.text!r}: {ast.unparse(node)!r} is not allowed in it"
        )

    def _symbol(self, name: str, symbols: Mapping[str, int]) -> int:
        if name not in symbols:
            raise AttributeValueError(f"guard {self.text!r}: the graph has no symbol {name!r}")
        return symbols[name]


def guards_of(graph: Graph) -> tuple[Guard, ...]:
    """The guards in a graph's metadata."""
    text = graph.metadata.get(KEY)
    if not text:
        return ()
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise AttributeValueError(f"metadata {KEY!r} is not JSON: {error}") from None
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise AttributeValueError(f"metadata {KEY!r} must be a JSON list of texts, got {text!r}")
    return tuple(Guard(entry) for entry in listed)


def bind(inputs: Sequence[Value], arrays: Sequence[Any]) -> dict[str, int]:
    """The size of every symbol in a run.

    Raises:
        ShapeError: naming the input, the axis and both sizes, when a rank, a static extent or the
            size of a symbol does not agree.
    """
    symbols: dict[str, int] = {}
    first: dict[str, str] = {}
    for value, array in zip(inputs, arrays, strict=True):
        if value.shape is None or array is None or isinstance(array, list):
            continue
        shape = array.shape
        if len(shape) != len(value.shape):
            raise ShapeError(
                f"input {value.name!r}: expected {len(value.shape)} axes {_shown(value)}, got shape {shape}"
            )
        for axis, (want, have) in enumerate(zip(value.shape, shape, strict=True)):
            if isinstance(want, int) and want != have:
                raise ShapeError(
                    f"input {value.name!r}: expected {want} at axis {axis} of {_shown(value)}, got {shape}"
                )
            if isinstance(want, str):
                place = f"axis {axis} of {value.name!r}"
                if symbols.setdefault(want, have) != have:
                    raise ShapeError(
                        f"input {value.name!r}: the symbol {want!r} is {symbols[want]} at {first[want]}, "
                        f"but {have} at {place}; one run has one size for each symbol"
                    )
                first.setdefault(want, place)
    return symbols


def _shown(value: Value) -> str:
    return f"[{', '.join('?' if e is None else str(e) for e in value.shape or ())}]"
