"""Multi-head attention."""

from __future__ import annotations

from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.layers.linear import Linear
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(NnModule):
    """softmax(Q·Kᵀ / √d)·V in several heads, with projections before and after.

    Args:
        embed_dim: E, the width of queries and of the result.
        num_heads: heads, each of width E / num_heads.
        dropout: of the attention weights, in training mode.
        bias: whether the projections have biases.
        add_bias_kv: whether a learned key and value, ``bias_k`` and ``bias_v`` (1, 1, E), are added.
        add_zero_attn: whether a key and value of zeros are added.
        kdim: width of keys if it is not E. vdim: of values.
        batch_first: whether sequences are (N, L, E) instead of (L, N, E).
        dtype: of the parameters.

    State: ``in_proj_weight`` (3E, E), or ``q_proj_weight`` (E, E), ``k_proj_weight`` (E, kdim)
    and ``v_proj_weight`` (E, vdim) if the widths differ; ``in_proj_bias`` (3E);
    ``out_proj.weight`` (E, E), ``out_proj.bias`` (E). Source: Vaswani et al. 2017.
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise AttributeValueError(
                f"MultiheadAttention: expected num_heads that divides embed_dim {embed_dim}, got "
                f"{num_heads}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        kdim = embed_dim if kdim is None else kdim
        vdim = embed_dim if vdim is None else vdim
        if kdim == vdim == embed_dim:
            self.in_proj_weight = Parameter(om.empty(3 * embed_dim, embed_dim, dtype=dtype))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(om.empty(embed_dim, embed_dim, dtype=dtype))
            self.k_proj_weight = Parameter(om.empty(embed_dim, kdim, dtype=dtype))
            self.v_proj_weight = Parameter(om.empty(embed_dim, vdim, dtype=dtype))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(om.empty(3 * embed_dim, dtype=dtype))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            added = Parameter(om.empty(1, 1, embed_dim, dtype=dtype)) if add_bias_kv else None
            self.register_parameter(name, added)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the projections again (Glorot uniform; biases 0)."""
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        for vector in (self.bias_k, self.bias_v):
            if vector is not None:
                init.xavier_normal_(vector)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        width = self.embed_dim
        if self.in_proj_weight is not None:
            if query is key and key is value:
                packed = F.linear(query, self.in_proj_weight, self.in_proj_bias)
                first, second, third = packed.chunk(3, -1)
                return first, second, third
            weights: list[Tensor] = list(self.in_proj_weight.chunk(3, 0))
        else:
            separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            weights = [weight for weight in separate if weight is not None]
        biases: list[Tensor | None] = [None] * 3
        if self.in_proj_bias is not None:
            biases = [self.in_proj_bias[start * width : (start + 1) * width] for start in range(3)]
        return (
            F.linear(query, weights[0], biases[0]),
            F.linear(key, weights[1], biases[1]),
            F.linear(value, weights[2], biases[2]),
        )

    def _longer(self, x: Tensor, added: Tensor | None) -> Tensor:
        """(N, S, E) with the learned row and the row of zeros behind it."""
        batch = x.shape[0]
        parts = [x]
        if added is not None:
            parts.append(added.expand(batch, 1, self.embed_dim))
        if self.add_zero_attn:
            parts.append(x.new_zeros((batch, 1, self.embed_dim)))
        return om.cat(parts, 1)

    def _heads(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from queries to keys.

        Args:
            query: (L, N, E), (N, L, E) with ``batch_first``, or (L, E).
            key: (S, N, kdim) likewise.
            value: (S, N, vdim) likewise.
            key_padding_mask: (N, S), True (or −inf to add) where a key is to be ignored.
            need_weights: whether the attention weights are returned.
            attn_mask: (L, S) or (N·num_heads, L, S), True where attention is *not* allowed, or
                floats that are added to the scores.
            average_attn_weights: whether the weights are averaged over heads.
            is_causal: whether query i sees keys up to i only; no mask is needed then.

        Returns:
            The result in the query's layout, and the weights (N, L, S), (N, heads, L, S) if not
            averaged, or None.
        """
        if query.ndim not in (2, 3):
            raise ShapeError(
                f"MultiheadAttention: expected a query with 2 or 3 axes, got {tuple(query.shape)}"
            )
        single = query.ndim == 2
        same = query is key and key is value
        if single:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        if same:
            key = value = query
        q, k, v = self._project(query, key, value)
        extra = (self.bias_k is not None) + self.add_zero_attn
        if is_causal and attn_mask is None and (extra or key_padding_mask is not None):
            attn_mask = om.ones(q.shape[1], k.shape[1], dtype="bool").triu(1)
        # Beside a mask, is_causal only says what the mask is.
        is_causal = is_causal and attn_mask is None
        if extra:
            k, v = self._longer(k, self.bias_k), self._longer(v, self.bias_v)
            if attn_mask is not None:
                attn_mask = F.pad(attn_mask, (0, extra))
            if key_padding_mask is not None:
                key_padding_mask = F.pad(key_padding_mask, (0, extra))
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        mask = self._mask(query, attn_mask, key_padding_mask)
        drop = self.dropout if self.dropout and self.training else 0.0
        weights: Tensor | None = None
        if need_weights:
            result, weights = self._explicit(q, k, v, mask, drop, is_causal)
            if average_attn_weights:
                weights = weights.mean(1)
            if single:
                weights = weights.squeeze(0)
        else:
            result = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=drop, is_causal=is_causal
            )
        batch, length = query.shape[0], query.shape[1]
        result = result.transpose(1, 2).reshape(batch, length, self.embed_dim)
        result = self.out_proj(result)
        if single:
            return result.squeeze(0), weights
        return (result if self.batch_first else result.transpose(0, 1)), weights

    def _mask(
        self, query: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None
    ) -> Tensor | None:
        """One mask in the form of scaled_dot_product_attention: True where allowed, or added."""
        masks: list[Tensor] = []
        if attn_mask is not None:
            if attn_mask.ndim == 3:
                attn_mask = attn_mask.unflatten(0, (query.shape[0], self.num_heads))
            masks.append(attn_mask)
        if key_padding_mask is not None:
            masks.append(key_padding_mask.unsqueeze(1).unsqueeze(1))
        if not masks:
            return None
        if all(mask.dtype == "bool" for mask in masks):
            allowed = [~mask for mask in masks]
            return allowed[0] if len(allowed) == 1 else allowed[0] & allowed[1]
        added = [
            om.zeros((), dtype=query.dtype).masked_fill(mask, float("-inf"))
            if mask.dtype == "bool"
            else mask
            for mask in masks
        ]
        return added[0] if len(added) == 1 else added[0] + added[1]

    def _explicit(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, drop: float, is_causal: bool
    ) -> tuple[Tensor, Tensor]:
        scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        allowed: Tensor | None = None
        if is_causal:
            length, keys = q.shape[2], k.shape[2]
            allowed = om.arange(keys).unsqueeze(0) <= om.arange(length).unsqueeze(1)
        if mask is not None:
            if mask.dtype == "bool":
                allowed = mask if allowed is None else mask & allowed
            else:
                scores = scores + mask
        if allowed is not None:
            scores = scores.masked_fill(~allowed, float("-inf"))
        weights = scores.softmax(-1)
        if allowed is not None:
            # A query that sees no key gets zeros, as without the weights.
            weights = om.where(allowed.any(-1, keepdim=True), weights, 0.0)
        if drop:
            weights = F.dropout(weights, drop, training=True)
        return weights @ v, weights

    def extra_repr(self) -> str:
        """Sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"
