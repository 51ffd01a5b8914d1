"""What crosses the border of a segment: arrays, sequences of them, and what is known of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.ir import Graph, Value
from onemodel_graph.planning.slot import Items, Known, Slot
from onemodel_graph.planning.steps import Alias, Prepared, Step
from onemodel_kernels import Array


def live_values(rest: Sequence[Step | Alias], graph: Graph) -> set[Value]:
    """The values that steps and the outputs of a graph still read."""
    live = set(graph.outputs)
    for step in rest:
        if isinstance(step, Alias):
            live.update(source for source, _ in step.pairs)
        else:
            live.update(value for value in step.node.inputs if value is not None)
            for body in step.bodies.values():
                live.update(reads(body))
    return live


def reads(body: Prepared) -> set[Value]:
    """Values of enclosing graphs that a body, or a body inside it, reads."""
    own = {*body.graph.inputs, *body.graph.values.values()}
    found: set[Value] = set()
    for step in body.steps:
        found.update(value for value in step.node.inputs if value is not None)
        own.update(value for value in step.node.outputs if value is not None)
        for inner in step.bodies.values():
            found |= reads(inner)
    found.update(body.graph.outputs)
    return found - own


def type_of(value: Any) -> Any:
    """What the plan of an input depends on: dtype and shape, of each entry of a sequence."""
    if value is None:
        return None
    if isinstance(value, list):
        return ("sequence", *(type_of(entry) for entry in value))
    return (value.dtype, value.shape)


def feed_slots(value: Any, feeds: list[Slot]) -> Known:
    """What is known of an array, or a list of them, that a segment is given."""
    if value is None:
        return None
    if isinstance(value, list):
        return Items([feed_slots(entry, feeds) for entry in value])
    slot = Slot(value.dtype, tuple(value.shape))
    feeds.append(slot)
    return slot


def flat_arrays(values: Sequence[Any]) -> list[Array]:
    """The arrays in values, those of sequences among them."""
    found: list[Array] = []
    for value in values:
        if isinstance(value, list):
            found.extend(flat_arrays(value))
        elif value is not None:
            found.append(value)
    return found


def replaced(known: Known, moved: dict[Slot, Slot]) -> Known:
    """A value in which slots stand for those that a dict names."""
    if isinstance(known, Items):
        return Items([replaced(entry, moved) for entry in known.slots], known.dtype)
    return known if known is None else moved.get(known, known)


def collect(known: Known, where: dict[Slot, int], made: list[Array]) -> Any:
    """The arrays of a value, among those that a program made where they are not known."""
    if known is None:
        return None
    if isinstance(known, Items):
        return [collect(entry, where, made) for entry in known.slots]
    return known.array if known.array is not None else made[where[known]]


def template_of(known: Known, results: list[Slot]) -> Any:
    """An output as places in the list of results, which grows, and as arrays that are known."""
    if known is None:
        return None
    if isinstance(known, Items):
        return [template_of(entry, results) for entry in known.slots]
    if known.array is not None:
        return known.array
    results.append(known)
    return len(results) - 1


def filled(entry: Any, made: list[Array]) -> Any:
    """An output of a run: what a template says, with the arrays that were made."""
    if isinstance(entry, int):
        return made[entry]
    if isinstance(entry, list):
        return [filled(part, made) for part in entry]
    return entry.copy() if isinstance(entry, Array) else entry
