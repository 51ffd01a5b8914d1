"""Functions called with gradients as the backward pass computes them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from onemodel_kernels.errors import OneModelError, ShapeError
from onemodel_tensors import recording
from onemodel_tensors.autograd.nodes import Hook, Leaf, Node, Output

if TYPE_CHECKING:
    from onemodel_kernels import Array
    from onemodel_tensors.tensor import Tensor

__all__ = ["HookHandle", "register_hook", "register_post_accumulate_grad_hook", "retain_grad"]

_identifiers = itertools.count()
_retained: dict[int, Tensor | None] = {}
"""Kept gradients by the identity of their tensor: tensors compare by their elements, so they are no keys."""


class HookHandle:
    """What registering a hook returns: :meth:`remove` takes the hook away; as a context manager, at the block's end."""

    def __init__(self, hooks: dict[int, Any], identifier: int) -> None:
        self._hooks = hooks
        self._identifier = identifier

    def remove(self) -> None:
        """Take the hook away; nothing happens the second time."""
        self._hooks.pop(self._identifier, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _hooks_of(node: Node) -> dict[int, Hook]:
    if isinstance(node, Leaf):
        if node.hooks is None:
            node.hooks = {}
        return node.hooks
    record, index = (node.record, node.index) if isinstance(node, Output) else (node, 0)
    if record.hooks is None:
        record.hooks = {}
    return record.hooks.setdefault(index, {})


def _add(hooks: dict[int, Any], hook: Any) -> HookHandle:
    identifier = next(_identifiers)
    hooks[identifier] = hook
    return HookHandle(hooks, identifier)


def _node_for(tensor: Tensor, what: str) -> Node:
    if recording.active:
        recorder = recording.active_recorder()
        if recorder is not None:
            recorder.before_backward(what)
    if tensor._node is None:
        raise OneModelError(
            f"{what}: expected a tensor that requires a gradient; call requires_grad_() first"
        )
    return tensor._node


def register_hook(tensor: Tensor, hook: Hook) -> HookHandle:
    """Call ``hook(gradient)`` whenever the backward pass has computed the gradient of a tensor.

    Args:
        tensor: any tensor that requires a gradient.
        hook: gets the whole gradient, a tensor of the same shape and dtype; a tensor that it returns replaces it.

    Raises:
        OneModelError: the tensor requires no gradient.
    """
    return _add(_hooks_of(_node_for(tensor, "register_hook")), hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Hook) -> HookHandle:
    """Call ``hook(tensor)`` whenever a backward pass has added to the ``grad`` of a leaf.

    Raises:
        OneModelError: the tensor is no leaf that requires a gradient.
    """
    node = _node_for(tensor, "register_post_accumulate_grad_hook")
    if not isinstance(node, Leaf):
        raise OneModelError(
            "register_post_accumulate_grad_hook: expected a leaf tensor, got the result of an operator; "
            "register_hook serves those"
        )
    if node.after is None:
        node.after = {}
    known = weakref.ref(tensor)

    def call() -> None:
        target = known()
        if target is not None:
            hook(target)

    return _add(node.after, call)


def retain_grad(tensor: Tensor) -> None:
    """Make ``grad`` of a tensor that is no leaf available after the backward pass.

    Raises:
        OneModelError: the tensor requires no gradient.
    """
    node = _node_for(tensor, "retain_grad")
    key = id(tensor)
    if isinstance(node, Leaf) or key in _retained:
        return
    _retained[key] = None
    weakref.finalize(tensor, _retained.pop, key, None).atexit = False

    def keep(gradient: Tensor) -> None:
        if key in _retained:
            _retained[key] = gradient

    register_hook(tensor, keep)


def retained(tensor: Tensor) -> Tensor | None:
    """The gradient kept by :func:`retain_grad`, or ``None``."""
    return _retained.get(id(tensor)) if _retained else None


def run_hooks(hooks: dict[int, Callable[[Any], Any]], gradient: Array) -> Array:
    """The gradient after all hooks, in the order in which they were registered."""
    from onemodel_tensors.autograd.mode import GradMode
    from onemodel_tensors.tensor import Tensor

    for hook in tuple(hooks.values()):
        with GradMode("hook", False):
            answer = hook(Tensor(gradient))
        if answer is None:
            continue
        if (
            not isinstance(answer, Tensor)
            or answer._array.shape != gradient.shape
            or answer.dtype != gradient.dtype
        ):
            came = (
                f"{answer.dtype} of shape {answer._array.shape}"
                if isinstance(answer, Tensor)
                else repr(answer)
            )
            raise ShapeError(
                f"hook: expected None or a tensor of shape {gradient.shape} and dtype {gradient.dtype}, got {came}"
            )
        gradient = answer._array
    return gradient
