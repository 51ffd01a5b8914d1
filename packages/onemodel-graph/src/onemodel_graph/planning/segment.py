"""Plans in segments: one program where every shape is known from the inputs, several where one is
not.

A segment ends where planning needs a value that only a run gives: an operand that is computed, a
condition, or an operator whose output size depends on values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Graph
from onemodel_graph.planning.border import live_values, template_of
from onemodel_graph.planning.checks import MALFORMED
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.memory import build
from onemodel_graph.planning.node_planning import Environment, Host, located, malformed, plan_step
from onemodel_graph.planning.outlining import Sketch
from onemodel_graph.planning.planner import NeedsValue, Planner
from onemodel_graph.planning.slot import Slot, flat
from onemodel_graph.planning.steps import Alias, Step
from onemodel_kernels import Program
from onemodel_kernels.errors import OneModelError


@dataclass(eq=False, slots=True)
class Segment:
    """A program and what follows it."""

    program: Program | None
    labels: list[str]
    picks: list[int]
    results: list[Slot]
    environment: Environment
    rest: list[Step | Alias]
    needed: list[int] = field(default_factory=list)
    host: Host | None = None
    host_node: Step | None = None
    template: list[Any] | None = None
    direct: bool = False
    continuations: OrderedDict[Any, Segment] = field(default_factory=OrderedDict)


def plan(
    context: Context,
    graph: Graph,
    environment: Environment,
    feeds: list[Slot],
    steps: Sequence[Step | Alias],
    sketch: Sketch | None = None,
) -> Segment:
    """Plans steps up to the end of a graph, or to where a value is needed that only a run gives.

    Args:
        context: The caches of the session.
        graph: Whose outputs are asked for.
        environment: What is known of values; it grows.
        feeds: The values that the segment is given.
        steps: What is to be planned.
        sketch: Where to note the plan for other sizes.
    """
    planner = Planner(context, sketch is not None)
    planner.bindings = environment
    work = list(reversed(steps))
    while work:
        step = work.pop()
        if isinstance(step, Alias):
            for source, target in step.pairs:
                environment[target] = environment[source]
            continue
        made = len(planner.calls)
        try:
            expansion = plan_step(planner, step, environment)
        except NeedsValue as need:
            rest = [step, *reversed(work)]
            return _cut(planner, graph, environment, feeds, rest, [need.slot], None, None)
        except Host as host:
            slots = [slot for known in host.arguments for slot in flat(known)]
            rest = list(reversed(work))
            return _cut(planner, graph, environment, feeds, rest, slots, host, step)
        except OneModelError as error:
            raise located(error, step, environment) from None
        except MALFORMED as error:
            raise located(malformed(error, step), step, environment) from error
        if expansion:
            work.extend(reversed(expansion))
        if sketch is not None:
            sketch.note(planner, step, planner.calls[made:], environment, bool(expansion))
    results: list[Slot] = []
    template = [template_of(environment[value], results) for value in graph.outputs]
    program, labels, picks = _program(planner, feeds, results)
    segment = Segment(program, labels, picks, results, {}, [], template=template)
    # One program that takes the arrays at hand and makes the outputs, in order.
    segment.direct = (
        program is not None
        and picks == list(range(len(feeds)))
        and template == list(range(len(results)))
    )
    return segment


def _cut(
    planner: Planner,
    graph: Graph,
    environment: Environment,
    feeds: list[Slot],
    rest: list[Step | Alias],
    wanted: list[Slot],
    host: Host | None,
    step: Step | None,
) -> Segment:
    live = live_values(rest, graph)
    kept = {value: known for value, known in environment.items() if value in live}
    carried = dict.fromkeys(slot for slot in wanted if slot.array is None)
    for known in kept.values():
        carried.update(dict.fromkeys(slot for slot in flat(known) if slot.array is None))
    results = list(carried)
    needed = [results.index(slot) for slot in wanted] if host is None else []
    program, labels, picks = _program(planner, feeds, results)
    return Segment(program, labels, picks, results, kept, rest, needed, host, step)


def _program(
    planner: Planner, feeds: list[Slot], results: list[Slot]
) -> tuple[Program | None, list[str], list[int]]:
    """The program of the calls so far, and which of the arrays at hand it takes."""
    if not results:
        return None, [], []
    used = {slot.root for slot in results}
    for call in planner.calls:
        used.update(slot.root for slot in call.inputs if slot is not None)
    picks = [i for i, slot in enumerate(feeds) if slot in used]
    program, labels = build(planner.calls, [feeds[i] for i in picks], results)
    return program, labels, picks
