"""Eager tensors and automatic differentiation over the OneModel kernels.

import onemodel_tensors as om

x = om.randn(2, 3, requires_grad=True)
(x.exp().sum() * 2).backward()
x.grad
"""

import onemodel_tensors._interfaces  # noqa: F401  isort: skip
import math
from typing import Any

from onemodel_kernels import get_num_threads, set_num_threads
from onemodel_kernels.errors import (
    AttributeValueError,
    BoundsError,
    DtypeError,
    OneModelError,
    ShapeError,
    UnsupportedError,
)
from onemodel_tensors import autograd, functional
from onemodel_tensors.autograd.gradcheck import gradcheck
from onemodel_tensors.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from onemodel_tensors.dtypes import (
    bfloat16,
    bool_,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from onemodel_tensors.interop import as_tensor, asarray, from_dlpack, from_numpy, tensor
from onemodel_tensors.left_out import missing
from onemodel_tensors.operator_methods import bind
from onemodel_tensors.ops.activations import celu, hardshrink, prelu, relu, selu
from onemodel_tensors.ops.arithmetic import (
    add,
    addcdiv,
    addcmul,
    div,
    lerp,
    mul,
    neg,
    positive,
    rsub,
    sub,
)
from onemodel_tensors.ops.bivariate import atan2, hypot, logaddexp
from onemodel_tensors.ops.casts import clone, detach, require_cpu
from onemodel_tensors.ops.comparison import allclose, eq, equal, ge, gt, isclose, le, lt, ne
from onemodel_tensors.ops.cumulative import cumprod, cumsum
from onemodel_tensors.ops.division import floor_divide, fmod, remainder
from onemodel_tensors.ops.einsum import einsum
from onemodel_tensors.ops.expanding import (
    broadcast_shapes,
    broadcast_tensors,
    broadcast_to,
    expand,
    repeat,
    repeat_interleave,
    tile,
)
from onemodel_tensors.ops.factories import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    logspace,
    meshgrid,
    ones,
    ones_like,
    scalar_tensor,
    zeros,
    zeros_like,
)
from onemodel_tensors.ops.gathering import gather, index_select, take, take_along_dim
from onemodel_tensors.ops.indexing import index_put
from onemodel_tensors.ops.joining import cat, column_stack, concat, dstack, hstack, stack, vstack
from onemodel_tensors.ops.logical import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    isfinite,
    isinf,
    isnan,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
)
from onemodel_tensors.ops.masks import argwhere, bincount, masked_select, nonzero, unique
from onemodel_tensors.ops.mathematics import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    floor,
    frac,
    log,
    log1p,
    log2,
    log10,
    reciprocal,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from onemodel_tensors.ops.permuting import movedim, permute, t, transpose
from onemodel_tensors.ops.powers import float_power, pow
from onemodel_tensors.ops.products import (
    addmm,
    baddbmm,
    bmm,
    dot,
    inner,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    vdot,
)
from onemodel_tensors.ops.promotion import result_type
from onemodel_tensors.ops.reductions import (
    all,
    amax,
    amin,
    aminmax,
    any,
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    max,
    mean,
    min,
    nanmean,
    nansum,
    prod,
    sum,
)
from onemodel_tensors.ops.reshaping import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    flatten,
    ravel,
    reshape,
    squeeze,
    unflatten,
    unsqueeze,
)
from onemodel_tensors.ops.rolling import flip, fliplr, flipud, roll, rot90
from onemodel_tensors.ops.scattering import (
    index_add,
    index_copy,
    index_fill,
    scatter,
    scatter_add,
    scatter_reduce,
)
from onemodel_tensors.ops.second_names import (
    absolute,
    arccos,
    arcsin,
    arctan,
    arctan2,
    divide,
    fix,
    is_floating_point,
    is_tensor,
    moveaxis,
    multiply,
    negative,
    numel,
    sgn,
    subtract,
    swapaxes,
    swapdims,
    true_divide,
)
from onemodel_tensors.ops.selection import (
    clamp,
    clamp_max,
    clamp_min,
    clip,
    fmax,
    fmin,
    masked_fill,
    maximum,
    minimum,
    nan_to_num,
    where,
)
from onemodel_tensors.ops.slicing import diagonal, narrow, select
from onemodel_tensors.ops.softmax import log_softmax, softmax
from onemodel_tensors.ops.sorting import argsort, median, msort, sort, topk
from onemodel_tensors.ops.splitting import chunk, split, tensor_split, unbind
from onemodel_tensors.ops.statistics import (
    cdist,
    cosine_similarity,
    norm,
    std,
    std_mean,
    var,
    var_mean,
    vector_norm,
)
from onemodel_tensors.ops.triangles import (
    diag,
    diag_embed,
    trace,
    tril,
    tril_indices,
    triu,
    triu_indices,
)
from onemodel_tensors.random import (
    Generator,
    bernoulli,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from onemodel_tensors.tensor import Tensor

bind(Tensor)

inf = math.inf
nan = math.nan
pi = math.pi
e = math.e
newaxis = None
Size: type[tuple[Any, ...]] = tuple
"""Shapes are plain tuples."""


def device(name: Any = "cpu") -> str:
    """The name of a device, which is always ``"cpu"``.

    Raises:
        AttributeValueError: another device is asked for.
    """
    require_cpu(name, "device")
    return "cpu"


def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> None:
    """Nothing: every operator is deterministic always."""


__all__ = [
    "AttributeValueError", "BoundsError", "DtypeError", "Generator", "OneModelError", "ShapeError",
    "Size", "Tensor", "UnsupportedError", "abs", "absolute", "acos", "acosh", "add", "addcdiv",
    "addcmul", "addmm", "all", "allclose", "amax", "amin", "aminmax", "any", "arange", "arccos",
    "arcsin", "arctan", "arctan2", "argmax", "argmin", "argsort", "argwhere", "as_tensor",
    "asarray", "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "autograd", "baddbmm", "bernoulli", "bfloat16", "bincount", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "bool_",
    "broadcast_shapes", "broadcast_tensors", "broadcast_to", "cat", "cdist", "ceil", "celu",
    "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "column_stack", "concat", "cos",
    "cosh", "cosine_similarity", "count_nonzero", "cumprod", "cumsum", "default_generator",
    "detach", "device", "diag", "diag_embed", "diagonal", "div", "divide", "dot", "dstack", "e",
    "einsum", "empty", "empty_like", "enable_grad", "eq", "equal", "erf", "exp", "expand", "expm1",
    "eye", "finfo", "fix", "flatten", "flip", "fliplr", "flipud", "float16", "float32", "float64",
    "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "from_dlpack",
    "from_numpy", "full", "full_like", "functional", "gather", "ge", "get_default_dtype",
    "get_num_threads", "get_rng_state", "gradcheck", "gt", "hardshrink", "hstack", "hypot", "iinfo",
    "index_add", "index_copy", "index_fill", "index_put", "index_select", "inf", "inference_mode",
    "initial_seed", "inner", "int8", "int16", "int32", "int64", "is_floating_point",
    "is_grad_enabled", "is_tensor", "isclose", "isfinite", "isinf", "isnan", "le", "lerp",
    "linspace", "log", "log1p", "log2", "log10", "log_softmax", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logspace", "logsumexp", "lt", "manual_seed",
    "masked_fill", "masked_select", "matmul", "max", "maximum", "mean", "median", "meshgrid", "min",
    "minimum", "mm", "moveaxis", "movedim", "msort", "mul", "multinomial", "multiply", "mv", "nan",
    "nan_to_num", "nanmean", "nansum", "narrow", "ne", "neg", "negative", "newaxis", "no_grad",
    "nonzero", "norm", "normal", "numel", "ones", "ones_like", "outer", "permute", "pi", "positive",
    "pow", "prelu", "prod", "promote_types", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "randperm", "ravel", "reciprocal", "relu", "remainder", "repeat",
    "repeat_interleave", "reshape", "result_type", "roll", "rot90", "round", "rsqrt", "rsub",
    "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "seed", "select", "selu",
    "set_default_dtype", "set_grad_enabled", "set_num_threads", "set_rng_state", "sgn", "sigmoid",
    "sign", "sin", "sinh", "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "std",
    "std_mean", "sub", "subtract", "sum", "swapaxes", "swapdims", "t", "take", "take_along_dim",
    "tan", "tanh", "tensor", "tensor_split", "tensordot", "tile", "topk", "trace", "transpose",
    "tril", "tril_indices", "triu", "triu_indices", "true_divide", "trunc", "uint8", "uint16",
    "uint32", "uint64", "unbind", "unflatten", "unique", "unsqueeze",
    "use_deterministic_algorithms", "var", "var_mean", "vdot", "vector_norm", "vstack", "where",
    "zeros", "zeros_like",
]  # fmt: skip

# PyTorch's other names of dtypes, as om.float; a star import leaves Python's own names alone.
float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
bool = bool_


def __getattr__(name: str) -> Any:
    raise missing(name, "onemodel_tensors")
