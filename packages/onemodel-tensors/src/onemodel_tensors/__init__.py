"""Eager tensors and automatic differentiation over the OneModel kernels.

    import onemodel_tensors as om

    x = om.randn(2, 3, requires_grad=True)
    (x.exp().sum() * 2).backward()
    x.grad
"""

import onemodel_tensors._interfaces  # noqa: F401  isort: skip
from onemodel_tensors import autograd, functional
from onemodel_tensors.autograd.gradcheck import gradcheck
from onemodel_tensors.autograd.mode import (
    enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled,
)
from onemodel_tensors.dtypes import (
    bfloat16, bool_, float16, float32, float64, get_default_dtype, int16, int32, int64, int8,
    promote_types, set_default_dtype, uint16, uint32, uint64, uint8,
)
from onemodel_tensors.interop import as_tensor, asarray, from_dlpack, from_numpy, tensor
from onemodel_tensors.ops.activations import relu
from onemodel_tensors.ops.arithmetic import add, addcdiv, addcmul, div, lerp, mul, neg, rsub, sub
from onemodel_tensors.ops.casts import clone
from onemodel_tensors.ops.comparison import allclose, eq, equal, ge, gt, isclose, le, lt, ne
from onemodel_tensors.ops.cumulative import cumsum
from onemodel_tensors.ops.division import floor_divide, fmod, remainder
from onemodel_tensors.ops.einsum import einsum
from onemodel_tensors.ops.expanding import (
    broadcast_shapes, broadcast_tensors, broadcast_to, expand, repeat, repeat_interleave, tile,
)
from onemodel_tensors.ops.factories import (
    arange, empty, empty_like, eye, full, full_like, linspace, logspace, meshgrid, ones,
    ones_like, scalar_tensor, zeros, zeros_like,
)
from onemodel_tensors.ops.gathering import gather, index_select, take, take_along_dim
from onemodel_tensors.ops.joining import cat, concat, dstack, hstack, stack, vstack
from onemodel_tensors.ops.logical import (
    bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor,
    isfinite, isinf, isnan, logical_and, logical_not, logical_or, logical_xor,
)
from onemodel_tensors.ops.masks import argwhere, bincount, masked_select, nonzero, unique
from onemodel_tensors.ops.mathematics import (
    abs, acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, erf, exp, expm1, floor, frac,
    log, log10, log1p, log2, reciprocal, round, rsqrt, sigmoid, sign, sin, sinh, sqrt, square,
    tan, tanh, trunc,
)
from onemodel_tensors.ops.permuting import movedim, permute, t, transpose
from onemodel_tensors.ops.powers import float_power, pow
from onemodel_tensors.ops.products import (
    addmm, baddbmm, bmm, dot, inner, matmul, mm, mv, outer, tensordot,
)
from onemodel_tensors.ops.promotion import result_type
from onemodel_tensors.ops.reductions import (
    all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, logsumexp, max, mean, min,
    nanmean, nansum, prod, sum,
)
from onemodel_tensors.ops.reshaping import (
    atleast_1d, atleast_2d, flatten, ravel, reshape, squeeze, unflatten, unsqueeze,
)
from onemodel_tensors.ops.rolling import flip, fliplr, flipud, roll, rot90
from onemodel_tensors.ops.scattering import (
    index_add, index_copy, index_fill, scatter, scatter_add, scatter_reduce,
)
from onemodel_tensors.ops.selection import (
    clamp, clamp_max, clamp_min, clip, fmax, fmin, masked_fill, maximum, minimum, where,
)
from onemodel_tensors.ops.slicing import diagonal, narrow, select
from onemodel_tensors.ops.softmax import log_softmax, softmax
from onemodel_tensors.ops.sorting import argsort, sort, topk
from onemodel_tensors.ops.splitting import chunk, split, tensor_split, unbind
from onemodel_tensors.ops.statistics import cdist, norm, std, std_mean, var, var_mean, vector_norm
from onemodel_tensors.ops.triangles import diag, diag_embed, trace, tril, triu
from onemodel_tensors.random import (
    Generator, bernoulli, default_generator, get_rng_state, initial_seed, manual_seed,
    multinomial, normal, rand, rand_like, randint, randn, randn_like, randperm, seed,
    set_rng_state,
)
from onemodel_tensors.tensor import Tensor

import onemodel_tensors.ops.in_place_methods  # noqa: F401  isort: skip

__all__ = [
    "Generator", "Tensor", "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "addmm", "all",
    "allclose", "amax", "amin", "aminmax", "any", "arange", "argmax", "argmin", "argsort",
    "argwhere", "as_tensor", "asarray", "asin", "asinh", "atan", "atanh", "atleast_1d",
    "atleast_2d", "autograd", "baddbmm", "bernoulli", "bfloat16", "bincount", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "bmm", "bool_", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "cat", "cdist",
    "ceil", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "concat", "cos",
    "cosh", "count_nonzero", "cumsum", "default_generator", "diag", "diag_embed", "diagonal",
    "div", "dot", "dstack", "einsum", "empty", "empty_like", "enable_grad", "eq", "equal",
    "erf", "exp", "expand", "expm1", "eye", "flatten", "flip", "fliplr", "flipud", "float16",
    "float32", "float64", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod",
    "frac", "from_dlpack", "from_numpy", "full", "full_like", "functional", "gather", "ge",
    "get_default_dtype", "get_rng_state", "gradcheck", "gt", "hstack", "index_add",
    "index_copy", "index_fill", "index_select", "inference_mode", "initial_seed", "inner",
    "int16", "int32", "int64", "int8", "is_grad_enabled", "isclose", "isfinite", "isinf",
    "isnan", "le", "lerp", "linspace", "log", "log10", "log1p", "log2", "log_softmax",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "logsumexp", "lt",
    "manual_seed", "masked_fill", "masked_select", "matmul", "max", "maximum", "mean",
    "meshgrid", "min", "minimum", "mm", "movedim", "mul", "multinomial", "mv", "nanmean",
    "nansum", "narrow", "ne", "neg", "no_grad", "nonzero", "norm", "normal", "ones",
    "ones_like", "outer", "permute", "pow", "prod", "promote_types", "rand", "rand_like",
    "randint", "randn", "randn_like", "randperm", "ravel", "reciprocal", "relu", "remainder",
    "repeat", "repeat_interleave", "reshape", "result_type", "roll", "rot90", "round", "rsqrt",
    "rsub", "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "seed", "select",
    "set_default_dtype", "set_grad_enabled", "set_rng_state", "sigmoid", "sign", "sin", "sinh",
    "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "std_mean", "sub",
    "sum", "t", "take", "take_along_dim", "tan", "tanh", "tensor", "tensor_split", "tensordot",
    "tile", "topk", "trace", "transpose", "tril", "triu", "trunc", "uint16", "uint32", "uint64",
    "uint8", "unbind", "unflatten", "unique", "unsqueeze", "var", "var_mean", "vector_norm",
    "vstack", "where", "zeros", "zeros_like",
]
