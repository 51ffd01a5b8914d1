"""One node of a graph: its calls, what is known of its outputs, and its place in errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onemodel_graph.ir import Node, Value
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Items, Known, Slot, constant
from onemodel_graph.planning.steps import Alias, Expansion, Step
from onemodel_kernels.errors import AttributeValueError, DtypeError, OneModelError, ShapeError

Environment = dict[Value, Known]
HostFunction = Callable[[list[Any]], Sequence[Any]]
WHOLE = frozenset({
    "axes", "axis", "block_shape", "dft_length", "ends", "frame_length", "frame_step", "image_shape",
    "input", "K", "k", "num_mel_bins", "output_shape", "pads", "repeats", "sample_rate", "shape",
    "size", "sizes", "split", "starts", "steps",
})  # fmt: skip
"""Operands that ONNX admits as integers only."""


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


def plan_step(planner: Planner, step: Step, environment: Environment) -> list[Step | Alias] | None:
    """Adds a node's calls and notes its outputs; steps that are to be planned in its place."""
    node = step.node
    planner.label = node.label
    inputs = [None if value is None else environment[value] for value in node.inputs]
    planner.lasting = all(k is None or (isinstance(k, Slot) and k.permanent) for k in inputs)
    planner.sized = step.handle is not None
    if step.handle is not None:
        outputs = step.handle(planner, step, inputs)
        if isinstance(outputs, Expansion):
            return outputs.steps
    else:
        outputs = _apply(planner, step, inputs)
    require_outputs(node, len(outputs))
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
            if name in WHOLE and "int" not in slot.dtype:
                raise DtypeError(f"{node.label}: expected {name!r} to hold integers, got {slot}")
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


def require_outputs(node: Node, count: int) -> None:
    """Raises unless a node asks for at most so many outputs."""
    if any(value is not None for value in node.outputs[count:]):
        raise AttributeValueError(
            f"{node.label}: it has {count} outputs, {len(node.outputs)} are asked for"
        )


def malformed(error: BaseException, step: Step) -> OneModelError:
    """The error of an operator whose facts met a form that they do not foresee."""
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
