"""Matrix products, attention and recurrent layers."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace.testing.case import Case, cases, real, weights

W = weights(7, 5)
BIAS = weights(7, seed=101)


def _gates(count: int) -> list[om.Tensor]:
    rows = 4 * count
    shapes = ((rows, 5), (rows, 4), (rows,), (rows,))
    return [weights(*shape, seed=110 + i) for i, shape in enumerate(shapes)]


CASES: list[Case] = [
    *cases(
        {
            "matmul": lambda x, y: x @ y.transpose(-1, -2),
            "mm": lambda x, y: om.mm(x, y.T),
            "addmm": lambda x, y: om.addmm(x[:, :1], x, y.T),
            "mv": lambda x, y: om.mv(x, y[0]),
            "dot": lambda x, y: om.dot(x[0], y[0]),
            "vdot": lambda x, y: om.vdot(x[0], y[0]),
            "inner": om.inner,
            "outer": lambda x, y: om.outer(x[0], y[:, 0]),
            "tensordot": lambda x, y: om.tensordot(x, y, ([1], [1])),
            "einsum": lambda x, y: om.einsum("ij,kj->ik", x, y),
            "einsum: outer": lambda x, y: om.einsum("ij,kl->ijkl", x, y),
            "einsum: diagonal": lambda x, y: om.einsum("ii->i", x @ y.T),
            "bilinear": lambda x, y: F.bilinear(x, y, weights(2, 5, 5)),
            "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, dim=-1),
            "pairwise_distance": F.pairwise_distance,
            "cdist": om.cdist,
            "lstm_cell": lambda x, y: F.lstm_cell(x, (y[:, :4], y[:, 1:]), *_gates(4)),
            "gru_cell": lambda x, y: F.gru_cell(x, y[:, :4], *[w[:12] for w in _gates(4)]),
            "rnn_tanh_cell": lambda x, y: F.rnn_tanh_cell(x, y[:, :4], *[w[:4] for w in _gates(4)]),
            "rnn_relu_cell": lambda x, y: F.rnn_relu_cell(x, y[:, :4], *[w[:4] for w in _gates(4)]),
        },
        real(3, 5),
        real(3, 5),
    ),
    *cases(
        {
            "linear: rows": lambda x: F.linear(x, W, BIAS),
            "linear: rows without bias": lambda x: F.linear(x, W),
            "linear: vector": lambda x: F.linear(x[0], W, BIAS),
            "matmul: constant": lambda x: x @ W.T,
        },
        real(3, 5),
    ),
    *cases(
        {
            "linear": lambda x: F.linear(x, W, BIAS),
            "linear: residual": lambda x: x[..., :4] + F.linear(x, W[:4], BIAS[:4]),
            "linear: without bias": lambda x: F.linear(x, W),
            "bmm": lambda x: om.bmm(x, x.transpose(1, 2)),
            "baddbmm": lambda x: om.baddbmm(x[:, :, :1], x, x.transpose(1, 2)),
            "matmul: batches": lambda x: x @ x.mT,
            "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(
                x, x * 0.5, x + 1
            ),
            "scaled_dot_product_attention: causal": lambda x: F.scaled_dot_product_attention(
                x, x, x, is_causal=True
            ),
            "scaled_dot_product_attention: bool mask": lambda x: F.scaled_dot_product_attention(
                x, x, x, attn_mask=(x @ x.mT) > -1
            ),
            "scaled_dot_product_attention: added mask": lambda x: F.scaled_dot_product_attention(
                x, x, x, attn_mask=x @ x.mT
            ),
            "lstm": lambda x: F.lstm(x, None, _gates(4)),
            "gru": lambda x: F.gru(x, None, [w[:12] for w in _gates(4)]),
            "rnn_tanh": lambda x: F.rnn_tanh(x, None, [w[:4] for w in _gates(4)]),
            "rnn_relu": lambda x: F.rnn_relu(x, None, [w[:4] for w in _gates(4)]),
        },
        real(2, 3, 5),
    ),
    Case(
        "scaled_dot_product_attention: grouped heads",
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        (real(2, 6, 3, 5), real(2, 2, 3, 5)),
    ),
]
