"""If, Loop, Scan and SequenceMap.

A known condition chooses a branch at plan time; its nodes are then planned in place. A loop runs
its body as a planned graph of its own, once for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.segment import Environment, Host, Planned, reads
from onemodel_graph.planning.slot import Items, Known, Slot, constant
from onemodel_graph.planning.steps import Alias, Expansion, Step, handler
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import DtypeError, ShapeError

FOREVER = 2**63 - 1
"""The trip count of a loop that has none."""


@handler("If")
def _if(planner: Planner, step: Step, inputs: Sequence[Known]) -> Expansion:
    condition = inputs[0]
    if not isinstance(condition, Slot):
        raise DtypeError("If: expected the condition to be a tensor")
    chosen = planner.value(condition, "the condition of If")
    while isinstance(chosen, tuple):
        chosen = chosen[0]
    body = step.bodies["then_branch" if chosen else "else_branch"]
    for name, array in body.graph.initializers.items():
        planner.bindings[body.graph.values[name]] = constant(array, True)
    pairs = [
        (source, target)
        for source, target in zip(body.graph.outputs, step.node.outputs, strict=False)
        if target is not None
    ]
    return Expansion([*body.steps, Alias(pairs)])


def _body(planner: Planner, step: Step, name: str) -> tuple[Planned, list[Known]]:
    """The planned body of a node and the values of enclosing graphs that it reads at run time."""
    body = step.bodies[name]
    known: Environment = {}
    captured: list[Value] = []
    slots: list[Known] = []
    for value in sorted(reads(body), key=lambda v: v.name):
        outside = planner.bindings[value]
        if isinstance(outside, Slot) and outside.array is not None:
            known[value] = outside
        else:
            captured.append(value)
            slots.append(outside)
    return Planned(body, planner.context, known, captured=captured), slots


def _stack(parts: list[Array], axis: int, empty: tuple[str, tuple[int, ...]]) -> Array:
    if not parts:
        dtype, shape = empty
        return Array.full((0, *shape), 0, dtype)
    at = axis + parts[0].ndim + 1 if axis < 0 else axis
    raised = [part.unsqueeze((at,)) for part in parts]
    joined: Array = Kernel("Concat", axis=at)(*raised)
    return joined


@handler("Loop")
def _loop(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    planned, captured = _body(planner, step, "body")
    carried = len(inputs) - 2
    body = step.bodies["body"].graph
    scans = [
        (value.dtype or "float32", tuple(e if isinstance(e, int) else 0 for e in value.shape or ()))
        for value in body.outputs[1 + carried :]
    ]

    def run(arguments: list[Any]) -> Sequence[Any]:
        limit, condition = arguments[:2]
        states = arguments[2 : 2 + carried]
        outside = arguments[2 + carried :]
        trips = FOREVER if limit is None else int(limit.reshape(()).item())
        going = condition is None or bool(condition.reshape(()).item())
        flag = tensor(True, "bool") if condition is None else condition
        collected: list[list[Array]] = [[] for _ in scans]
        iteration = 0
        while going and iteration < trips:
            step_number = tensor(iteration, "int64")
            flag, *made = planned.run([step_number, flag, *states, *outside])
            states = made[:carried]
            for kept, part in zip(collected, made[carried:], strict=True):
                kept.append(part)
            going = bool(flag.reshape(()).item())
            iteration += 1
        stacked = [_stack(p, 0, empty) for p, empty in zip(collected, scans, strict=True)]
        return [*states, *stacked]

    raise Host(run, [*inputs[:2], *inputs[2:], *captured])


@handler("Scan")
def _scan(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    planned, captured = _body(planner, step, "body")
    attributes = step.node.attributes
    count = attributes["num_scan_inputs"]
    states_count = len(inputs) - count
    body = step.bodies["body"].graph
    outputs = len(body.outputs) - states_count
    axes_in = attributes.get("scan_input_axes") or (0,) * count
    axes_out = attributes.get("scan_output_axes") or (0,) * outputs
    back_in = attributes.get("scan_input_directions") or (0,) * count
    back_out = attributes.get("scan_output_directions") or (0,) * outputs
    types = [
        (value.dtype or "float32", tuple(e if isinstance(e, int) else 0 for e in value.shape or ()))
        for value in body.outputs[states_count:]
    ]

    def run(arguments: list[Any]) -> Sequence[Any]:
        states = arguments[:states_count]
        sources = arguments[states_count : states_count + count]
        outside = arguments[states_count + count :]
        lengths = {source.shape[axis] for source, axis in zip(sources, axes_in, strict=True)}
        if len(lengths) != 1:
            raise ShapeError(
                f"Scan: the scanned extents must be equal, but they are {sorted(lengths)}"
            )
        (length,) = lengths
        collected: list[list[Array]] = [[] for _ in range(outputs)]
        for index in range(length):
            rows = [
                source.select(axis, length - 1 - index if back else index).contiguous()
                for source, axis, back in zip(sources, axes_in, back_in, strict=True)
            ]
            made = planned.run([*states, *rows, *outside])
            states = made[:states_count]
            for kept, part in zip(collected, made[states_count:], strict=True):
                kept.append(part)
        stacked = []
        for parts, axis, back, empty in zip(collected, axes_out, back_out, types, strict=True):
            stacked.append(_stack(parts[::-1] if back else parts, axis, empty))
        return [*states, *stacked]

    raise Host(run, [*inputs, *captured])


@handler("SequenceMap")
def _map(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    planned, captured = _body(planner, step, "body")
    first = inputs[0]
    if not isinstance(first, Items):
        raise DtypeError("SequenceMap: expected the first input to be a sequence")

    def run(arguments: list[Any]) -> Sequence[Any]:
        given = arguments[: len(inputs)]
        outside = arguments[len(inputs) :]
        made = []
        for index in range(len(given[0])):
            row = [entry[index] if isinstance(entry, list) else entry for entry in given]
            made.append(planned.run([*row, *outside]))
        return [list(column) for column in zip(*made, strict=True)] if made else [[]]

    raise Host(run, [*inputs, *captured])


@handler("BatchedScan", "onemodel")
def _batched_scan(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    """Scan of opset 8: a batch in front, the scanned axis behind it, each row by itself."""
    planned, captured = _body(planner, step, "body")
    attributes = step.node.attributes
    count = attributes["num_scan_inputs"]
    states_count = len(inputs) - 1 - count
    back = attributes.get("directions") or (0,) * count
    body = step.bodies["body"].graph
    outputs = len(body.outputs) - states_count

    def run(arguments: list[Any]) -> Sequence[Any]:
        lengths, *given = arguments
        states = given[:states_count]
        sources = given[states_count : states_count + count]
        outside = given[states_count + count :]
        batch, longest = sources[0].shape[:2]
        steps = [longest] * batch if lengths is None else lengths.tolist()
        rows: list[list[Array]] = []
        for index in range(batch):
            current = [state.select(0, index).contiguous() for state in states]
            collected: list[list[Array]] = [[] for _ in range(outputs)]
            for time in range(steps[index]):
                parts = [
                    source.select(0, index)
                    .select(0, steps[index] - 1 - time if turned else time)
                    .contiguous()
                    for source, turned in zip(sources, back, strict=True)
                ]
                made = planned.run([*current, *parts, *outside])
                current = made[:states_count]
                for kept, part in zip(collected, made[states_count:], strict=True):
                    kept.append(part)
            stacked = [_stack(parts, 0, ("float32", ())) for parts in collected]
            pads = Kernel("Pad", pads=(0, longest - steps[index]), axes=(0,), mode="constant")
            if steps[index] < longest:
                stacked = [pads(part) for part in stacked]
            rows.append([*current, *stacked])
        return [_stack(list(column), 0, ("float32", ())) for column in zip(*rows, strict=True)]

    raise Host(run, [*inputs, *captured])
