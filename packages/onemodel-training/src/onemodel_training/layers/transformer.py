"""Transformer encoder and decoder layers, and stacks of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.layers.attention import MultiheadAttention
from onemodel_training.layers.containers import ModuleList
from onemodel_training.layers.dropout import Dropout
from onemodel_training.layers.linear import Linear
from onemodel_training.layers.normalisation import LayerNorm
from onemodel_training.module import NnModule

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = Callable[[Tensor], Tensor]


def _activation(name: str | Activation) -> Activation:
    if callable(name):
        return name
    if name not in ("relu", "gelu", "silu"):
        raise AttributeValueError(
            f"Transformer: expected activation relu, gelu, silu or a function, got {name!r}"
        )
    found: Activation = getattr(F, name)
    return found


class TransformerEncoderLayer(NnModule):
    """Self-attention and a feed-forward block, each with a residual and a layer norm.

    Args:
        d_model: width. nhead: heads. dim_feedforward: width inside the feed-forward block.
        dropout: in training mode. activation: relu, gelu, silu or a function.
        layer_norm_eps: of the norms. batch_first: (N, L, E) instead of (L, N, E).
        norm_first: norms before the blocks instead of after the residuals.
        bias: whether linear layers and norms have biases. dtype: of the parameters.

    State: ``self_attn.*``, ``linear1.*``, ``linear2.*``, ``norm1.*``, ``norm2.*``.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.norm_first = norm_first
        self.activation = _activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Maps (L, N, E), or (N, L, E) with batch_first, to the same shape."""
        if self.norm_first:
            src = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return src + self._feed(self.norm2(src))
        src = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask, is_causal))
        result: Tensor = self.norm2(src + self._feed(src))
        return result

    def _attend(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        attended, _ = self.self_attn(
            x, x, x, padding, need_weights=False, attn_mask=mask, is_causal=is_causal
        )
        result: Tensor = self.dropout1(attended)
        return result

    def _feed(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.activation(self.linear1(x)))
        result: Tensor = self.dropout2(self.linear2(hidden))
        return result


class TransformerDecoderLayer(NnModule):
    """Self-attention, attention to a memory and a feed-forward block, each with residual and norm.

    Arguments as in TransformerEncoderLayer. State: ``self_attn.*``, ``multihead_attn.*``,
    ``linear1.*``, ``linear2.*``, ``norm1.*``, ``norm2.*``, ``norm3.*``.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.norm_first = norm_first
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Maps targets (L, N, E) and a memory (S, N, E) to the targets' shape."""

        def attend(x: Tensor) -> Tensor:
            attended, _ = self.self_attn(
                x, x, x, tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )  # fmt: skip
            result: Tensor = self.dropout1(attended)
            return result

        def recall(x: Tensor) -> Tensor:
            attended, _ = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, need_weights=False,
                attn_mask=memory_mask, is_causal=memory_is_causal,
            )  # fmt: skip
            result: Tensor = self.dropout2(attended)
            return result

        def feed(x: Tensor) -> Tensor:
            hidden = self.dropout(self.activation(self.linear1(x)))
            result: Tensor = self.dropout3(self.linear2(hidden))
            return result

        if self.norm_first:
            tgt = tgt + attend(self.norm1(tgt))
            tgt = tgt + recall(self.norm2(tgt))
            return tgt + feed(self.norm3(tgt))
        tgt = self.norm1(tgt + attend(tgt))
        tgt = self.norm2(tgt + recall(tgt))
        result: Tensor = self.norm3(tgt + feed(tgt))
        return result


class TransformerEncoder(NnModule):
    """``num_layers`` copies of a layer one after another, then ``norm``."""

    norm: NnModule | None

    def __init__(
        self, encoder_layer: NnModule, num_layers: int, norm: NnModule | None = None
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.add_module("norm", norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Maps (L, N, E), or (N, L, E) with batch_first layers, to the same shape."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(NnModule):
    """``num_layers`` copies of a layer one after another, then ``norm``."""

    norm: NnModule | None

    def __init__(
        self, decoder_layer: NnModule, num_layers: int, norm: NnModule | None = None
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.add_module("norm", norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Maps targets (L, N, E) and a memory (S, N, E) to the targets' shape."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                memory_key_padding_mask, tgt_is_causal, memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(NnModule):
    """An encoder and a decoder with final norms. Source: Vaswani et al. 2017."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        options = (
            dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            dtype,
        )  # fmt: skip
        self.encoder = TransformerEncoder(
            TransformerEncoderLayer(d_model, nhead, *options),
            num_encoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype),
        )
        self.decoder = TransformerDecoder(
            TransformerDecoderLayer(d_model, nhead, *options),
            num_decoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype),
        )
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: str | None = None
    ) -> Tensor:
        """(sz, sz): −inf above the diagonal, 0 elsewhere."""
        return om.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Maps sources (S, N, E) and targets (L, N, E) to the targets' shape."""
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        result: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
        return result
