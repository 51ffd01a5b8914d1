"""A place in the autograd graph that several gradients cross together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from onemodel_kernels import Array
from onemodel_kernels.errors import ShapeError
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor

__all__ = ["crossing"]

Crossed = Callable[[tuple["Tensor | None", ...]], "Sequence[Tensor | None] | None"]


def crossing(name: str, tensors: Sequence[Tensor], call: Crossed) -> tuple[Tensor, ...]:
    """The same tensors, whose gradients the backward pass hands to a function on their way.

    Args:
        name: what the place is called in errors.
        tensors: at least one that requires a gradient; the results share their storage.
        call: gets one gradient for each tensor, ``None`` where none came, and may return others of the same shapes
            and dtypes. It runs without recording.

    Raises:
        ShapeError: (in the backward pass) what the function returned does not fit.
    """
    from onemodel_tensors.apply import link_outputs
    from onemodel_tensors.tensor import Tensor

    shapes = [tensor._array.shape for tensor in tensors]

    def gradient(_: BackwardRecord, *gradients: Array | None) -> Gradients:
        from onemodel_tensors.autograd.mode import no_grad

        with no_grad():
            answer = call(tuple([None if g is None else Tensor(g) for g in gradients]))
        if answer is None:
            return gradients
        if len(answer) != len(gradients):
            raise ShapeError(
                f"{name}: expected {len(gradients)} gradients from the hook, got {len(answer)}"
            )
        for shape, given in zip(shapes, answer):
            if given is not None and given._array.shape != shape:
                raise ShapeError(
                    f"{name}: expected a gradient of shape {shape} from the hook, got {given._array.shape}"
                )
        return tuple([None if given is None else given._array for given in answer])

    outs = tuple([Tensor(tensor._array) for tensor in tensors])
    link_outputs(name, tuple(tensors), NO_ATTRIBUTES, outs, gradient)
    return outs
