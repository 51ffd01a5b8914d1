"""Results whose shape depends on values: a recorder of traced tensors is asked, and refuses."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.errors import DtypeError
from onemodel_tensors.apply import kernel
from onemodel_tensors.tensor import Tensor

__all__ = ["argwhere", "bincount", "masked_select", "nonzero", "unique"]


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not 0, in row-major order.

    Args:
        input: any tensor.
        as_tuple: give one 1-D tensor for each axis instead.

    Returns:
        (count, axes), int64.
    """
    input._before_read("nonzero()")
    columns = Tensor(kernel("NonZero")(input._array))
    if as_tuple:
        return tuple([columns.select(0, axis) for axis in range(columns._array.shape[0])])
    return columns.t().contiguous()


def argwhere(input: Tensor) -> Tensor:
    """As :func:`nonzero` without ``as_tuple``."""
    input._before_read("argwhere()")
    result: Tensor = nonzero(input)
    return result


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where a bool mask is true, in row-major order, after broadcasting; 1-D.

    Raises:
        DtypeError: the mask is not bool.
    """
    from onemodel_tensors.ops.expanding import broadcast_tensors
    from onemodel_tensors.ops.gathering import gather_axis

    if mask._array.dtype != "bool":
        raise DtypeError(f"masked_select: expected a bool mask, got {mask._array.dtype}")
    input._before_read("masked_select()")
    mask._before_read("masked_select()")
    x, m = broadcast_tensors(input, mask)
    (positions,) = nonzero(m.ravel(), as_tuple=True)
    return gather_axis(x.ravel(), 0, positions)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices of an axis.

    Args:
        input: any tensor.
        sorted: accepted for compatibility: the result is always sorted.
        return_inverse: also the position in the result of each element.
        return_counts: also how often each occurs.
        dim: the axis of the slices; ``None`` for elements.
    """
    input._before_read("unique()")
    attributes = {"sorted": 1} if dim is None else {"sorted": 1, "axis": dim}
    values, _, inverse, counts = kernel("Unique", **attributes)(input._array)
    results = [Tensor(values)]
    if return_inverse:
        places = Tensor(inverse)
        results.append(places.reshape(input._array.shape) if dim is None else places)
    if return_counts:
        results.append(Tensor(counts))
    return results[0] if len(results) == 1 else tuple(results)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each non-negative integer occurs in a 1-D tensor, or the sum of the weights at it."""
    from onemodel_tensors.ops.factories import ones, zeros
    from onemodel_tensors.ops.scattering import index_add

    input._before_read("bincount()")
    largest = int(input.amax().item()) + 1 if input._array.size else 0
    source = ones(input._array.size, dtype="int64") if weights is None else weights
    return index_add(zeros(max(largest, minlength), dtype=source.dtype), 0, input, source)
