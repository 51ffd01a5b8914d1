"""Rows of tables, and indicators."""

from __future__ import annotations

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError, UnsupportedError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import INTEGERS
from onemodel_tensors.ops.gathering import index_add_zeros, integer_index
from onemodel_tensors.ops.reductions import amax, mean, sum
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["embedding", "embedding_bag", "one_hot"]


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table at integer positions.

    Args:
        input: int32 or int64, any shape, in ``[0, rows)``.
        weight: (rows, features).
        padding_idx: a row that gets no gradient.
        max_norm: must be ``None``.
        norm_type: unused.
        scale_grad_by_freq: must be false.
        sparse: must be false.

    Returns:
        The input's shape with ``features`` appended.

    Raises:
        BoundsError: a position is outside the table.
        UnsupportedError: an option that has no form here is set.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise UnsupportedError(
            "embedding: expected max_norm=None, scale_grad_by_freq=False and sparse=False"
        )
    index = integer_index(input, "embedding")
    table, i = weight._array, index._array
    if table.ndim != 2:
        raise ShapeError(f"embedding: expected a weight (rows, features), got shape {table.shape}")
    if padding_idx is not None:
        if not -table.shape[0] <= padding_idx < table.shape[0]:
            raise AttributeValueError(
                f"embedding: expected padding_idx inside {table.shape[0]} rows, got {padding_idx}"
            )
        padding_idx %= table.shape[0]
    out = kernel("Gather", axis=0)(table, i)
    saved = (i, table.shape, padding_idx)
    return recorded("Gather", (weight, index), {"axis": 0}, out, _embedding_gradient, saved)


def _embedding_gradient(record: BackwardRecord, g: Array) -> Gradients:
    i, shape, padding = record.saved
    table = index_add_zeros(g, i, shape, 0)
    if padding is not None:
        table.select(0, padding).fill(0)
    return table, None


def embedding_bag(
    input: Tensor, weight: Tensor, mode: str = "mean", padding_idx: int | None = None
) -> Tensor:
    """The sum, mean or maximum of the rows at each row of positions.

    Args:
        input: (B, N), int32 or int64.
        weight: (rows, features).
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        padding_idx: a row that gets no gradient.

    Returns:
        (B, features).

    Raises:
        UnsupportedError: the input has another number of axes than 2.
        AttributeValueError: another mode.
    """
    if input._array.ndim != 2:
        raise UnsupportedError(
            "embedding_bag: expected positions of shape (B, N); offsets have no form here"
        )
    rows = embedding(input, weight, padding_idx)
    if mode == "sum":
        return sum(rows, 1)
    if mode == "mean":
        return mean(rows, 1)
    if mode == "max":
        return amax(rows, 1)
    raise AttributeValueError(f"embedding_bag: expected mode 'sum', 'mean' or 'max', got {mode!r}")


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at each element's class along a new last axis, else 0; int64.

    Args:
        tensor: integers in ``[0, num_classes)``.
        num_classes: the extent of the new axis; -1 for one more than the largest element.

    Raises:
        DtypeError: the tensor holds no integers.
        AttributeValueError: an element is outside the classes.
    """
    if tensor._array.dtype not in INTEGERS:
        raise DtypeError(f"one_hot: expected integers, got {tensor._array.dtype}")
    x = tensor._array
    if num_classes == -1:
        tensor._before_read("one_hot(num_classes=-1)")
        num_classes = int(amax(tensor).item()) + 1 if x.size else 0
    if tensor._asked() is None and x.size:
        low, high = (
            int(kernel("ReduceMin", keepdims=0)(x).item()),
            int(kernel("ReduceMax", keepdims=0)(x).item()),
        )
        if low < 0 or high >= num_classes:
            raise AttributeValueError(
                f"one_hot: expected elements in [0, {num_classes}), got {low} to {high}"
            )
    values = Tensor(Array.from_buffer(b"\0" * 8 + b"\1" + b"\0" * 7, "int64", (2,)))
    attributes = {"axis": -1, "depth": int(num_classes)}
    out = kernel("OneHot", **attributes)(x, values._array)
    return recorded("OneHot", (tensor, values), attributes, out, None)
