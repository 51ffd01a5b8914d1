"""The plans of a graph that hold for all sizes, by the kinds of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onemodel_graph.ir import Value
from onemodel_graph.planning.checks import MALFORMED
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.memory import Entries
from onemodel_graph.planning.node_planning import Environment, Host, plan_step
from onemodel_graph.planning.outlining import NoOutline, Plan, Sketch
from onemodel_graph.planning.planner import NeedsValue, Planner
from onemodel_graph.planning.slot import Slot
from onemodel_kernels import Array, Program
from onemodel_kernels.errors import OneModelError

Types = Sequence[tuple[str, tuple[int, ...]]]


class Outlines:
    """One plan for each combination of dtypes and numbers of axes.

    Args:
        context: The caches of the session.
        base: What is known of values before the first step.
    """

    def __init__(self, context: Context, base: Environment) -> None:
        self._context = context
        self._base = base
        self._plans: dict[Any, Plan | None] = {}

    def sketch(
        self, inputs: Sequence[Value], values: Sequence[Any], feeds: Sequence[Slot]
    ) -> Sketch | None:
        """Where to note the plan of these values, if none of their kinds was noted before."""
        kinds = _kinds(values)
        if kinds is None or kinds in self._plans:
            return None
        return Sketch(self._context, self._base, inputs, feeds, kinds)

    def keep(self, sketch: Sketch, outputs: Sequence[Value] | None) -> None:
        """Keeps a plan that was noted whole; without outputs, that there is none."""
        self._plans[sketch.kinds] = None if outputs is None else sketch.finish(outputs)

    def program(self, values: Sequence[Any]) -> tuple[Program, list[str]] | None:
        """The program for the sizes of these values, and the label of each of its calls.

        ``None`` where they are to be planned anew: for a plan of their own, or an error that names
        the node.
        """
        plan = self._plans.get(_kinds(values)) if self._plans else None
        if plan is None:
            return None
        types = [(value.dtype, value.shape) for value in values]
        try:
            return plan.outline.plan(types, _steps(plan, self._context) if plan.groups else None)
        except (OneModelError, NeedsValue, Host, *MALFORMED):
            return None


def _kinds(values: Sequence[Any]) -> Any:
    if not all(type(value) is Array for value in values):
        return None
    return tuple([(value.dtype, value.ndim) for value in values])


def _steps(plan: Plan, context: Context) -> Callable[[int, Types], Any]:
    """Plans a group of steps for inputs of given types."""
    environment = dict(plan.base)

    def answer(name: int, types: Types) -> Any:
        group = plan.groups[name]
        planner = Planner(context)
        planner.bindings = environment
        feeds = [Slot(dtype, shape) for dtype, shape in types]
        environment.update(zip(group.sources, feeds, strict=True))
        for step in group.steps:
            if plan_step(planner, step, environment):
                raise NoOutline(f"{step.node.label}: it is planned by other steps")
        entries = Entries(feeds)
        for call in planner.calls:
            entries.call(call)
        made = []
        for value in group.made:
            known = environment[value]
            if not isinstance(known, Slot):
                raise NoOutline(f"{value.name}: a sequence is planned for the sizes at hand")
            made.append(entries.place(known))
        return entries.listed, made

    return answer
