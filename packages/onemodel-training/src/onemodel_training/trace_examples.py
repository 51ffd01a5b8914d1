"""What a trace calls forward with: tensors become inputs, plain values stay as they are."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from onemodel_tensors import Tensor
from onemodel_trace import TraceErrorKind, TraceException

if TYPE_CHECKING:
    from onemodel_training.module import NnModule

__all__ = ["TraceExamples"]

_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
_PLAIN = (bool, int, float, complex, str, bytes, range, slice, type, enum.Enum)


class TraceExamples:
    """The arguments of one forward call, and the tensors in them in order.

    Args:
        module: what is called.
        arguments: tensors, plain values, and tuples, lists and mappings of them.

    Attributes:
        names: one name for each tensor: its parameter's, and a place in it, as ``states_0``.
        tensors: the tensors.

    Raises:
        TraceException: INVALID_USAGE for an argument that is neither tensor nor plain value: what
            it holds would be frozen into the graph unseen.
    """

    def __init__(self, module: NnModule, arguments: tuple[Any, ...]) -> None:
        self._module = module
        self._arguments = arguments
        found = [
            entry
            for argument, name in zip(
                arguments, _argument_names(module, len(arguments)), strict=True
            )
            for entry in self._visit(argument, name)
        ]
        self.names = [name for name, _ in found]
        self.tensors = [tensor for _, tensor in found]

    def _visit(self, value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, Mapping):
            for key, entry in value.items():
                yield from self._visit(entry, f"{name}.{key}")
        elif isinstance(value, (tuple, list)):
            for position, entry in enumerate(value):
                yield from self._visit(entry, f"{name}_{position}")
        elif value is not None and not isinstance(value, _PLAIN):
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"trace ({type(self._module).__name__}): {name}: expected a tensor, a plain value, or "
                f"tuples, lists and mappings of them, got {type(value).__name__}; what it holds would "
                "be frozen into the graph: make it a tensor, or an attribute of the module",
            )

    def rename(self, names: Sequence[str] | None) -> None:
        """Takes the caller's names, one for each tensor.

        Raises:
            TraceException: INVALID_USAGE when there are more or fewer.
        """
        if names is None:
            return
        if len(names) != len(self.tensors):
            raise TraceException(
                TraceErrorKind.INVALID_USAGE,
                f"trace ({type(self._module).__name__}): expected {len(self.tensors)} input_names, one "
                f"for each example tensor, got {len(names)}",
            )
        self.names = list(names)

    def with_tensors(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The arguments with other tensors in the places of the examples."""
        given = iter(tensors)
        return [_rebuilt(argument, given) for argument in self._arguments]


def _rebuilt(value: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, dict):
        return type(value)((key, _rebuilt(entry, tensors)) for key, entry in value.items())
    if isinstance(value, Mapping):
        return {key: _rebuilt(entry, tensors) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        entries = [_rebuilt(entry, tensors) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return value


def _argument_names(module: NnModule, count: int) -> list[str]:
    """The parameter of ``forward`` that each of so many positional arguments is for."""
    forward = module.forward
    function = getattr(forward, "__func__", None)
    if isinstance(function, FunctionType) and not function.__dict__:
        # A signature takes longer than a small trace; a function without attributes has its own names.
        code = function.__code__
        names = list(code.co_varnames[1 : code.co_argcount])
    else:
        names = [
            parameter.name
            for parameter in inspect.signature(forward).parameters.values()
            if parameter.kind in _POSITIONAL
        ]
    names = names[:count]
    return names + [f"input_{position}" for position in range(len(names), count)]
