"""What each operator does with the order in which the axes of its tensors are stored."""

from __future__ import annotations

from collections.abc import Sequence

from onemodel_graph.ir import Node, Value
from onemodel_graph.passes.axis_orders import Order, Step, identity, permutation
from onemodel_graph.passes.base import Matcher
from onemodel_graph.planning.numbers import read, tensor

UNARY = frozenset({
    "Abs", "Cast", "Ceil", "Celu", "Clip", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh",
    "ThresholdedRelu",
})  # fmt: skip
BROADCAST = frozenset({
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min",
    "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
})  # fmt: skip
REDUCTIONS = frozenset({
    "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
})  # fmt: skip
QUANTISED = frozenset({"DequantizeLinear", "QuantizeLinear"})
LIKE_FIRST = frozenset({
    "AveragePool", "BatchNormalization", "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization",
    "LayerNormalization", "LogSoftmax", "LpPool", "MaxPool", "RMSNormalization", "Resize", "Softmax",
})  # fmt: skip
"""Operators whose result has as many axes as their first input."""


def ranks(matcher: Matcher) -> dict[Value, int]:
    """The number of axes of the values for which it is certain."""
    graph = matcher.graph
    found = {value: len(value.shape) for value in graph.inputs if value.shape is not None}
    for name, array in graph.initializers.items():
        found[graph.values[name]] = array.ndim
    for node in graph.nodes:
        rank = None if node.domain else _rank(matcher, node, found)
        if rank is not None:
            found.update((value, rank) for value in node.outputs if value is not None)
    return found


def _rank(matcher: Matcher, node: Node, found: dict[Value, int]) -> int | None:
    known = [found.get(value) for value in node.inputs if value is not None]
    if not known:
        return None
    name = node.operator
    perm = permutation(node)
    if perm is not None:
        return len(perm)
    if name in UNARY | QUANTISED | LIKE_FIRST or name in ("Concat", "Pad", "Slice", "Split"):
        return known[0]
    if name in BROADCAST:
        whole = [rank for rank in known if rank is not None]
        return max(whole) if len(whole) == len(known) else None
    if name == "MatMul":
        sure = [rank for rank in known if rank is not None and rank > 1]
        return max(sure) if len(sure) == 2 else None
    if name in ("Conv", "ConvTranspose"):
        return known[1] if len(known) > 1 else None
    if name == "Gemm":
        return 2
    if name == "Gather":
        data, indices = known
        return None if data is None or indices is None else data + indices - 1
    if name == "Reshape":
        target = matcher.array(node.inputs[1])
        return None if target is None else target.size
    step = _change(matcher, node)
    if step is None or known[0] is None:
        return None
    return known[0] + step.grow


def _axes(matcher: Matcher, node: Node, position: int) -> tuple[int, ...] | None:
    """The axes in a constant input."""
    array = matcher.array(node.inputs[position]) if position < len(node.inputs) else None
    if array is None or array.ndim > 1 or array.size == 0 or array.dtype != "int64":
        return None
    found = read(array)
    return tuple(int(axis) for axis in found) if array.ndim else (int(found),)


def _positive(axes: Sequence[int], rank: int) -> tuple[int, ...] | None:
    found = tuple(sorted(axis + rank if axis < 0 else axis for axis in axes))
    good = len(set(found)) == len(found) and all(0 <= axis < rank for axis in found)
    return found if good else None


def _change(matcher: Matcher, node: Node) -> Step | None:
    """The step of an operator that may drop or add axes, with axes as they are written."""
    if node.operator not in REDUCTIONS | {"Squeeze", "Unsqueeze"}:
        return None
    axes = _axes(matcher, node, 1)
    if axes is None:
        return None
    if node.operator == "Unsqueeze":
        return Step(added=axes)
    if node.operator in REDUCTIONS and node.attributes.get("keepdims", 1):
        return Step()
    return Step(removed=axes)


def step_of(matcher: Matcher, node: Node, rank: dict[Value, int]) -> Step | None:
    """What a node does to an order of axes; ``None`` where it must have the written one.

    A part of the first axis needs no copy, so that Split and Slice keep it where it is.
    """
    if node.domain or any(value is None for value in node.outputs) or not node.inputs:
        return None
    first = node.inputs[0]
    name = node.operator
    if name in BROADCAST or name == "Concat":
        return _joined(matcher, node, rank, name == "Concat")
    if first is None or first not in rank or matcher.array(first) is not None:
        return None
    own = rank[first]
    if name in UNARY:
        rest = [value for value in node.inputs[1:] if value is not None]
        return Step() if all(rank.get(value) == 0 for value in rest) else None
    if name in QUANTISED:
        rest = [value for value in node.inputs[1:] if value is not None]
        blocked = (
            node.attributes.get("block_size") or not -own <= node.attributes.get("axis", 1) < own
        )
        return Step() if not blocked and all(rank.get(value, 2) < 2 for value in rest) else None
    if name == "Split":
        return Step() if node.attributes.get("axis", 0) % max(own, 1) else None
    if name == "Pad":
        pads = matcher.array(node.inputs[1])
        axes = _pad_axes(matcher, node, own)
        return Step() if pads is not None and axes and pads.shape == (2 * len(axes),) else None
    if name == "Slice":
        return Step() if any(_slice_axes(matcher, node, own) or ()) else None
    change = _change(matcher, node)
    if change is None:
        return None
    written = _axes(matcher, node, 1) or ()
    axes = _positive(written, own + max(change.grow, 0))
    if axes is None:
        return None
    if change.added:
        return Step(added=axes)
    return Step(removed=axes) if change.removed else change


def _joined(matcher: Matcher, node: Node, rank: dict[Value, int], concat: bool) -> Step | None:
    """Operators on several tensors: all that are no constants have the same number of axes."""
    found = [(p, v) for p, v in enumerate(node.inputs) if v is not None]
    if len(found) != len(node.inputs) or any(value not in rank for _, value in found):
        return None
    moving = [(p, v) for p, v in found if matcher.array(v) is None and rank[v] > 0]
    whole = max(rank[value] for _, value in found)
    if not moving or any(rank[value] != whole for _, value in moving):
        return None
    if concat and (
        any(rank[value] != whole for _, value in found)
        or not -whole <= node.attributes.get("axis", whole) < whole
    ):
        return None
    return Step(tuple(position for position, value in found if rank[value] > 0))


def _pad_axes(matcher: Matcher, node: Node, rank: int) -> tuple[int, ...] | None:
    if len(node.inputs) < 4 or node.inputs[3] is None:
        return identity(rank)
    return _listed(_axes(matcher, node, 3), rank)


def _slice_axes(matcher: Matcher, node: Node, rank: int) -> tuple[int, ...] | None:
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        return _listed(_axes(matcher, node, 3), rank)
    starts = matcher.array(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if starts is None or starts.size > rank else identity(starts.size)


def _listed(axes: tuple[int, ...] | None, rank: int) -> tuple[int, ...] | None:
    """Axes in the order in which they are written, counted from the front."""
    if axes is None or _positive(axes, rank) is None:
        return None
    return tuple(axis % rank for axis in axes)


def permits(matcher: Matcher, node: Node, order: Order) -> bool:
    """Whether a node reads each element in the same place of its sums in an order."""
    if node.operator not in REDUCTIONS:
        return True
    axes = _positive(_axes(matcher, node, 1) or (), len(order)) or ()
    moved = [order[axis] for axis in axes]
    return moved == sorted(moved)


def reorder(matcher: Matcher, node: Node, order: Order, after: Order) -> None:
    """Lets the attributes and constant operands of a node name the axes of an order."""
    rank, name = len(order), node.operator
    if name in QUANTISED or name in ("Concat", "Split"):
        axis = node.attributes.get("axis", 0 if name == "Split" else 1)
        node.attributes["axis"] = order[axis % rank]
    elif name == "Pad":
        axes = _pad_axes(matcher, node, rank) or ()
        _give(matcher, node, 3, [order[axis] for axis in axes])
    elif name == "Slice":
        axes = _slice_axes(matcher, node, rank) or ()
        _give(matcher, node, 3, [order[axis] for axis in axes])
    elif name in REDUCTIONS or name == "Squeeze":
        axes = _positive(_axes(matcher, node, 1) or (), rank) or ()
        _give(matcher, node, 1, sorted(order[axis] for axis in axes))
    elif name == "Unsqueeze":
        axes = _positive(_axes(matcher, node, 1) or (), len(after)) or ()
        _give(matcher, node, 1, sorted(after[axis] for axis in axes))


def _give(matcher: Matcher, node: Node, position: int, axes: list[int]) -> None:
    node.inputs += [None] * (position + 1 - len(node.inputs))
    stem = f"{node.name or node.operator}/axes"
    node.inputs[position] = matcher.add_constant(stem, tensor(axes, "int64"))
