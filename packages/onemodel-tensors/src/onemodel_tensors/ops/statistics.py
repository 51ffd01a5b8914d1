"""Variance, standard deviation, norms and distances."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.ops.arithmetic import div, mul, sub
from onemodel_tensors.ops.arrays import DIV, EQUAL, MUL, NOT, masked, number
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.mathematics import abs, sqrt
from onemodel_tensors.ops.powers import pow
from onemodel_tensors.ops.promotion import floating, require_floating, scalar
from onemodel_tensors.ops.reductions import amax, amin, kept_shape, mean, sum
from onemodel_tensors.ops.selection import clamp
from onemodel_tensors.ops.sizes import axes_of
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = [
    "cdist",
    "cosine_similarity",
    "norm",
    "normalize",
    "pairwise_distance",
    "std",
    "std_mean",
    "var",
    "var_mean",
    "vector_norm",
]


def var_mean(
    input: Tensor,
    dim: Any = None,
    *,
    correction: float = 1,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """``sum((x - mean)**2) / max(count - correction, 0)`` and the mean over axes.

    Args:
        input: floating point.
        dim: an axis, several, or ``None`` for all.
        correction: what is taken from the count; 1 gives the unbiased estimate.
        keepdim: keep the axes with extent 1.
        unbiased: ``True`` and ``False`` stand for the corrections 1 and 0.

    Raises:
        DtypeError: the tensor holds integers.
    """
    require_floating(input, "var")
    if unbiased is not None:
        correction = int(unbiased)
    axes = axes_of(dim, input._array.ndim, "var")
    center = mean(input, axes, True)
    apart = sub(input, center)
    squares = sum(mul(apart, apart), axes, keepdim)
    variance = div(squares, _degrees(input, axes, correction))
    return variance, center if keepdim or not axes else center.squeeze(axes)


def _degrees(input: Tensor, axes: tuple[int, ...], correction: float) -> Any:
    """``max(count - correction, 0)``; a tensor when the count is symbolic."""
    shape = input.shape
    count: Any = 1
    for axis in axes:
        count = count * shape[axis]
    if isinstance(count, SymbolicSize):
        return clamp(sub(scalar(count, input._array.dtype), correction), min=0.0)
    return float(max(count - correction, 0))


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> Tensor:
    """``sum((x - mean)**2) / max(count - correction, 0)`` over axes; see :func:`var_mean`."""
    return var_mean(input, dim, correction=correction, keepdim=keepdim, unbiased=unbiased)[0]


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> Tensor:
    """The square root of :func:`var`."""
    return sqrt(var(input, dim, unbiased, keepdim, correction=correction))


def std_mean(
    input: Tensor,
    dim: Any = None,
    *,
    correction: float = 1,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over axes."""
    variance, center = var_mean(
        input, dim, correction=correction, keepdim=keepdim, unbiased=unbiased
    )
    return sqrt(variance), center


def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """``sum(|x|**p)**(1/p)`` over axes; see :func:`vector_norm`. ``"fro"`` is 2."""
    if isinstance(p, str):
        if p not in ("fro", "inf", "-inf"):
            raise AttributeValueError(
                f"norm: expected p a number, 'fro', 'inf' or '-inf', got {p!r}"
            )
        p = 2.0 if p == "fro" else float(p)
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


def vector_norm(
    input: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """``sum(|x|**ord)**(1/ord)`` over axes.

    Args:
        input: floating point, or integers that become float32.
        ord: any number; ``inf`` gives the largest magnitude, ``-inf`` the smallest, 0 the count of elements not 0.
        dim: an axis, several, or ``None`` for all.
        keepdim: keep the axes with extent 1.
        dtype: cast first.

    Gradient: 0 where the norm is 0.
    """
    x = floating(input if dtype is None else input.to(dtype), "norm")
    axes = axes_of(dim, x._array.ndim, "norm")
    order = float(ord)
    if order in (1.0, 2.0):
        operator = "ReduceL1" if order == 1.0 else "ReduceL2"
        attributes = {"axes": axes, "keepdims": int(keepdim), "noop_with_empty_axes": int(not axes)}
        if not axes:
            return abs(x)
        out = kernel(operator, **attributes)(x._array)
        return recorded(operator, (x,), attributes, out, _norm_gradient, (x._array, out, axes))
    if order == float("inf"):
        return amax(abs(x), axes, keepdim)
    if order == float("-inf"):
        return amin(abs(x), axes, keepdim)
    if order == 0.0:
        return sum(to_dtype(x != 0, x._array.dtype), axes, keepdim)
    return pow(sum(pow(abs(x), order), axes, keepdim), 1.0 / order)


def _norm_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, out, axes = record.saved
    kept = kept_shape(x.shape, axes)
    g = g.view_or_copy(kept)
    if record.operator == "ReduceL1":
        return (MUL(kernel("Sign")(x), g),)
    length = out.view_or_copy(kept)
    share = DIV(g, length)
    return (MUL(x, masked(NOT(EQUAL(length, number(0.0, x.dtype))), share)),)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """``x / max(norm(x), eps)`` with the norm over an axis."""
    return div(input, clamp(vector_norm(input, p, dim, True), min=eps))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``sum(x1 * x2) / (max(|x1|, eps) * max(|x2|, eps))`` over an axis."""
    lengths = mul(clamp(vector_norm(x1, 2, dim), min=eps), clamp(vector_norm(x2, 2, dim), min=eps))
    return div(sum(mul(x1, x2), dim), lengths)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of ``x1 - x2 + eps`` over the last axis."""
    return vector_norm(sub(x1, x2) + eps, p, -1, keepdim)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The distance of each row of ``x1`` (…, M, D) from each row of ``x2`` (…, N, D): (…, M, N)."""
    return vector_norm(sub(x1.unsqueeze(-2), x2.unsqueeze(-3)), p, -1)
