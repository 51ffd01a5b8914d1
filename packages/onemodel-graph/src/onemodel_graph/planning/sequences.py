"""Constants, sequences and optionals, which exist at plan time only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Items, Known, Slot, constant
from onemodel_graph.planning.steps import Step, handler
from onemodel_kernels.errors import AttributeValueError, BoundsError, DtypeError
from onemodel_kernels.ops.spec import normalise_axis


def _slot(known: Known, what: str) -> Slot:
    if not isinstance(known, Slot):
        raise DtypeError(f"expected {what} to be a tensor, got {known}")
    return known


def _items(known: Known) -> Items:
    if not isinstance(known, Items):
        raise DtypeError(f"expected a sequence, got {known}")
    return known


@handler(
    "Constant",
    "",
    "value:tensor value_int:int value_ints:ints value_float:float value_floats:floats",
)
def _constant(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    kept: Slot | None = step.state.get("slot")
    if kept is None:
        kept = constant(constant_array(step.node.attributes), True)
        step.state["slot"] = kept
    return (kept,)


def constant_array(attributes: dict[str, Any]) -> Any:
    """The array of a Constant node."""
    if attributes.get("value") is not None:
        return attributes["value"]
    for name, dtype in (("float", "float32"), ("int", "int64")):
        for key in (f"value_{name}", f"value_{name}s"):
            value = attributes.get(key)
            if value is not None:
                return tensor(list(value) if isinstance(value, tuple) else value, dtype)
    raise AttributeValueError(
        f"Constant: expected a numeric value, got {list(attributes) or 'none'}"
    )


def _position(planner: Planner, known: Known, length: int, extra: int = 0) -> int:
    value = planner.value(_slot(known, "the position"), "the position in a sequence")
    while isinstance(value, tuple):
        (value,) = value
    index = int(value)
    if not -length <= index < length + extra:
        raise BoundsError(f"the position {index} is outside a sequence of {length}")
    return index + length if index < 0 else index


@handler("SequenceConstruct", "inputs*")
def _construct(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    return (Items(list(inputs)),)


@handler("SequenceEmpty", "", "dtype:dtype")
def _empty(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    return (Items([], step.node.attributes.get("dtype", "float32")),)


@handler("SequenceAt", "sequence position")
def _at(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    items = _items(inputs[0])
    return (items.slots[_position(planner, inputs[1], len(items.slots))],)


@handler("SequenceLength", "sequence")
def _length(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    return (planner.constant(len(_items(inputs[0]).slots), "int64"),)


@handler("SequenceInsert", "sequence tensor position?")
def _insert(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    slots = list(_items(inputs[0]).slots)
    at = len(slots)
    if len(inputs) > 2 and inputs[2] is not None:
        at = _position(planner, inputs[2], len(slots), 1)
    slots.insert(at, inputs[1])
    return (Items(slots),)


@handler("SequenceErase", "sequence position?")
def _erase(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    slots = list(_items(inputs[0]).slots)
    at = len(slots) - 1
    if len(inputs) > 1 and inputs[1] is not None:
        at = _position(planner, inputs[1], len(slots))
    del slots[at]
    return (Items(slots),)


@handler("ConcatFromSequence", "sequence", "axis:int! new_axis:int")
def _concat(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    slots = [_slot(entry, "every entry") for entry in _items(inputs[0]).slots]
    axis = step.node.attributes["axis"]
    if step.node.attributes.get("new_axis", 0):
        slots = [planner.emit("Unsqueeze", slot, axes=(axis,)) for slot in slots]
    return (planner.emit("Concat", *slots, axis=axis),)


@handler("SplitToSequence", "input split?", "axis:int keepdims:int")
def _split(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    source = _slot(inputs[0], "the input")
    attributes = step.node.attributes
    axis = normalise_axis(attributes.get("axis", 0), len(source.shape))
    extent = source.shape[axis]
    squeeze = False
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = planner.value(_slot(inputs[1], "split"), "the sizes of a split")
        if isinstance(sizes, int):
            sizes = tuple(min(sizes, extent - i) for i in range(0, extent, sizes))
    else:
        sizes = (1,) * extent
        squeeze = not attributes.get("keepdims", 1)
    parts = planner.emit("Split", source, axis=axis, split=sizes)
    parts = list(parts) if isinstance(parts, tuple) else [parts]
    if squeeze:
        parts = [planner.emit("Squeeze", part, axes=(axis,)) for part in parts]
    return (Items(parts),)


@handler("Optional", "input?", "type:type")
def _optional(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    return (inputs[0] if inputs else None,)


@handler("OptionalHasElement", "input?")
def _has(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    return (planner.constant(bool(inputs) and inputs[0] is not None, "bool"),)


@handler("OptionalGetElement", "input")
def _get(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    if inputs[0] is None:
        raise DtypeError(
            "OptionalGetElement: expected an optional with an element, got an empty one"
        )
    return (inputs[0],)


@handler("Identity", "input")
def _identity(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    return (inputs[0],)
