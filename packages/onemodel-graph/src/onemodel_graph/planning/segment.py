"""Plans in segments: one program where every shape is known from the inputs, several where one is
not.

A segment ends where planning needs a value that only a run gives: an operand that is computed, a
condition, or an operator whose output size depends on values. Its continuations are planned for the
shapes (and the needed values) that a run brings, and kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.planning.border import (
    collect,
    feed_slots,
    filled,
    flat_arrays,
    live_values,
    replaced,
    template_of,
    type_of,
)
from onemodel_graph.planning.checks import MALFORMED
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.memory import build
from onemodel_graph.planning.node_planning import (
    Environment,
    Host,
    located,
    malformed,
    plan_step,
    require_outputs,
)
from onemodel_graph.planning.planner import NeedsValue, Planner
from onemodel_graph.planning.slot import SIZES, Slot, constant, flat
from onemodel_graph.planning.steps import Alias, Prepared, Step
from onemodel_kernels import Array, Program
from onemodel_kernels.errors import OneModelError
from onemodel_kernels.forking import new_in_child

CONTINUATIONS = 32
"""Continuations kept for each segment; the least recently used goes first."""


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


Observer = Callable[[Program, list[str], list[Array]], list[Array]]


def execute(program: Program, labels: list[str], arrays: list[Array]) -> list[Array]:
    """Runs a program."""
    return program.run(arrays)


class Planned:
    """A prepared graph with its plans, for one signature of inputs after the other.

    Args:
        prepared: The graph.
        context: The caches of the session.
        outer: What is known of values of enclosing graphs that a body reads.
        capacity: How many input signatures to keep plans for.

    Attributes:
        recent: The whole plan of the inputs seen last, where one program takes them as they are
            and makes all outputs.
    """

    def __init__(
        self,
        prepared: Prepared,
        context: Context,
        outer: Environment | None = None,
        capacity: int = 64,
        captured: Sequence[Value] = (),
    ) -> None:
        self.prepared = prepared
        self.context = context
        self.inputs = [*prepared.graph.inputs, *captured]
        self.capacity = capacity
        self._typed = all(value.dtype in SIZES for value in self.inputs)
        self.plans: OrderedDict[Any, Segment] = OrderedDict()
        self._last: tuple[Any, Segment | None] = (None, None)
        self.recent: Program | None = None
        self._lock = new_in_child(threading.Lock())
        self._base: Environment = dict(outer or {})
        for name, array in prepared.graph.initializers.items():
            self._base[prepared.graph.values[name]] = constant(array, True)

    def signature(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """What the plan of these inputs depends on."""
        return tuple(type_of(value) for value in values)

    def first(
        self, values: Sequence[Any], check: Callable[[Sequence[Any]], None] | None = None
    ) -> Segment:
        """The first segment for inputs of these types, planned when it is new.

        Args:
            values: One entry for each input: an array, a list for a sequence, or ``None``.
            check: Called with the values before a new signature is planned; raises when it is
                not permitted.
        """
        if self._typed:
            key = tuple([v.shape if type(v) is Array else type_of(v) for v in values])
        else:
            key = self.signature(values)
        last, segment = self._last
        if segment is not None and last == key:
            return segment
        with self._lock:
            segment = self.plans.get(key)
            if segment is not None:
                self.plans.move_to_end(key)
                self._remember(key, segment)
                return segment
        if check is not None:
            check(values)
        feeds: list[Slot] = []
        environment = dict(self._base)
        for value, given in zip(self.inputs, values, strict=True):
            environment[value] = feed_slots(given, feeds)
        segment = self._plan(environment, feeds, list(self.prepared.steps))
        with self._lock:
            self.plans[key] = segment
            self._remember(key, segment)
            if len(self.plans) > self.capacity:
                self.plans.popitem(last=False)
        return segment

    def _remember(self, key: Any, segment: Segment) -> None:
        before = self._last[1]
        if before is not None and before.program is not None and before is not segment:
            # Its working memory is warm: the plan that follows takes it from the kept blocks.
            before.program.release()
        self._last = (key, segment)
        self.recent = segment.program if segment.direct else None

    def run(self, values: Sequence[Any], observer: Observer = execute) -> list[Any]:
        """Runs the graph on arrays; returns one entry for each output."""
        return self.finish(self.first(values), flat_arrays(values), observer)

    def finish(
        self, segment: Segment, arrays: list[Array], observer: Observer = execute
    ) -> list[Any]:
        """Runs a segment and all that follow it."""
        while True:
            if segment.program is not None:
                made = observer(segment.program, segment.labels, [arrays[i] for i in segment.picks])
            else:
                made = []
            if segment.template is not None:
                return [filled(entry, made) for entry in segment.template]
            key: tuple[Any, ...]
            returned: Sequence[Any] = ()
            if segment.host is not None:
                returned = self._host(segment, made)
                key = self.signature(returned)
            else:
                key = tuple(made[i].tobytes() for i in segment.needed)
            key += tuple((a.dtype, a.shape) for a in made)
            with self._lock:
                following = segment.continuations.get(key)
                if following is not None:
                    segment.continuations.move_to_end(key)
            if following is None:
                following = self._continue(segment, made, returned)
                with self._lock:
                    segment.continuations[key] = following
                    if len(segment.continuations) > CONTINUATIONS:
                        segment.continuations.popitem(last=False)
            arrays = [*made, *flat_arrays(returned)]
            segment = following

    def _host(self, segment: Segment, made: list[Array]) -> Sequence[Any]:
        host, step = segment.host, segment.host_node
        assert host is not None
        assert step is not None
        where = {slot: i for i, slot in enumerate(segment.results)}
        arguments = [collect(known, where, made) for known in host.arguments]
        try:
            returned = host.function(arguments)
            require_outputs(step.node, len(returned))
            return returned
        except OneModelError as error:
            raise located(error, step) from None
        except MALFORMED as error:
            raise located(malformed(error, step), step) from error

    def _continue(self, segment: Segment, made: list[Array], returned: Sequence[Any]) -> Segment:
        feeds = []
        moved: dict[Slot, Slot] = {}
        for index, (slot, array) in enumerate(zip(segment.results, made, strict=True)):
            fresh = Slot(array.dtype, tuple(array.shape))
            feeds.append(fresh)
            moved[slot] = constant(array.copy()) if index in segment.needed else fresh
        environment = {value: replaced(k, moved) for value, k in segment.environment.items()}
        if segment.host_node is not None:
            outputs = segment.host_node.node.outputs
            for value, given in zip(outputs, returned, strict=False):
                known = feed_slots(given, feeds)
                if value is not None:
                    environment[value] = known
        return self._plan(environment, feeds, segment.rest)

    def _plan(
        self, environment: Environment, feeds: list[Slot], steps: list[Step | Alias]
    ) -> Segment:
        planner = Planner(self.context)
        planner.bindings = environment
        work = list(reversed(steps))
        while work:
            step = work.pop()
            if isinstance(step, Alias):
                for source, target in step.pairs:
                    environment[target] = environment[source]
                continue
            try:
                expansion = plan_step(planner, step, environment)
            except NeedsValue as need:
                rest = [step, *reversed(work)]
                return self._cut(planner, environment, feeds, rest, [need.slot], None, None)
            except Host as host:
                slots = [slot for known in host.arguments for slot in flat(known)]
                rest = list(reversed(work))
                return self._cut(planner, environment, feeds, rest, slots, host, step)
            except OneModelError as error:
                raise located(error, step, environment) from None
            except MALFORMED as error:
                raise located(malformed(error, step), step, environment) from error
            if expansion:
                work.extend(reversed(expansion))
        results: list[Slot] = []
        template = [
            template_of(environment[value], results) for value in self.prepared.graph.outputs
        ]
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
        self,
        planner: Planner,
        environment: Environment,
        feeds: list[Slot],
        rest: list[Step | Alias],
        wanted: list[Slot],
        host: Host | None,
        step: Step | None,
    ) -> Segment:
        live = live_values(rest, self.prepared.graph)
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
