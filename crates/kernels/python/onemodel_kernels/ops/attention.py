"""Attention and what goes with it, written with elementary operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.products import CHAIN
from onemodel_kernels.ops.reductions import ROWS
from onemodel_kernels.ops.rules import OWN, operator, same
from onemodel_kernels.ops.spec import (
    Call,
    Emitter,
    TensorType,
    dtype_name,
    integer,
    normalise_axis,
    real,
    text,
)
from onemodel_kernels.ops.written import require_writable

MINUS_INFINITY = float("-inf")


def _heads(call: Call) -> tuple[Any, ...]:
    """(batch, query heads, key heads, query length, new key length, key size, value size)."""
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    if len(q) == 4:
        return q[0], q[1], k[1], q[2], k[2], q[3], v[3]
    if len(q) != 3:
        raise ShapeError(f"Q must have 3 or 4 axes, but its shape is {q}")
    n, m = call["q_num_heads"], call["kv_num_heads"]
    if not n or not m:
        raise AttributeValueError("inputs of 3 axes need q_num_heads and kv_num_heads")
    return q[0], n, m, q[1], k[1], extents.floordiv(q[2], n), extents.floordiv(v[2], m)


def _attention(call: Call) -> list[TensorType]:
    dtype = call.dtype()
    batch, heads, kv_heads, length, fresh, size, value_size = _heads(call)
    total = extents.add(call.shape(4)[2], fresh) if call.has(4) else fresh
    result: tuple[Any, ...] = (batch, heads, length, value_size)
    if call.rank() == 3:
        result = (batch, length, extents.mul(heads, value_size))
    return [
        (dtype, result),
        (dtype, (batch, kv_heads, total, size)),
        (dtype, (batch, kv_heads, total, value_size)),
        (dtype, (batch, heads, length, total)),
    ]


def _fused(call: Call) -> list[TensorType]:
    dtype = call.agree()
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    if min(len(q), len(k), len(v)) < 2:
        raise ShapeError(f"q, k and v need at least 2 axes, but their shapes are {q}, {k} and {v}")
    extents.unify(q[-1], k[-1], f"the features of q {q} and k {k}")
    extents.unify(k[-2], v[-2], f"the keys of k {k} and v {v}")
    batch = extents.broadcast_shapes(q[:-2], k[:-2], v[:-2])
    return [(dtype, (*batch, q[-2], v[-1]))]


def _emit_fused(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """The kernel, or elementary operators for other types and for masks that widen the scores."""
    q, k, v, mask = (*inputs, None)[:4]
    size = call.shape()[-1]
    scale = (size or 1) ** -0.5 if call["scale"] is None else call["scale"]
    types = [emit.type(value) for value in inputs if value is not None]
    plain = all(dtype == "float32" and len(shape) > 1 for dtype, shape in types[:3])
    if plain and mask is not None:
        batch = extents.broadcast_shapes(*(shape[:-2] for _, shape in types[:3]))
        scores = (*batch, call.shape(0)[-2], call.shape(1)[-2])
        dtype, shape = types[3]
        plain = dtype == "float32" and extents.broadcast_shapes(scores, shape) == scores
    if plain:
        return emit.kernel("FusedAttention", *inputs, scale=scale, causal=call["causal"])
    dtype, shape = types[1]
    turned = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    queries = emit.emit("Mul", q, emit.constant(scale, dtype))
    scores = emit.emit("MatMul", queries, emit.emit("Transpose", k, perm=turned))
    if mask is not None:
        scores = emit.emit("Add", scores, mask)
    if call["causal"]:
        length, total = emit.type(scores)[1][-2:]
        require_writable("a mask of queries and keys", length, total)
        hidden = [[MINUS_INFINITY if j > i else 0.0 for j in range(total)] for i in range(length)]
        scores = emit.emit("Add", scores, emit.constant(hidden, dtype))
    return emit.emit("MatMul", emit.emit("Softmax", scores, axis=-1), v)


def _bias(
    emit: Emitter, call: Call, dtype: str, mask: Any, lengths: Any, sizes: tuple[int, ...]
) -> Any:
    """What is added to the scores: 0 where a query may look, -inf where not; ``None`` for nothing."""
    length, total, past = sizes
    zero, closed = emit.constant(0.0, dtype), emit.constant(MINUS_INFINITY, dtype)
    bias = None
    if mask is not None:
        kind, shape = emit.type(mask)
        if shape[-1] < total:
            rest = (0,) * (len(shape) - 1)
            value = 0 if kind == "bool" else MINUS_INFINITY
            mask = emit.emit(
                "Pad",
                mask,
                pads=(0,) * len(shape) + (*rest, total - shape[-1]),
                constant_value=value,
            )
        bias = emit.emit("Where", mask, zero, closed) if kind == "bool" else mask
    left, right = call["left_window_size"], call["right_window_size"]
    left = -1 if left is None else left
    right = -1 if right is None else right
    if call["is_causal"]:
        right = 0
    if left >= 0 or right >= 0:
        rows = emit.constant([[i + past] for i in range(length)], "int64")
        columns = emit.constant([list(range(total))], "int64")
        if lengths is not None:
            shift = emit.emit("Sub", lengths, emit.constant(length, "int64"))
            shift = emit.emit("Reshape", shift, shape=(-1, 1, 1, 1))
            rows = emit.emit("Add", rows, shift)
        ahead = emit.emit("Sub", columns, rows)
        allowed = None
        if right >= 0:
            allowed = emit.emit("LessOrEqual", ahead, emit.constant(right, "int64"))
        if left >= 0:
            near = emit.emit("GreaterOrEqual", ahead, emit.constant(-left, "int64"))
            allowed = near if allowed is None else emit.emit("And", allowed, near)
        window = emit.emit("Where", allowed, zero, closed)
        bias = window if bias is None else emit.emit("Add", bias, window)
    if lengths is not None:
        columns = emit.constant(list(range(total)), "int64")
        valid = emit.emit("Less", columns, emit.emit("Reshape", lengths, shape=(-1, 1, 1, 1)))
        padding = emit.emit("Where", valid, zero, closed)
        bias = padding if bias is None else emit.emit("Add", bias, padding)
    return bias


def _repeated(emit: Emitter, x: Any, times: int) -> Any:
    """Each key head for ``times`` query heads."""
    if times == 1:
        return x
    _, (batch, heads, length, size) = emit.type(x)
    x = emit.emit("Unsqueeze", x, axes=(2,))
    x = emit.emit("Expand", x, shape=(batch, heads, times, length, size))
    return emit.emit("Reshape", x, shape=(batch, heads * times, length, size), allowzero=1)


def _emit_attention(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    q, k, v, mask, past_key, past_value, lengths = (*inputs, *[None] * 7)[:7]
    dtype = call.dtype()
    narrow = dtype in ("float16", "bfloat16")
    # A narrow type is rounded once, at the end: its softmax weights alone would lose half the digits.
    inner = "float32" if narrow else dtype
    batch, heads, kv_heads, length, fresh, size, value_size = _heads(call)
    if call.rank() == 3:
        forms = ((heads, length, size), (kv_heads, fresh, size), (kv_heads, fresh, value_size))
        parts = []
        for part, (count, steps, width) in zip((q, k, v), forms, strict=True):
            split = emit.emit("Reshape", part, shape=(batch, steps, count, width), allowzero=1)
            parts.append(emit.emit("Transpose", split, perm=(0, 2, 1, 3)))
        q, k, v = parts
    past = 0
    if past_key is not None:
        past = emit.type(past_key)[1][2]
        k = emit.emit("Concat", past_key, k, axis=2)
        v = emit.emit("Concat", past_value, v, axis=2)
    present = (k, v)
    scale = call["scale"] or 0.0
    scale = scale or 1.0 / size**0.5
    root = emit.constant(scale**0.5, inner)
    k, v = _repeated(emit, k, heads // kv_heads), _repeated(emit, v, heads // kv_heads)
    if narrow:
        q, k, v = (emit.emit("Cast", part, to=inner) for part in (q, k, v))
        if mask is not None and emit.type(mask)[0] == dtype:
            mask = emit.emit("Cast", mask, to=inner)
    plain = emit.outputs < 4 and not call["softcap"] and call["softmax_precision"] in (None, inner)
    if emit.fast and inner == "float32" and plain:
        bias = _bias(emit, call, inner, mask, lengths, (length, past + fresh, past))
        result = emit.kernel("FusedAttention", q, k, v, bias, scale=scale, causal=0)
        result = result if bias is None else _where_open(emit, bias, result)
        return _joined(emit, call, result, dtype), *present
    turned = emit.emit("Transpose", emit.emit("Mul", k, root), perm=(0, 1, 3, 2))
    scores = emit.emit("MatMul", emit.emit("Mul", q, root), turned)
    shown = scores
    if call["softcap"]:
        cap = emit.constant(call["softcap"], inner)
        scores = emit.emit("Mul", emit.emit("Tanh", emit.emit("Div", scores, cap)), cap)
    mode = call["qk_matmul_output_mode"]
    shown = scores if mode in (0, 1) and call["softcap"] else shown
    bias = _bias(emit, call, inner, mask, lengths, (length, past + fresh, past))
    if bias is not None:
        scores = emit.emit("Add", scores, bias)
    shown = scores if mode == 2 else shown
    precision = call["softmax_precision"]
    wide = precision if precision not in (None, dtype, inner) else None
    if wide:
        scores = emit.emit("Cast", scores, to=wide)
    weights = emit.emit("Softmax", scores, axis=-1)
    if wide:
        weights = emit.emit("Cast", weights, to=inner)
    weights = weights if bias is None else _where_open(emit, bias, weights)
    shown = weights if mode == 3 else shown
    result = emit.emit("MatMul", weights, v)
    shown = emit.emit("Cast", shown, to=dtype) if narrow else shown
    return _joined(emit, call, result, dtype), *present, shown


def _where_open(emit: Emitter, bias: Any, value: Any) -> Any:
    """Zeros and not NaN for a query that may look nowhere."""
    dtype, _ = emit.type(value)
    best = emit.emit("ReduceMax", bias, axes=(-1,), keepdims=1)
    none = emit.emit("Equal", best, emit.constant(MINUS_INFINITY, dtype))
    return emit.emit("Where", none, emit.constant(0.0, dtype), value)


def _joined(emit: Emitter, call: Call, result: Any, dtype: str) -> Any:
    """The heads side by side again where the inputs had them so, in the inputs' type."""
    if emit.type(result)[0] != dtype:
        result = emit.emit("Cast", result, to=dtype)
    if call.rank() != 3:
        return result
    batch, heads, length, size = emit.type(result)[1]
    result = emit.emit("Transpose", result, perm=(0, 2, 1, 3))
    return emit.emit("Reshape", result, shape=(batch, length, heads * size), allowzero=1)


def _emit_rotary(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, cos, sin, positions = (*inputs, None)[:4]
    shape = call.shape()
    if len(shape) == 4:
        x = emit.emit("Transpose", x, perm=(0, 2, 1, 3))
    else:
        count = call["num_heads"]
        if not count:
            raise AttributeValueError("an input of 3 axes needs num_heads")
        split = (shape[0], shape[1], count, shape[2] // count)
        x = emit.emit("Reshape", x, shape=split, allowzero=1)
    size = emit.type(x)[1][3]
    turned = call["rotary_embedding_dim"] or size
    rest = None
    if turned < size:
        x, rest = emit.emit("Split", x, axis=3, split=(turned, size - turned))
    if positions is not None:
        cos = emit.emit("Gather", cos, positions, axis=0)
        sin = emit.emit("Gather", sin, positions, axis=0)
    cos = emit.emit("Unsqueeze", cos, axes=(2,))
    sin = emit.emit("Unsqueeze", sin, axes=(2,))
    if call["interleaved"]:
        pick = {"axes": (3,), "ends": (turned,), "steps": (2,)}
        first = emit.emit("Slice", x, starts=(0,), **pick)
        second = emit.emit("Slice", x, starts=(1,), **pick)
    else:
        first, second = emit.emit("Split", x, axis=3, split=(turned // 2, turned // 2))
    real_part = emit.emit("Sub", emit.emit("Mul", cos, first), emit.emit("Mul", sin, second))
    other = emit.emit("Add", emit.emit("Mul", sin, first), emit.emit("Mul", cos, second))
    if call["interleaved"]:
        pair = [emit.emit("Unsqueeze", part, axes=(4,)) for part in (real_part, other)]
        joined = emit.emit("Concat", *pair, axis=4)
        joined = emit.emit("Reshape", joined, shape=(*emit.type(x)[1][:3], turned), allowzero=1)
    else:
        joined = emit.emit("Concat", real_part, other, axis=3)
    if rest is not None:
        joined = emit.emit("Concat", joined, rest, axis=3)
    if len(shape) == 4:
        return emit.emit("Transpose", joined, perm=(0, 2, 1, 3))
    return emit.emit("Reshape", joined, shape=tuple(shape), allowzero=1)


def _emit_tensor_scatter(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """Where an update's step lands, as an index for each element, along the cache's axis."""
    past, update, start = (*inputs, None)[:3]
    axis = normalise_axis(call["axis"], call.rank())
    shape = call.shape(1)
    steps = emit.constant(list(range(shape[axis])), "int64")
    steps = emit.emit(
        "Reshape", steps, shape=tuple(-1 if a == axis else 1 for a in range(len(shape)))
    )
    if start is not None:
        start = emit.emit("Reshape", start, shape=(-1,) + (1,) * (len(shape) - 1))
        steps = emit.emit("Add", steps, start)
    if call["mode"] == "circular":
        steps = emit.emit("Mod", steps, emit.constant(call.shape()[axis], "int64"))
    index = emit.emit("Expand", steps, shape=tuple(shape))
    return emit.emit("ScatterElements", past, index, update, axis=axis)


SPECS = [
    operator(
        "Attention",
        "Q K V attn_mask? past_key? past_value? nonpad_kv_seqlen?",
        "Y present_key? present_value? qk_matmul_output?",
        _attention,
        {
            "right_window_size": integer(-1),
            "left_window_size": integer(-1),
            "qk_matmul_output_mode": integer(0),
            "softcap": real(0.0),
            "softmax_precision": dtype_name(),
            "kv_num_heads": integer(),
            "q_num_heads": integer(),
            "scale": real(),
            "is_causal": integer(0),
        },
        since_version=25,
        decompose=_emit_attention,
        determinism=CHAIN + " " + ROWS,
        doc="softmax(scale Q Kᵀ + mask) V; a query that may look nowhere gets zeros.",
    ),
    operator(
        "FusedAttention",
        "q k v mask?",
        "y",
        _fused,
        {"scale": real(), "causal": integer(0)},
        domain=OWN,
        decompose=_emit_fused,
        exact=False,
        determinism="One order on every machine and for every number of threads, in tiles of keys "
        "with a running maximum: not that of MatMul, Softmax and MatMul.",
        doc="softmax(scale q kᵀ + mask) v, without the scores in memory; float32.",
    ),
    operator(
        "RotaryEmbedding",
        "X cos_cache sin_cache position_ids?",
        "Y",
        same,
        {
            "num_heads": integer(),
            "rotary_embedding_dim": integer(0),
            "interleaved": integer(0),
        },
        since_version=23,
        decompose=_emit_rotary,
        determinism="Each step correctly rounded; exact.",
        doc="Pairs of features turned by an angle that belongs to the position.",
    ),
    operator(
        "TensorScatter",
        "past_cache update write_indices?",
        "present_cache",
        same,
        {"mode": text("linear"), "axis": integer(-2)},
        since_version=24,
        decompose=_emit_tensor_scatter,
        doc="A cache with an update written at each row's own place.",
    ),
]
