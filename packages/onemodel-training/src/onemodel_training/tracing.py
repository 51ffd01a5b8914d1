"""NnModule.trace: names for weights, and refusals that know module paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from onemodel_tensors import Tensor, recording
from onemodel_trace import TracedModel, TraceErrorKind, TraceException, Tracer
from onemodel_training.trace_examples import TraceExamples
from onemodel_training.trace_state import TraceState

if TYPE_CHECKING:
    from onemodel_training.module import NnModule

__all__: list[str] = []

_paths: ContextVar[dict[int, str] | None] = ContextVar("onemodel_module_paths", default=None)


def _place(module: NnModule) -> str:
    """The module as a message names it: its path where a trace knows it, and its class."""
    path = (_paths.get() or {}).get(id(module))
    kind = type(module).__name__
    if path is None:
        return kind
    return f"{path or 'the model'} ({kind})"


def refuse_training_mode(module: NnModule) -> None:
    """Raises when a trace records: what follows would depend on training mode."""
    if recording.active_recorder() is not None:
        raise TraceException(
            TraceErrorKind.INVALID_USAGE,
            f"{_place(module)}: expected evaluation mode while tracing, got training mode, in "
            "which it behaves differently; call model.eval() before trace",
        )


def refuse_buffer_write(module: NnModule, name: str) -> None:
    """Raises when a trace records: the graph would hold the buffer's value of this run."""
    if recording.active_recorder() is not None:
        path = (_paths.get() or {}).get(id(module), "")
        raise TraceException(
            TraceErrorKind.IN_PLACE_MUTATION,
            f"buffer {f'{path}.{name}' if path else name} ({type(module).__name__}): expected no "
            "write while tracing, got an assignment in forward; pass the state as an input and "
            "return it as an output",
        )


@contextmanager
def _known_paths(paths: dict[int, str]) -> Iterator[None]:
    token = _paths.set(paths)
    try:
        yield
    finally:
        _paths.reset(token)


def _axes_of(
    module: NnModule, names: list[str], axis_names: Mapping[str, Any] | Sequence[Any] | None
) -> list[Any]:
    if axis_names is None:
        return [None] * len(names)
    if isinstance(axis_names, Mapping):
        unknown = sorted(set(axis_names) - set(names))
        if unknown:
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"trace ({type(module).__name__}): axis_names for {', '.join(unknown)}: no such "
                f"input; the inputs are {', '.join(names)}",
            )
        return [axis_names.get(name) for name in names]
    if len(axis_names) != len(names):
        raise TraceException(
            TraceErrorKind.INVALID_USAGE,
            f"trace ({type(module).__name__}): expected axis_names for {len(names)} inputs, got "
            f"{len(axis_names)}; a mapping by input name may leave some out",
        )
    return list(axis_names)


def flatten_outputs(
    module: NnModule, result: Any, names: Sequence[str] | None
) -> dict[str, Tensor]:
    """Names the tensors of a forward's result: a tensor, or tuples, lists and dicts of them."""
    found: list[tuple[str, Tensor]] = []

    def visit(value: Any, name: str) -> None:
        if isinstance(value, Tensor):
            found.append((name, value))
        elif isinstance(value, Mapping):
            for key, entry in value.items():
                visit(entry, f"{name}.{key}" if name else str(key))
        elif isinstance(value, (tuple, list)):
            for position, entry in enumerate(value):
                visit(entry, f"{name or 'output'}_{position}")
        elif value is not None:
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"trace ({type(module).__name__}): expected outputs that are tensors, got "
                f"{type(value).__name__}",
            )

    visit(result, "")
    if names is not None and len(names) != len(found):
        raise TraceException(
            TraceErrorKind.INVALID_USAGE,
            f"trace ({type(module).__name__}): forward returned {len(found)} tensor(s), got "
            f"{len(names)} output_names",
        )
    labels = list(names) if names is not None else [name or "output" for name, _ in found]
    if len(set(labels)) != len(labels):
        raise TraceException(
            TraceErrorKind.INVALID_USAGE,
            f"trace ({type(module).__name__}): output_names repeat a name: {', '.join(labels)}",
        )
    return {label: tensor for label, (_, tensor) in zip(labels, found, strict=True)}


def trace_module(
    module: NnModule,
    examples: tuple[Any, ...],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    axis_names: Mapping[str, Any] | Sequence[Any] | None,
    *,
    verify: bool,
) -> TracedModel:
    """Records one run of ``module``; see :meth:`NnModule.trace`."""
    given = TraceExamples(module, examples)
    given.rename(input_names)
    names = given.names
    axes = _axes_of(module, names, axis_names)
    state = TraceState(module)

    def run(*tensors: Tensor) -> Any:
        return module(*given.with_tensors(tensors))

    try:
        with _known_paths(state.paths), Tracer.begin() as tracer:
            inputs = [
                tracer.input(name, tensor, axis_names=named)
                for name, tensor, named in zip(names, given.tensors, axes, strict=True)
            ]
            for path, tensor in state.members():
                tracer.parameter(path, tensor)
            result = run(*inputs)
            changed = state.changed()
            if changed:
                raise TraceException(
                    TraceErrorKind.IN_PLACE_MUTATION,
                    f"trace ({type(module).__name__}): {', '.join(changed)}: expected no "
                    "write while tracing, got one in forward; pass the state as an input "
                    "and return it as an output",
                )
            traced = tracer.finish(flatten_outputs(module, result, output_names), run)
        if verify:
            traced.verify(peer=False)
    finally:
        state.restore()
    return traced
