"""Plans of new sizes from a plan of others: what does not depend on sizes is not planned again.

A node whose kernel was found without reading an extent is computed by that kernel for all sizes of
its inputs' axes. Only the others, and where values live, are planned for the sizes at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.memory import Entries
from onemodel_graph.planning.node_planning import Environment
from onemodel_graph.planning.numbers import read
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Call, Known, Slot
from onemodel_graph.planning.steps import Step
from onemodel_kernels import Outline
from onemodel_kernels.errors import OneModelError
from onemodel_kernels.ops.spec import normalise_axes, normalise_axis

Extent = tuple[int, int]
REST: Extent = (-2, 0)


class NoOutline(OneModelError):
    """A plan that holds for the sizes at hand only."""


@dataclass(eq=False, slots=True)
class Group:
    """Steps one after the other that are planned for each size.

    Attributes:
        sources: The values that they read and do not make, known at run time.
        made: The values that they make, known at run time.
    """

    steps: list[Step] = field(default_factory=list)
    sources: list[Value] = field(default_factory=list)
    made: list[Value] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Plan:
    """A plan for all sizes of the axes that it was made of.

    Attributes:
        outline: Its calls.
        base: What is known of values before the first step.
        groups: What is planned for each size.
    """

    outline: Outline
    base: Environment
    groups: list[Group]


class Sketch:
    """Notes of a plan from which it is repeated for other sizes.

    Args:
        context: The caches of the session.
        base: What is known of values before the first step.
        inputs: The values that a run gives.
        feeds: What the plan knows them as.
        kinds: Their dtypes and numbers of axes.
    """

    def __init__(
        self,
        context: Context,
        base: Environment,
        inputs: Sequence[Value],
        feeds: Sequence[Slot],
        kinds: Any,
    ) -> None:
        self.kinds = kinds
        self._context = context
        self._base = dict(base)
        self._entries = Entries(feeds)
        self._index: dict[Value, int] = {value: i for i, value in enumerate(inputs)}
        self._inputs = len(inputs)
        self._groups: list[Group] = []
        self._group: Group | None = None
        self._whole = True

    def note(
        self,
        planner: Planner,
        step: Step,
        calls: Sequence[Call],
        environment: Environment,
        expanded: bool,
    ) -> None:
        """Notes a step that has been planned, by itself or in several others."""
        if not self._whole:
            return
        try:
            if step.bodies or expanded:
                raise NoOutline(f"{step.node.label}: its body is planned for the sizes at hand")
            self._note(planner, step, calls, environment)
        except NoOutline:
            self._whole = False

    def _note(
        self, planner: Planner, step: Step, calls: Sequence[Call], environment: Environment
    ) -> None:
        if not planner.sized:
            self._close()
            self._repeated(planner, step, calls, environment)
        elif (written := self._written(step, environment)) is not None:
            source, target, kind, *details = written
            self._close()
            self._index[target] = self._entries.add((kind, self._index[source], *details))
        else:
            self._sized(step, environment)

    def _repeated(
        self, planner: Planner, step: Step, calls: Sequence[Call], environment: Environment
    ) -> None:
        """A step whose calls are the same for all sizes."""
        known = self._entries.index
        known.clear()
        for value in step.node.inputs:
            if value is not None and (index := self._index.get(value)) is not None:
                known[_slot(environment[value])] = index
        for call in calls:
            if any(s is not None and s.array is None and s not in known for s in call.inputs):
                raise NoOutline(f"{step.node.label}: it reads what another node keeps")
            self._entries.call(call)
        for value in step.node.outputs:
            if value is None:
                continue
            slot = _slot(environment[value])
            if slot.array is None:
                if slot not in known:
                    raise NoOutline(f"{step.node.label}: it makes a view")
                self._index[value] = known[slot]
            elif planner.fixed(slot):
                self._base[value] = slot
            else:
                raise NoOutline(f"{step.node.label}: its result depends on the sizes at hand")

    def _written(self, step: Step, environment: Environment) -> tuple[Any, ...] | None:
        """The input, the output and the entry of a step whose shape can be written down."""
        node, spec = step.node, step.spec
        if spec is None or spec.domain or len(node.outputs) != 1:
            return None
        source, target = node.inputs[0], node.outputs[0]
        shown = None if source is None else _slot(environment[source])
        if shown is None or target is None or shown.array is not None:
            return None
        attributes = {**spec.defaults, **node.attributes}
        for position, name in step.operands:
            value = node.inputs[position]
            operand = None if value is None else _slot(environment[value])
            if operand is None:
                continue
            if operand.array is None or value not in self._base:
                return None
            attributes[name] = read(operand.array)
        rank = len(shown.shape)
        if spec.name == "Transpose":
            perm = attributes["perm"]
            perm = tuple(reversed(range(rank))) if perm is None else tuple(perm)
            _, kernel = self._context.kernel("Transpose", {"perm": perm})
            return source, target, "transpose", perm, kernel, node.label
        if spec.name == "Gather":
            value = node.inputs[1]
            indices = self._base.get(value) if value is not None else None
            if not isinstance(indices, Slot) or indices.array is None or indices.array.size != 1:
                return None
            axis = normalise_axis(attributes["axis"], rank)
            _, kernel = self._context.kernel("Gather", {"axis": axis})
            at = indices.array.reshape(()).item()
            return source, target, "select", axis, at, indices.array, kernel, node.label
        extents = _extents(spec.name, rank, attributes)
        return None if extents is None else (source, target, "reshape", extents)

    def _sized(self, step: Step, environment: Environment) -> None:
        group = self._group
        if group is None:
            group = self._group = Group()
        for value in step.node.inputs:
            if value is None or value in group.made or value in group.sources:
                continue
            known = environment[value]
            if known is not None and _slot(known).array is None:
                group.sources.append(value)
        group.steps.append(step)
        for value in step.node.outputs:
            if value is not None and _slot(environment[value]).array is None:
                group.made.append(value)

    def _close(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            sources = [self._index[value] for value in group.sources]
            entry = ("steps", len(self._groups), sources, len(group.made))
            first = self._entries.add(entry, len(group.made))
            self._groups.append(group)
            self._index.update((value, first + i) for i, value in enumerate(group.made))

    def finish(self, outputs: Sequence[Value]) -> Plan | None:
        """The plan for all sizes; ``None`` where there is none."""
        self._close()
        if not self._whole or not all(value in self._index for value in outputs):
            return None
        results = [self._index[value] for value in outputs]
        outline = Outline(self._inputs, self._entries.listed, results)
        return Plan(outline, self._base, self._groups)


def _slot(known: Known) -> Slot:
    if not isinstance(known, Slot):
        raise NoOutline("a sequence is planned for the sizes at hand")
    return known


def _extents(operator: str, rank: int, attributes: dict[str, Any]) -> list[Extent] | None:
    """The extents of a result in those of its input: (-1, n) is n, (i, j) the product of axes."""
    if operator == "Reshape" and not attributes["allowzero"]:
        target = attributes["shape"]
        target = (target,) if isinstance(target, int) else target
        return [
            REST if n == -1 else (axis, axis + 1) if n == 0 else (-1, n)
            for axis, n in enumerate(target)
        ]
    if operator == "Flatten":
        axis = attributes["axis"]
        axis += rank if axis < 0 else 0
        return [(0, axis), (axis, rank)]
    if operator not in ("Squeeze", "Unsqueeze") or attributes.get("axes") is None:
        return None
    axes = attributes["axes"]
    axes = (axes,) if isinstance(axes, int) else axes
    if operator == "Squeeze":
        gone = normalise_axes(axes, rank)
        return [(axis, axis + 1) for axis in range(rank) if axis not in gone]
    new = {normalise_axis(axis, rank + len(axes)) for axis in axes}
    rest = iter(range(rank))
    return [
        (-1, 1) if axis in new else ((i := next(rest)), i + 1) for axis in range(rank + len(axes))
    ]
