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

from onemodel_graph.ir import Graph, Value
from onemodel_graph.planning.checks import MALFORMED
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.memory import build
from onemodel_graph.planning.planner import NeedsValue, Planner
from onemodel_graph.planning.slot import SIZES, Items, Known, Slot, constant, flat
from onemodel_graph.planning.steps import Alias, Expansion, Prepared, Step
from onemodel_kernels import Array, Program
from onemodel_kernels.errors import AttributeValueError, OneModelError, ShapeError
from onemodel_kernels.forking import new_in_child

CONTINUATIONS = 32
"""Continuations kept for each segment; the least recently used goes first."""

Environment = dict[Value, Known]
HostFunction = Callable[[list[Any]], Sequence[Any]]


class Host(Exception):
    """The rest of the node runs outside a program, on arrays.

    Args:
        function: Takes one entry for each of ``arguments`` (an array, a list of them for a
            sequence, ``None``) and returns one for each output of the node.
        arguments: What it reads.
    """

    def __init__(self, function: HostFunction, arguments: Sequence[Known]) -> None:
        super().__init__()
        self.function = function
        self.arguments = list(arguments)


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
        return tuple(_signature(value) for value in values)

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
            key = tuple([v.shape if type(v) is Array else _signature(v) for v in values])
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
            environment[value] = _feed(given, feeds)
        segment = self._plan(environment, feeds, list(self.prepared.steps))
        with self._lock:
            self.plans[key] = segment
            self._remember(key, segment)
            if len(self.plans) > self.capacity:
                self.plans.popitem(last=False)
        return segment

    def _remember(self, key: Any, segment: Segment) -> None:
        self._last = (key, segment)
        self.recent = segment.program if segment.direct else None

    def run(self, values: Sequence[Any], observer: Observer = execute) -> list[Any]:
        """Runs the graph on arrays; returns one entry for each output."""
        return self.finish(self.first(values), _arrays(values), observer)

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
                return [_fill(entry, made) for entry in segment.template]
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
            arrays = [*made, *_arrays(returned)]
            segment = following

    def _host(self, segment: Segment, made: list[Array]) -> Sequence[Any]:
        host, step = segment.host, segment.host_node
        assert host is not None
        assert step is not None
        where = {slot: i for i, slot in enumerate(segment.results)}
        arguments = [_gather(known, where, made) for known in host.arguments]
        try:
            return host.function(arguments)
        except OneModelError as error:
            raise located(error, step) from None
        except MALFORMED as error:
            raise located(_malformed(error, step), step) from error

    def _continue(self, segment: Segment, made: list[Array], returned: Sequence[Any]) -> Segment:
        feeds = []
        moved: dict[Slot, Slot] = {}
        for index, (slot, array) in enumerate(zip(segment.results, made, strict=True)):
            fresh = Slot(array.dtype, tuple(array.shape))
            feeds.append(fresh)
            moved[slot] = constant(array.copy()) if index in segment.needed else fresh
        environment = {value: _moved(k, moved) for value, k in segment.environment.items()}
        if segment.host_node is not None:
            outputs = segment.host_node.node.outputs
            for value, given in zip(outputs, returned, strict=False):
                known = _feed(given, feeds)
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
                expansion = _plan_step(planner, step, environment)
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
                raise located(_malformed(error, step), step, environment) from error
            if expansion:
                work.extend(reversed(expansion))
        results: list[Slot] = []
        template = [_template(environment[value], results) for value in self.prepared.graph.outputs]
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
        live = _live(rest, self.prepared.graph)
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


def _plan_step(planner: Planner, step: Step, environment: Environment) -> list[Step | Alias] | None:
    """Adds a node's calls and notes its outputs; steps that are to be planned in its place."""
    node = step.node
    planner.label = node.label
    inputs = [None if value is None else environment[value] for value in node.inputs]
    planner.lasting = all(k is None or (isinstance(k, Slot) and k.permanent) for k in inputs)
    if step.handle is not None:
        outputs = step.handle(planner, step, inputs)
        if isinstance(outputs, Expansion):
            return outputs.steps
    else:
        outputs = _apply(planner, step, inputs)
    if any(value is not None for value in node.outputs[len(outputs) :]):
        raise AttributeValueError(
            f"{node.label}: it has {len(outputs)} outputs, {len(node.outputs)} are asked for"
        )
    for value, known in zip(node.outputs, outputs, strict=False):
        if value is not None:
            environment[value] = known
    return None


def _apply(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    spec = step.spec
    assert spec is not None
    node = step.node
    attributes = node.attributes
    slots: list[Slot | None] = []
    for known in inputs:
        if isinstance(known, Items):
            raise OneModelError(f"{node.label}: expected tensors, got a sequence")
        slots.append(known)
    if step.operands:
        attributes = dict(attributes)
        for position, name in step.operands:
            slot = slots[position]
            if slot is None:
                continue
            if slot.array is None and spec.dynamic is not None:
                call = spec.call([], [], attributes)
                result = spec.dynamic(planner, call, slots)
                return result if isinstance(result, tuple) else (result,)
            if len(slot.shape) > 1:
                raise ShapeError(
                    f"{node.label}: expected {name!r} to be one number or a list, got {slot}"
                )
            attributes[name] = planner.value(slot, f"{node.label}: the value of {name!r}")
            if spec.name == "Range" and not spec.domain:
                attributes["dtype"] = slot.dtype
    elif spec.name == "Split" and not spec.domain:
        attributes = dict(attributes)
    unsplit = "split" not in attributes and "num_outputs" not in attributes
    if spec.name == "Split" and not spec.domain and unsplit:
        attributes["num_outputs"] = len(node.outputs)
    tensors = [slots[p] for p in step.tensors]
    if spec.data_dependent:
        call = spec.call([], [], attributes)
        _, kernel = planner.context.kernel(spec.name, spec.kernel_attributes(call))

        def run(arrays: list[Any]) -> Sequence[Any]:
            result = kernel(*arrays)
            return result if isinstance(result, tuple) else (result,)

        if all(slot is None or slot.array is not None for slot in tensors):
            made = run([None if slot is None else slot.array for slot in tensors])
            return [constant(array) for array in made]
        raise Host(run, tensors)
    asked = max((i + 1 for i, value in enumerate(node.outputs) if value is not None), default=0)
    return planner.apply(spec, tensors, attributes, asked)


def _malformed(error: BaseException, step: Step) -> OneModelError:
    return AttributeValueError(
        f"{step.node.label}: its inputs or attributes have a form that it does not take "
        f"({type(error).__name__}: {error})"
    )


def located(
    error: OneModelError, step: Step, environment: Environment | None = None
) -> OneModelError:
    """The error with the node and, where known, its inputs."""
    node = step.node
    text = str(error)
    if node.name and repr(node.name) not in text:
        operator, mark, rest = text.partition(": ")
        text = f"{operator} (node {node.name!r}){mark}{rest}" if mark else f"{node.label}: {text}"
    elif not node.name and node.operator not in text:
        text = f"{node.label}: {text}"
    if environment is not None:
        shown = ", ".join(
            f"{value.name}: {environment.get(value)}" for value in node.inputs if value is not None
        )
        text = f"{text}; inputs: {shown}" if "; inputs: " not in text else text
    return type(error)(text)


def _live(rest: Sequence[Step | Alias], graph: Graph) -> set[Value]:
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


def _signature(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return ("sequence", *(_signature(entry) for entry in value))
    return (value.dtype, value.shape)


def _feed(value: Any, feeds: list[Slot]) -> Known:
    if value is None:
        return None
    if isinstance(value, list):
        return Items([_feed(entry, feeds) for entry in value])
    slot = Slot(value.dtype, tuple(value.shape))
    feeds.append(slot)
    return slot


def _arrays(values: Sequence[Any]) -> list[Array]:
    found: list[Array] = []
    for value in values:
        if isinstance(value, list):
            found.extend(_arrays(value))
        elif value is not None:
            found.append(value)
    return found


def _moved(known: Known, moved: dict[Slot, Slot]) -> Known:
    if isinstance(known, Items):
        return Items([_moved(entry, moved) for entry in known.slots], known.dtype)
    return known if known is None else moved.get(known, known)


def _gather(known: Known, where: dict[Slot, int], made: list[Array]) -> Any:
    if known is None:
        return None
    if isinstance(known, Items):
        return [_gather(entry, where, made) for entry in known.slots]
    return known.array if known.array is not None else made[where[known]]


def _template(known: Known, results: list[Slot]) -> Any:
    if known is None:
        return None
    if isinstance(known, Items):
        return [_template(entry, results) for entry in known.slots]
    if known.array is not None:
        return known.array
    results.append(known)
    return len(results) - 1


def _fill(entry: Any, made: list[Array]) -> Any:
    if isinstance(entry, int):
        return made[entry]
    if isinstance(entry, list):
        return [_fill(part, made) for part in entry]
    return entry.copy() if isinstance(entry, Array) else entry
