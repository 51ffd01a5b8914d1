"""The choke point: every operator's result passes here to the autograd graph and to a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_tensors import recording
from onemodel_tensors.autograd.mode import bound_entries, current_entries, is_grad_enabled
from onemodel_tensors.autograd.nodes import Node, Output
from onemodel_tensors.record import NO_ATTRIBUTES, Attributes, BackwardRecord, Gradient
from onemodel_tensors.recording import Recorder, SymbolicSize
from onemodel_tensors.tensor import Tensor, ViewOf

__all__ = [
    "apply",
    "array_of",
    "kernel",
    "link_outputs",
    "linked",
    "recorded",
    "recorded_outputs",
    "recorded_view",
    "recorder_of",
]

_kernels: dict[Any, Kernel] = {}
_KERNEL_LIMIT = 4096


def kernel(name: str, **attributes: Any) -> Kernel:
    """The prepared kernel of that name and those attributes; prepared once for each combination."""
    key = (name, *attributes.items()) if attributes else name
    found = _kernels.get(key)
    if found is None:
        if len(_kernels) >= _KERNEL_LIMIT:
            _kernels.clear()
        found = _kernels[key] = Kernel(name, **attributes)
    return found


def array_of(name: str, *arrays: Array | None, **attributes: Any) -> Array:
    """What a kernel with one output makes of arrays."""
    result: Array = kernel(name, **attributes)(*arrays)
    return result


def recorder_of(inputs: Iterable[Tensor | None], sizes: Iterable[Any] = ()) -> Recorder | None:
    """The recorder that one of the tensors, or one of the symbolic sizes, belongs to, if it still records."""
    for tensor in inputs:
        if tensor is not None and tensor._trace is not None:
            recorder: Recorder | None = tensor._trace.recorder
            if recorder is not None:
                return recorder
    for size in sizes:
        if isinstance(size, SymbolicSize) and size.recorder is not None:
            return size.recorder
    return None


def _sizes(attributes: Attributes) -> Iterable[Any]:
    for value in attributes.values():
        if type(value) is tuple:
            yield from value
        else:
            yield value


def recorded(
    operator: str,
    inputs: tuple[Tensor | None, ...],
    attributes: Attributes,
    array: Array,
    gradient: Gradient | None,
    saved: tuple[Any, ...] = (),
) -> Tensor:
    """The tensor over ``array``, the only output of an operator, known to autograd and to a recorder.

    Args:
        operator: see :class:`BackwardRecord`.
        inputs: the operands in the operator's order.
        attributes: may hold symbolic sizes; ``array`` was computed with their examples.
        array: the result.
        gradient: ``None`` for an operator without one (integers, comparisons).
        saved: what ``gradient`` needs.
    """
    out = Tensor(array)
    if recording.active:
        recorder = recorder_of(inputs, _sizes(attributes))
        if recorder is not None:
            record = BackwardRecord(operator, inputs, attributes, gradient, (), saved)
            recorder.record(record, (out,))
            record.inputs = ()
            return out
    if gradient is None:
        return out
    edges = tuple([None if t is None else t._node for t in inputs])
    for edge in edges:
        if edge is not None:
            if (current_entries() is None and not bound_entries) or is_grad_enabled():
                out._node = BackwardRecord(
                    operator,
                    (),
                    attributes,
                    gradient,
                    edges,
                    saved,
                    tuple([a.version for a in saved if type(a) is Array]),
                )
            break
    return out


def linked(
    operator: str,
    array: Array,
    gradient: Gradient,
    edges: tuple[Node | None, ...],
    saved: tuple[Any, ...],
    versions: tuple[int, ...],
) -> Tensor:
    """As :func:`recorded` for an operator without attributes while nobody records: the short way of arithmetic."""
    out = Tensor(array)
    if (current_entries() is None and not bound_entries) or is_grad_enabled():
        out._node = BackwardRecord(operator, (), NO_ATTRIBUTES, gradient, edges, saved, versions)
    return out


def recorded_outputs(
    operator: str,
    inputs: tuple[Tensor | None, ...],
    attributes: Attributes,
    arrays: Sequence[Array],
    gradient: Gradient | None,
    saved: tuple[Any, ...] = (),
    differentiable: int | None = None,
) -> tuple[Tensor, ...]:
    """As :func:`recorded` for an operator with several outputs; the first ``differentiable`` carry gradients."""
    outs = tuple([Tensor(array) for array in arrays])
    if recording.active:
        recorder = recorder_of(inputs, _sizes(attributes))
        if recorder is not None:
            record = BackwardRecord(
                operator, inputs, attributes, gradient, (), saved, outputs=len(outs)
            )
            recorder.record(record, outs)
            record.inputs = ()
            return outs
    if gradient is not None:
        link_outputs(operator, inputs, attributes, outs, gradient, saved, differentiable)
    return outs


def link_outputs(
    operator: str,
    inputs: tuple[Tensor | None, ...],
    attributes: Attributes,
    outs: tuple[Tensor, ...],
    gradient: Gradient,
    saved: tuple[Any, ...] = (),
    differentiable: int | None = None,
) -> None:
    """Make results known to autograd alone: what a trace would see is recorded otherwise."""
    edges = tuple([None if t is None else t._node for t in inputs])
    if any(e is not None for e in edges) and is_grad_enabled():
        record = BackwardRecord(
            operator,
            (),
            attributes,
            gradient,
            edges,
            saved,
            tuple([a.version for a in saved if type(a) is Array]),
            len(outs),
        )
        for index, out in enumerate(outs[:differentiable]):
            out._node = Output(record, index)


def recorded_view(
    operator: str,
    source: Tensor,
    attributes: Attributes,
    array: Array,
    gradient: Gradient,
    replay: Callable[[Array], Array],
    saved: tuple[Any, ...] = (),
) -> Tensor:
    """As :func:`recorded` for a result that shares ``source``'s storage; ``replay`` is the view as a function."""
    if recording.active:
        out = recorded(operator, (source,), attributes, array, gradient, saved)
        if out._trace is not None:
            return out
    else:
        out = Tensor(array)
    if (current_entries() is None and not bound_entries) or is_grad_enabled():
        if source._node is not None and out._node is None:
            out._node = BackwardRecord(operator, (), attributes, gradient, (source._node,), saved)
        out._view = ViewOf.of(source, out, replay)
    return out


def apply(
    operator: str,
    inputs: tuple[Tensor | None, ...],
    attributes: Attributes = NO_ATTRIBUTES,
    gradient: Gradient | None = None,
    saved: tuple[Any, ...] = (),
) -> Tensor:
    """Run the kernel that has the operator's name and attributes, and record it."""
    array = kernel(operator, **attributes)(*[None if t is None else t._array for t in inputs])
    return recorded(operator, inputs, attributes, array, gradient, saved)
