"""A graph with its plans: one for each signature of inputs, segment after segment.

The continuations of a segment are planned for the shapes (and the needed values) that a run brings,
and kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.planning.border import (
    collect,
    feed_slots,
    filled,
    flat_arrays,
    replaced,
    type_of,
)
from onemodel_graph.planning.checks import MALFORMED
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.node_planning import (
    Environment,
    located,
    malformed,
    require_outputs,
)
from onemodel_graph.planning.replanning import Outlines
from onemodel_graph.planning.segment import Segment, plan
from onemodel_graph.planning.slot import SIZES, Slot, constant
from onemodel_graph.planning.steps import Prepared
from onemodel_kernels import Array, Program
from onemodel_kernels.errors import OneModelError
from onemodel_kernels.forking import new_in_child

CONTINUATIONS = 32
"""Continuations kept for each segment; the least recently used goes first."""


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
        self._outlines = Outlines(context, self._base)

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
        segment = self._again(values) or self._anew(values)
        with self._lock:
            self.plans[key] = segment
            self._remember(key, segment)
            if len(self.plans) > self.capacity:
                self.plans.popitem(last=False)
        return segment

    def _again(self, values: Sequence[Any]) -> Segment | None:
        """The plan of other sizes for these ones, where there is one that holds."""
        found = self._outlines.program(values)
        if found is None:
            return None
        program, labels = found
        template = list(range(len(self.prepared.graph.outputs)))
        picks = list(range(len(values)))
        return Segment(program, labels, picks, [], {}, [], template=template, direct=True)

    def _anew(self, values: Sequence[Any]) -> Segment:
        feeds: list[Slot] = []
        environment = dict(self._base)
        for value, given in zip(self.inputs, values, strict=True):
            environment[value] = feed_slots(given, feeds)
        # One plan may be all that is asked for: the second one is noted down.
        sketch = self._outlines.sketch(self.inputs, values, feeds) if self.plans else None
        graph, steps = self.prepared.graph, self.prepared.steps
        segment = plan(self.context, graph, environment, feeds, steps, sketch)
        if sketch is not None:
            self._outlines.keep(sketch, graph.outputs if segment.direct else None)
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
        return plan(self.context, self.prepared.graph, environment, feeds, segment.rest)
