"""Triangular parts of matrices, and diagonal matrices."""

from __future__ import annotations

from collections.abc import Callable

from onemodel_kernels import Array
from onemodel_kernels.errors import ShapeError, UnsupportedError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.slicing import diagonal
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "diag",
    "diag_embed",
    "fill_diagonal_",
    "trace",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
]


def _triangle(input: Tensor, upper: int, diagonal: int, what: str) -> Tensor:
    x = input._array
    if x.ndim < 2:
        raise ShapeError(f"{what}: expected at least 2 axes, got shape {x.shape}")
    attributes = {"upper": upper, "k": int(diagonal)}
    out = kernel("Trilu", **attributes)(x)
    gradient = _triangle_gradient if x.dtype in FLOATING else None
    return recorded("Trilu", (input,), attributes, out, gradient)


def _triangle_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (kernel("Trilu", **record.attributes)(g),)


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The last two axes' elements on and below a diagonal, 0 above."""
    return _triangle(input, 0, diagonal, "tril")


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The last two axes' elements on and above a diagonal, 0 below."""
    return _triangle(input, 1, diagonal, "triu")


def diag_embed(input: Tensor, offset: int = 0) -> Tensor:
    """Matrices with the last axis's elements on a diagonal."""
    from onemodel_tensors.ops.factories import eye
    from onemodel_tensors.ops.padding import pad
    from onemodel_tensors.ops.selection import where

    square: Tensor = where(eye(input.shape[-1], dtype="bool"), input.unsqueeze(-1), 0)
    if offset == 0:
        return square
    distance = max(offset, -offset)
    return pad(square, (distance, 0, 0, distance) if offset > 0 else (0, distance, distance, 0))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    Raises:
        ShapeError: the tensor is neither.
    """
    if input._array.ndim == 1:
        return diag_embed(input, diagonal)
    if input._array.ndim == 2:
        return diagonal_of(input, diagonal)
    raise ShapeError(f"diag: expected 1 or 2 axes, got shape {input._array.shape}")


diagonal_of = diagonal


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The rows and columns (2, n), int64, of a matrix's elements on and below a diagonal, row by row."""
    return _indices(row, col, lambda i, j: j - i <= offset)


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The rows and columns (2, n), int64, of a matrix's elements on and above a diagonal, row by row."""
    return _indices(row, col, lambda i, j: j - i >= offset)


def _indices(rows: int, columns: int, wanted: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    from onemodel_tensors.ops.factories import arange

    found: Tensor = wanted(arange(rows).unsqueeze(1), arange(columns)).nonzero().T
    return found


def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write one value into the main diagonal of a matrix, and return the matrix.

    Raises:
        ShapeError: it has fewer than two axes, or more and of different extents.
        UnsupportedError: ``wrap`` is true.
    """
    shape = input._array.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(
            f"fill_diagonal_: expected a matrix, or axes of one extent, got shape {shape}"
        )
    if wrap:
        raise UnsupportedError("fill_diagonal_: expected wrap=False; write each block's diagonal")
    view = input
    while view._array.ndim > 1:
        view = view.diagonal(0, 0, 1).movedim(-1, 0) if view._array.ndim > 2 else view.diagonal()
    view.fill_(fill_value)
    return input


def trace(input: Tensor) -> Tensor:
    """The sum of the main diagonal of a matrix."""
    return diagonal(input).sum()
