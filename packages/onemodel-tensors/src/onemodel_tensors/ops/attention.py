"""Scaled dot-product attention, written with separate operators so that it is recorded as such."""

from __future__ import annotations

import math

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.ops.arithmetic import add, mul
from onemodel_tensors.ops.comparison import le
from onemodel_tensors.ops.dropping import dropout
from onemodel_tensors.ops.expanding import expand
from onemodel_tensors.ops.factories import arange
from onemodel_tensors.ops.permuting import transpose
from onemodel_tensors.ops.products import matmul
from onemodel_tensors.ops.reductions import any as any_of
from onemodel_tensors.ops.reshaping import reshape, unsqueeze
from onemodel_tensors.ops.selection import where
from onemodel_tensors.ops.softmax import softmax
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``; a row that may see nothing is 0, and so is its gradient.

    Args:
        query: (…, L, D), floating point.
        key: (…, S, D).
        value: (…, S, V).
        attn_mask: broadcast to (…, L, S): bool, true where a position may be seen, or numbers that are added.
        dropout_p: the probability of dropping a weight; always applied when above 0.
        is_causal: position i sees the positions up to i, counted from the first of both.
        scale: ``1 / sqrt(D)`` if ``None``.
        enable_gqa: each head of key and value serves several of the query's, in order.

    Returns:
        (…, L, V).

    Raises:
        AttributeValueError: a mask is given and ``is_causal`` is set.
        ShapeError: heads do not divide.
    """
    if is_causal and attn_mask is not None:
        raise AttributeValueError(
            "scaled_dot_product_attention: expected either attn_mask or is_causal"
        )
    if enable_gqa:
        key, value = _repeated(query, key), _repeated(query, value)
    depth = query.shape[-1]
    factor = 1.0 / math.sqrt(depth) if scale is None else scale
    scores = mul(matmul(query, transpose(key, -2, -1)), factor)
    if is_causal:
        weights = softmax(where(_causal(query, key), scores, float("-inf")), -1)
    elif attn_mask is None:
        weights = softmax(scores, -1)
    elif attn_mask.dtype != "bool":
        weights = softmax(add(scores, attn_mask), -1)
    else:
        seen = any_of(attn_mask, -1, keepdim=True)
        # A row that sees nothing gets finite scores, so that neither it nor its gradient is NaN.
        open_scores = where(attn_mask, scores, float("-inf"))
        weights = softmax(where(seen, open_scores, 0.0), -1)
        weights = where(seen, weights, 0.0)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return matmul(weights, value)


def _causal(query: Tensor, key: Tensor) -> Tensor:
    rows, columns = query.shape[-2], key.shape[-2]
    return le(unsqueeze(arange(columns), 0), unsqueeze(arange(rows), 1))


def _repeated(query: Tensor, heads: Tensor) -> Tensor:
    """Each head of key or value as often as the query has heads for it."""
    wanted, have = query.shape[-3], heads.shape[-3]
    if wanted == have:
        return heads
    if wanted % have:
        raise ShapeError(
            f"scaled_dot_product_attention: expected {wanted} heads to be a multiple of {have}"
        )
    shape = heads.shape
    times: int | SymbolicSize = wanted // have
    spread = expand(unsqueeze(heads, -3), *shape[:-2], times, *shape[-2:])
    return reshape(spread, (*shape[:-3], wanted, *shape[-2:]))
