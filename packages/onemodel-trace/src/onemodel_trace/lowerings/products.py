"""Matrix products."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.ops import extents
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings.registry import Lowering, Recorded
from onemodel_trace.lowerings.wider import SMALL_INTEGERS, computed_in


def _linear(writer: GraphWriter, call: Recorded) -> Any:
    """x wᵀ + b: Gemm reads the weight as it is stored, and its chain starts from the bias."""
    x, w, bias = call.value(0), call.value(1), call.optional(2)
    if x.rank == 2:
        return writer.emit("Gemm", x, w, bias, transB=1)
    if bias is None:
        return writer.emit("MatMul", x, writer.emit("Transpose", w, perm=(1, 0)))
    rows = (extents.product(x.shape[:-1]), x.shape[-1])
    flat = writer.emit("Gemm", writer.reshape(x, rows), w, bias, transB=1)
    return writer.reshape(flat, (*x.shape[:-1], w.shape[0]))


def _matmul(writer: GraphWriter, call: Recorded) -> Any:
    """A vector beside a matrix becomes a matrix: some consumers fuse a Transpose into it wrongly."""
    a, b = call.value(0), call.value(1)
    if a.rank == 1 and b.rank > 1:
        product = writer.emit("MatMul", writer.emit("Unsqueeze", a, axes=(0,)), b)
        return writer.emit("Squeeze", product, axes=(product.rank - 2,))
    if b.rank == 1 and a.rank > 1:
        product = writer.emit("MatMul", a, writer.emit("Unsqueeze", b, axes=(1,)))
        return writer.emit("Squeeze", product, axes=(product.rank - 1,))
    return writer.emit("MatMul", a, b)


LOWERINGS: dict[str, Lowering] = {"Linear": _linear, "MatMul": computed_in(SMALL_INTEGERS, _matmul)}
