"""All parameters of a model as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels.errors import ShapeError
from onemodel_tensors import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors in order; gradients pass through it."""
    return om.cat([parameter.reshape(-1) for parameter in parameters], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes consecutive parts of a vector into tensors.

    Raises:
        ShapeError: the vector has not as many elements as the tensors together; nothing is written then.
    """
    listed = list(parameters)
    counts = [parameter.numel() for parameter in listed]
    if tuple(vec.shape) != (sum(counts),):
        raise ShapeError(
            f"vector_to_parameters: expected a vector of {sum(counts)} elements, got {tuple(vec.shape)}"
        )
    with om.no_grad():
        for parameter, part in zip(listed, vec.detach().split(counts), strict=True):
            parameter.copy_(part.reshape(tuple(parameter.shape)))
