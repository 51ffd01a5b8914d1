"""Operators that make texts: they run between programs, on codes of texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from onemodel_graph.planning.node_planning import Host
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Known
from onemodel_graph.planning.steps import TEXT, Step, handler
from onemodel_graph.texts import Texts
from onemodel_kernels import Kernel
from onemodel_kernels.errors import AttributeValueError, MemoryLimitError, ShapeError

LARGEST = 1 << 26
"""Characters, and texts, that one result may have: texts that double in each node grow without end."""


def _bounded(size: int, operator: str) -> None:
    if size > LARGEST:
        raise MemoryLimitError(
            f"{operator}: expected a result of at most {LARGEST} characters or texts, got {size}"
        )


def _texts(planner: Planner) -> Texts:
    found: Texts = planner.context.texts
    return found


@handler("StringConcat", "X Y", domain=TEXT)
def _concat(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    texts = _texts(planner)

    def run(arrays: list[Any]) -> Sequence[Any]:
        x, y = arrays
        try:
            # What a sum would have broadcast: its shape alone is used.
            (kind,) = Kernel("Add").infer([("int64", x.shape), ("int64", y.shape)])
        except ShapeError as error:
            raise ShapeError(f"StringConcat: {error}") from None
        shape = tuple(kind[1])
        _bounded(math.prod(shape), "StringConcat")
        left, right = (texts.decode(a.expand(shape).contiguous()) for a in (x, y))
        _bounded(sum(map(len, left)) + sum(map(len, right)), "StringConcat")
        return [texts.encode([a + b for a, b in zip(left, right, strict=True)], shape)]

    raise Host(run, inputs)


@handler("StringSplit", "X", "delimiter:string maxsplit:int", domain=TEXT)
def _split(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    texts = _texts(planner)
    delimiter = step.node.attributes.get("delimiter") or None
    most = step.node.attributes.get("maxsplit", -1)

    def run(arrays: list[Any]) -> Sequence[Any]:
        shape = arrays[0].shape
        _bounded(arrays[0].size, "StringSplit")
        parts = [text.split(delimiter, most) for text in texts.decode(arrays[0])]
        width = max((len(part) for part in parts), default=0)
        _bounded(len(parts) * width, "StringSplit")
        flat = [text for part in parts for text in [*part, *[""] * (width - len(part))]]
        counts = tensor([len(part) for part in parts], "int64").view_or_copy(shape)
        return [texts.encode(flat, (*shape, width)), counts]

    raise Host(run, inputs)


_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}


@handler(
    "StringNormalizer",
    "X",
    "case_change_action:string is_case_sensitive:int locale:string stopwords:strings",
    domain=TEXT,
)
def _normalise(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    texts = _texts(planner)
    attributes = step.node.attributes
    action = attributes.get("case_change_action", "NONE")
    if action not in _CASES:
        raise AttributeValueError(
            f"{step.node.label}: expected 'case_change_action' to be one of {', '.join(_CASES)}, "
            f"got {action!r}"
        )
    exact = bool(attributes.get("is_case_sensitive", 0))
    plain = str if exact else str.lower
    stopped = {plain(word) for word in attributes.get("stopwords") or ()}

    def run(arrays: list[Any]) -> Sequence[Any]:
        shape: tuple[int, ...] = arrays[0].shape
        if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != 1):
            raise ShapeError(f"StringNormalizer: expected a shape (C) or (1, C), got {shape}")
        _bounded(arrays[0].size, "StringNormalizer")
        kept = [text for text in texts.decode(arrays[0]) if plain(text) not in stopped]
        # Where every text is a stop word one empty text is left.
        made = [_CASES[action](text) for text in kept] or [""]
        return [texts.encode(made, (*shape[:-1], len(made)))]

    raise Host(run, inputs)
