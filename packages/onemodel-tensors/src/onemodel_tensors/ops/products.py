"""Products of matrices and vectors.

Determinism: each element is one chain of fused multiply-adds over the contracted axis in ascending order.
"""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_tensors.apply import recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.arithmetic import add, mul
from onemodel_tensors.ops.arrays import MATMUL, reduce_sum, sum_to, swapped
from onemodel_tensors.ops.permuting import permute
from onemodel_tensors.ops.sizes import axis_of
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "addmm",
    "baddbmm",
    "bilinear",
    "bmm",
    "dot",
    "inner",
    "linear",
    "matmul",
    "mm",
    "mv",
    "outer",
    "tensordot",
    "vdot",
]

_LINEAR = Kernel("Linear")


def _same_dtype(operator: str, *tensors: Tensor | None) -> None:
    dtypes = [t._array.dtype for t in tensors if t is not None]
    for dtype in dtypes:
        if dtype != dtypes[0]:
            raise DtypeError(
                f"{operator}: expected operands of one dtype, got {' and '.join(dtypes)}; cast one of them"
            )


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, batches of them, or vectors.

    Args:
        input: (…, M, K), or (K,).
        other: (…, K, N), or (K,). Leading axes broadcast.

    Returns:
        (…, M, N), without the axes that a vector lacks.

    Raises:
        ShapeError: the contracted extents differ, or an operand is 0-d.
        DtypeError: the dtypes differ.
    """
    x, y = input._array, other._array
    if x.dtype != y.dtype:
        _same_dtype("matmul", input, other)
    out = MATMUL(x, y)
    gradient = _matmul_gradient if x.dtype in FLOATING else None
    return recorded("MatMul", (input, other), NO_ATTRIBUTES, out, gradient, (x, y))


def _matmul_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, y = record.saved
    a = x.unsqueeze((0,)) if x.ndim == 1 else x
    b = y.unsqueeze((1,)) if y.ndim == 1 else y
    if x.ndim == 1:
        g = g.unsqueeze((g.ndim if y.ndim == 1 else g.ndim - 1,))
    if y.ndim == 1:
        g = g.unsqueeze((g.ndim,))
    dx = dy = None
    if record.needs(0):
        dx = sum_to(MATMUL(g, swapped(b)), a.shape).view_or_copy(x.shape)
    if record.needs(1):
        if b.ndim == 2 and a.ndim > 2:
            rows = a.view_or_copy((_leading(a), a.shape[-1]))
            dy = MATMUL(swapped(rows), g.view_or_copy((_leading(g), g.shape[-1])))
        else:
            dy = sum_to(MATMUL(swapped(a), g), b.shape)
        dy = dy.view_or_copy(y.shape)
    return dx, dy


def _leading(array: Array) -> int:
    count = 1
    for extent in array.shape[:-1]:
        count *= extent
    return count


def _rmatmul(input: Tensor, other: Any) -> Tensor:
    raise TypeError(
        f"matmul: expected a tensor on the left, got {other.__class__.__name__}; use from_numpy()"
    )


def _of_rank(tensor: Tensor, rank: int, operator: str) -> None:
    if tensor._array.ndim != rank:
        raise ShapeError(
            f"{operator}: expected a tensor of {rank} axes, got shape {tensor._array.shape}"
        )


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices (M, K) and (K, N)."""
    _of_rank(input, 2, "mm")
    _of_rank(mat2, 2, "mm")
    return matmul(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices (B, M, K) and (B, K, N).

    Raises:
        ShapeError: the operands are no batches of one size.
    """
    _of_rank(input, 3, "bmm")
    _of_rank(mat2, 3, "bmm")
    if input._array.shape[0] != mat2._array.shape[0]:
        raise ShapeError(
            f"bmm: expected batches of one size, got {input._array.shape} and {mat2._array.shape}"
        )
    return matmul(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix (M, K) and a vector (K,)."""
    _of_rank(input, 2, "mv")
    _of_rank(vec, 1, "mv")
    return matmul(input, vec)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements."""
    _of_rank(input, 1, "dot")
    _of_rank(tensor, 1, "dot")
    return matmul(input, tensor)


vdot = dot


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The products over the last axes of both: (…, K) and (…, K)."""
    if input._array.ndim == 0 or other._array.ndim == 0:
        return mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """``out[i, j] = input[i] * vec2[j]``."""
    _of_rank(input, 1, "outer")
    _of_rank(vec2, 1, "outer")
    return mul(input.unsqueeze(1), vec2.unsqueeze(0))


def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else mul(product, alpha)
    if beta == 0:
        return product
    return add(input if beta == 1 else mul(input, beta), product)


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)``."""
    product = bmm(batch1, batch2)
    product = product if alpha == 1 else mul(product, alpha)
    if beta == 0:
        return product
    return add(input if beta == 1 else mul(input, beta), product)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``; each chain starts from the bias.

    Args:
        input: (…, K), floating point.
        weight: (N, K), same dtype; or (K,).
        bias: (N,), same dtype, or ``None``.

    Returns:
        (…, N).

    Raises:
        ShapeError: the extents K or N differ.
        DtypeError: the dtypes differ.
    """
    x, w = input._array, weight._array
    if w.ndim == 1:
        out = matmul(input, weight)
        return out if bias is None else add(out, bias)
    b = None if bias is None else bias._array
    if x.dtype != w.dtype or (b is not None and b.dtype != w.dtype):
        _same_dtype("linear", input, weight, bias)
    if (
        x.ndim == 0
        or w.ndim != 2
        or x.shape[-1] != w.shape[1]
        or (b is not None and b.shape != (w.shape[0],))
    ):
        came = f"{x.shape}, {w.shape}" + ("" if b is None else f" and {b.shape}")
        raise ShapeError(
            f"linear: expected an input (…, K), a weight (N, K) and a bias (N,), got {came}"
        )
    out = _LINEAR(x, w) if b is None else _LINEAR(x, w, b)
    return recorded("Linear", (input, weight, bias), NO_ATTRIBUTES, out, _linear_gradient, (x, w))


def _linear_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, w = record.saved
    dx = MATMUL(g, w) if record.needs(0) else None
    if g.ndim != 2:
        g = g.view_or_copy((_leading(g), g.shape[-1]))
    dw = db = None
    if record.needs(1):
        rows = x if x.ndim == 2 else x.view_or_copy((g.shape[0], x.shape[-1]))
        dw = MATMUL(g.permute((1, 0)), rows)
    if record.needs(2):
        db = reduce_sum(g, (0,), False)
    return dx, dw, db


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[…, n] = input1[…, i] * weight[n, i, j] * input2[…, j] + bias[n]``, summed over i and j."""
    from onemodel_tensors.ops.einsum import einsum

    out = einsum("...i,nij,...j->...n", input1, weight, input2)
    return out if bias is None else add(out, bias)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The products summed over pairs of axes.

    Args:
        a: any tensor of numbers.
        b: the same dtype.
        dims: how many last axes of ``a`` meet the first of ``b``, or the two lists of axes that meet.

    Returns:
        The other axes of ``a``, then those of ``b``.

    Raises:
        ShapeError: axes that meet have different extents.
    """
    rank_a, rank_b = a._array.ndim, b._array.ndim
    if isinstance(dims, int):
        axes_a, axes_b = list(range(rank_a - dims, rank_a)), list(range(dims))
    else:
        axes_a = [axis_of(axis, rank_a, "tensordot") for axis in dims[0]]
        axes_b = [axis_of(axis, rank_b, "tensordot") for axis in dims[1]]
    shape_a, shape_b = a.shape, b.shape
    if [a._array.shape[i] for i in axes_a] != [b._array.shape[i] for i in axes_b]:
        raise ShapeError(
            f"tensordot: expected equal extents of axes {axes_a} of {shape_a} and {axes_b} of {shape_b}"
        )
    rest_a = [i for i in range(rank_a) if i not in axes_a]
    rest_b = [i for i in range(rank_b) if i not in axes_b]
    contracted: Any = 1
    for axis in axes_a:
        contracted = contracted * shape_a[axis]
    rows: Any = 1
    for axis in rest_a:
        rows = rows * shape_a[axis]
    columns: Any = 1
    for axis in rest_b:
        columns = columns * shape_b[axis]
    left = permute(a, (*rest_a, *axes_a)).reshape(rows, contracted)
    right = permute(b, (*axes_b, *rest_b)).reshape(contracted, columns)
    return matmul(left, right).reshape(*[shape_a[i] for i in rest_a], *[shape_b[i] for i in rest_b])
