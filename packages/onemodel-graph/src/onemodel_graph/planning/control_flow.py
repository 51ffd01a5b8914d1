"""If, Loop, Scan and SequenceMap.

A known condition chooses a branch at plan time; its nodes are then planned in place. A loop runs
its body as a planned graph of its own, once for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.ir import Graph, Value
from onemodel_graph.planning.border import reads
from onemodel_graph.planning.node_planning import Environment, Host
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.planned import Planned
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Items, Known, Slot, constant
from onemodel_graph.planning.steps import Alias, Expansion, Step, handler
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError

FOREVER = 2**63 - 1
"""The trip count of a loop that has none."""


@handler("If", "cond", "then_branch:graph! else_branch:graph!")
def _if(planner: Planner, step: Step, inputs: Sequence[Known]) -> Expansion:
    condition = inputs[0]
    if not isinstance(condition, Slot):
        raise DtypeError("If: expected the condition to be a tensor")
    chosen = planner.value(condition, "the condition of If")
    while isinstance(chosen, tuple):
        chosen = chosen[0]
    body = step.bodies["then_branch" if chosen else "else_branch"]
    _require(step, body.graph, 0, len(step.node.outputs))
    for name, array in body.graph.initializers.items():
        planner.bindings[body.graph.values[name]] = constant(array, True)
    pairs = [
        (source, target)
        for source, target in zip(body.graph.outputs, step.node.outputs, strict=False)
        if target is not None
    ]
    return Expansion([*body.steps, Alias(pairs)])


def _require(step: Step, body: Graph, inputs: int | None, outputs: int) -> None:
    """Raises unless a body takes so many inputs and has at least so many outputs."""
    if inputs is not None and len(body.inputs) != inputs:
        raise AttributeValueError(
            f"{step.node.label}: expected a body of {inputs} inputs, but it has {len(body.inputs)}"
        )
    if len(body.outputs) < outputs:
        raise AttributeValueError(
            f"{step.node.label}: expected a body of at least {outputs} outputs, "
            f"but it has {len(body.outputs)}"
        )


def _scanned(step: Step, inputs: int, body: Graph) -> tuple[int, int]:
    """(scanned inputs, scanned outputs) of a Scan with so many inputs behind sequence_lens."""
    count = step.node.attributes["num_scan_inputs"]
    if not 1 <= count <= inputs:
        raise AttributeValueError(
            f"{step.node.label}: expected num_scan_inputs from 1 to {inputs}, got {count}"
        )
    _require(step, body, inputs, inputs - count)
    return count, len(body.outputs) - (inputs - count)


def _listed(step: Step, name: str, count: int) -> tuple[int, ...]:
    """One number for each scanned input or output; 0 without the attribute."""
    value = step.node.attributes.get(name) or (0,) * count
    if len(value) != count:
        raise AttributeValueError(
            f"{step.node.label}: expected {count} numbers in {name!r}, got {tuple(value)}"
        )
    return tuple(value)


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


@handler("Loop", "M? cond? v*", "body:graph!")
def _loop(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    planned, captured = _body(planner, step, "body")
    carried = len(inputs) - 2
    body = step.bodies["body"].graph
    _require(step, body, 2 + carried, 1 + carried)
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


@handler(
    "Scan",
    "inputs*",
    "body:graph! num_scan_inputs:int! scan_input_axes:ints scan_output_axes:ints "
    "scan_input_directions:ints scan_output_directions:ints",
)
def _scan(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    planned, captured = _body(planner, step, "body")
    body = step.bodies["body"].graph
    count, outputs = _scanned(step, len(inputs), body)
    states_count = len(inputs) - count
    axes_in = _listed(step, "scan_input_axes", count)
    axes_out = _listed(step, "scan_output_axes", outputs)
    back_in = _listed(step, "scan_input_directions", count)
    back_out = _listed(step, "scan_output_directions", outputs)
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


@handler("SequenceMap", "input_sequence additional*", "body:graph!")
def _map(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    planned, captured = _body(planner, step, "body")
    first = inputs[0]
    _require(step, step.bodies["body"].graph, len(inputs), len(step.node.outputs))
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


@handler(
    "BatchedScan",
    "sequence_lens? inputs*",
    "body:graph! num_scan_inputs:int! directions:ints",
    "onemodel",
)
def _batched_scan(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Any]:
    """Scan of opset 8: a batch in front, the scanned axis behind it, each row by itself."""
    planned, captured = _body(planner, step, "body")
    body = step.bodies["body"].graph
    count, outputs = _scanned(step, len(inputs) - 1, body)
    states_count = len(inputs) - 1 - count
    back = _listed(step, "directions", count)

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
