"""Lookup tables."""

from __future__ import annotations

from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, UnsupportedError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(NnModule):
    """Row ``ids[…]`` of a table.

    Args:
        num_embeddings: rows. embedding_dim: columns.
        padding_idx: a row that starts at 0 and gets no gradient; negative counts from the end.
        dtype: of the table.

    State: ``weight`` (num_embeddings, embedding_dim) from N(0, 1).
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AttributeValueError(
                    f"Embedding: expected padding_idx from {-num_embeddings} to "
                    f"{num_embeddings - 1}, got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(om.empty(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """A table that holds ``embeddings``; ``freeze`` keeps it out of training."""
        rows, columns = embeddings.shape
        table = cls(rows, columns, padding_idx, dtype=embeddings.dtype)
        with om.no_grad():
            table.weight.copy_(embeddings)
        table.weight.requires_grad_(not freeze)
        return table

    def reset_parameters(self) -> None:
        """Draws the table again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with om.no_grad():
                self.weight[self.padding_idx] = 0.0

    def forward(self, input: Tensor) -> Tensor:
        """Maps integer ids (…) to (…, embedding_dim)."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Sizes."""
        tail = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{tail}"


class EmbeddingBag(NnModule):
    """Sum, mean or maximum of the rows of each bag of ids: (N, L) to (N, embedding_dim)."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        mode: str = "mean",
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        if mode not in ("sum", "mean", "max"):
            raise AttributeValueError(f"EmbeddingBag: expected mode sum, mean or max, got {mode!r}")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.mode = mode
        self.weight = Parameter(om.empty(num_embeddings, embedding_dim, dtype=dtype))
        init.normal_(self.weight)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Maps integer ids (N, L) to (N, embedding_dim).

        Args:
            input: the ids.
            offsets: not offered: bags of several lengths in one row have no form here.
            per_sample_weights: (N, L), a factor of each row, with ``mode="sum"``.

        Raises:
            UnsupportedError: ``offsets`` are given.
            AttributeValueError: weights with another mode.
        """
        if offsets is not None or input.ndim != 2:
            raise UnsupportedError(
                f"EmbeddingBag: expected ids (N, L) without offsets, got {tuple(input.shape)}; pad the bags"
            )
        if per_sample_weights is not None:
            if self.mode != "sum":
                raise AttributeValueError(
                    f"EmbeddingBag: expected mode sum with per_sample_weights, got {self.mode!r}"
                )
            return (F.embedding(input, self.weight) * per_sample_weights.unsqueeze(-1)).sum(1)
        rows = F.embedding(input, self.weight)
        if self.mode == "sum":
            return rows.sum(1)
        return rows.mean(1) if self.mode == "mean" else rows.amax(1)

    def extra_repr(self) -> str:
        """Sizes and mode."""
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
