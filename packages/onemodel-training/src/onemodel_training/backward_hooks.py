"""Hooks of modules that see the gradients of their inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onemodel_tensors import Tensor
from onemodel_tensors.autograd.crossing import crossing

if TYPE_CHECKING:
    from onemodel_training.module import NnModule

__all__ = ["BackwardHooks"]

Gradients = tuple[Tensor | None, ...]


class BackwardHooks:
    """One call of a module between two places that its gradients cross.

    Args:
        module: whose call it is.
    """

    def __init__(self, module: NnModule) -> None:
        self._module = module
        self._gradients_of_outputs: Gradients = ()
        self._inputs = 0
        self._positions: list[int] = []

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments, those that require a gradient watched."""
        self._inputs = len(args)
        self._positions = [
            at for at, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad
        ]
        if not self._positions or not self._module._backward_hooks:
            return args
        watched = crossing(
            f"full backward hook of {type(self._module).__name__}",
            [args[at] for at in self._positions],
            self._at_inputs,
        )
        replaced = list(args)
        for at, tensor in zip(self._positions, watched, strict=True):
            replaced[at] = tensor
        return tuple(replaced)

    def leave(self, result: Any) -> Any:
        """The result, a tensor or a tuple or list with tensors, those that require a gradient watched."""
        listed = list(result) if isinstance(result, (tuple, list)) else [result]
        positions = [
            at
            for at, value in enumerate(listed)
            if isinstance(value, Tensor) and value.requires_grad
        ]
        if not positions:
            return result

        def at_outputs(gradients: Gradients) -> Gradients:
            whole: list[Tensor | None] = [None] * len(listed)
            for at, gradient in zip(positions, gradients, strict=True):
                whole[at] = gradient
            given = tuple(whole)
            for hook in tuple(self._module._backward_pre_hooks.values()):
                answer = hook(self._module, given)
                if answer is not None:
                    given = answer if isinstance(answer, tuple) else (answer,)
            self._gradients_of_outputs = given
            if not self._positions:
                self._call_hooks((None,) * self._inputs)
            return tuple(given[at] for at in positions)

        watched = crossing(
            f"full backward pre-hook of {type(self._module).__name__}",
            [listed[at] for at in positions],
            at_outputs,
        )
        for at, tensor in zip(positions, watched, strict=True):
            listed[at] = tensor
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*listed)
        return type(result)(listed) if isinstance(result, (tuple, list)) else listed[0]

    def _at_inputs(self, gradients: Gradients) -> Gradients:
        whole: list[Tensor | None] = [None] * self._inputs
        for at, gradient in zip(self._positions, gradients, strict=True):
            whole[at] = gradient
        answered = self._call_hooks(tuple(whole))
        return tuple(answered[at] for at in self._positions)

    def _call_hooks(self, gradients: Gradients) -> Gradients:
        for hook in tuple(self._module._backward_hooks.values()):
            answer = hook(self._module, gradients, self._gradients_of_outputs)
            if answer is not None:
                gradients = answer if isinstance(answer, tuple) else (answer,)
        return gradients
