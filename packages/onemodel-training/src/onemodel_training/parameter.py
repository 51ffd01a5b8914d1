"""The tensor that a module trains."""

from __future__ import annotations

from typing import Any

from onemodel_tensors import Tensor

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A tensor that a :class:`~onemodel_training.NnModule` registers when it is assigned to one.

    Args:
        data: a floating-point tensor of any shape. The parameter shares its storage, unless its
            elements are not in row-major order: then it holds a copy that is.
        requires_grad: whether backward passes leave a gradient in ``.grad``.

    Raises:
        OneModelError: when gradients are asked of a dtype that is not floating point.
    """

    __slots__ = ()

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        data._before_read("Parameter()")
        super().__init__(data._array.contiguous(), requires_grad=requires_grad)

    def __reduce__(self) -> Any:
        return Parameter, (self.detach(), self.requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()
