"""Which operators are methods of :class:`~onemodel_tensors.Tensor` too, by the names that PyTorch users know."""

from __future__ import annotations

from onemodel_tensors import random
from onemodel_tensors.ops import (
    activations,
    arithmetic,
    bivariate,
    casts,
    comparison,
    cumulative,
    division,
    expanding,
    factories,
    gathering,
    in_place,
    indexing,
    logical,
    masks,
    mathematics,
    permuting,
    powers,
    products,
    reductions,
    reshaping,
    rolling,
    scattering,
    selection,
    slicing,
    softmax,
    sorting,
    splitting,
    statistics,
    triangles,
)
from onemodel_tensors.ops.in_place import in_place_form

__all__ = ["OperatorMethods"]


class OperatorMethods:  # noqa: PLW1641 (the class that gets these methods defines its hash)
    """The table: each line makes one function, whose first argument is the tensor, a method."""

    __slots__ = ()

    hardshrink = activations.hardshrink
    prelu = activations.prelu
    relu = activations._relu_method

    __add__ = arithmetic.add
    __mul__ = arithmetic.mul
    __neg__ = arithmetic.neg
    __pos__ = arithmetic.positive
    __radd__ = arithmetic.add
    __rmul__ = arithmetic.mul
    __rsub__ = arithmetic.rsub
    __rtruediv__ = arithmetic.rdiv
    __sub__ = arithmetic.sub
    __truediv__ = arithmetic.div
    add = arithmetic.add
    addcdiv = arithmetic.addcdiv
    addcmul = arithmetic.addcmul
    div = arithmetic.div
    divide = arithmetic.div
    lerp = arithmetic.lerp
    mul = arithmetic.mul
    multiply = arithmetic.mul
    neg = arithmetic.neg
    negative = arithmetic.neg
    positive = arithmetic.positive
    sub = arithmetic.sub
    subtract = arithmetic.sub
    true_divide = arithmetic.div

    arctan2 = bivariate.atan2
    atan2 = bivariate.atan2
    hypot = bivariate.hypot
    logaddexp = bivariate.logaddexp

    bfloat16 = casts.to_bfloat16
    bool = casts.to_bool
    byte = casts.to_uint8
    char = casts.to_int8
    clone = casts.clone
    contiguous = casts.contiguous
    cpu = casts.cpu
    detach = casts.detach
    double = casts.to_float64
    float = casts.to_float32
    half = casts.to_float16
    int = casts.to_int32
    long = casts.to_int64
    short = casts.to_int16
    to = casts.to
    type = casts.type
    type_as = casts.type_as

    __eq__ = comparison._eq
    __ge__ = comparison.ge
    __gt__ = comparison.gt
    __le__ = comparison.le
    __lt__ = comparison.lt
    __ne__ = comparison._ne
    allclose = comparison.allclose
    eq = comparison.eq
    equal = comparison.equal
    ge = comparison.ge
    greater = comparison.gt
    greater_equal = comparison.ge
    gt = comparison.gt
    isclose = comparison.isclose
    le = comparison.le
    less = comparison.lt
    less_equal = comparison.le
    lt = comparison.lt
    ne = comparison.ne

    cumprod = cumulative.cumprod
    cumsum = cumulative.cumsum

    __floordiv__ = division.floor_divide
    __mod__ = division.remainder
    __rfloordiv__ = division.rfloor_divide
    __rmod__ = division.rremainder
    floor_divide = division.floor_divide
    fmod = division.fmod
    remainder = division.remainder

    broadcast_to = expanding.broadcast_to
    sum_to_size = expanding.sum_to_size
    expand = expanding.expand
    expand_as = expanding.expand_as
    repeat = expanding.repeat
    repeat_interleave = expanding.repeat_interleave
    tile = expanding.tile

    new_empty = factories.new_empty
    new_full = factories.new_full
    new_ones = factories.new_ones
    new_tensor = factories.new_tensor
    new_zeros = factories.new_zeros

    gather = gathering.gather
    index_select = gathering.index_select
    take = gathering.take
    take_along_dim = gathering.take_along_dim

    copy_ = in_place.copy_
    detach_ = in_place.detach_
    fill_ = in_place.fill_
    zero_ = in_place.zero_

    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem
    index_put = indexing.index_put

    __and__ = logical.bitwise_and
    __invert__ = logical.bitwise_not
    __lshift__ = logical.bitwise_left_shift
    __or__ = logical.bitwise_or
    __rand__ = logical.bitwise_and
    __ror__ = logical.bitwise_or
    __rshift__ = logical.bitwise_right_shift
    __rxor__ = logical.bitwise_xor
    __xor__ = logical.bitwise_xor
    bitwise_and = logical.bitwise_and
    bitwise_left_shift = logical.bitwise_left_shift
    bitwise_not = logical.bitwise_not
    bitwise_or = logical.bitwise_or
    bitwise_right_shift = logical.bitwise_right_shift
    bitwise_xor = logical.bitwise_xor
    isfinite = logical.isfinite
    isinf = logical.isinf
    isnan = logical.isnan
    logical_and = logical.logical_and
    logical_not = logical.logical_not
    logical_or = logical.logical_or
    logical_xor = logical.logical_xor

    argwhere = masks.argwhere
    bincount = masks.bincount
    masked_select = masks.masked_select
    nonzero = masks.nonzero
    unique = masks.unique

    __abs__ = mathematics.abs
    abs = mathematics.abs
    absolute = mathematics.abs
    acos = mathematics.acos
    acosh = mathematics.acosh
    arccos = mathematics.acos
    arccosh = mathematics.acosh
    arcsin = mathematics.asin
    arcsinh = mathematics.asinh
    arctan = mathematics.atan
    arctanh = mathematics.atanh
    asin = mathematics.asin
    asinh = mathematics.asinh
    atan = mathematics.atan
    atanh = mathematics.atanh
    ceil = mathematics.ceil
    cos = mathematics.cos
    cosh = mathematics.cosh
    erf = mathematics.erf
    exp = mathematics.exp
    expm1 = mathematics.expm1
    fix = mathematics.trunc
    floor = mathematics.floor
    frac = mathematics.frac
    log = mathematics.log
    log10 = mathematics.log10
    log1p = mathematics.log1p
    log2 = mathematics.log2
    reciprocal = mathematics.reciprocal
    round = mathematics.round
    rsqrt = mathematics.rsqrt
    sgn = mathematics.sign
    sigmoid = mathematics.sigmoid
    sign = mathematics.sign
    sin = mathematics.sin
    sinh = mathematics.sinh
    sqrt = mathematics.sqrt
    square = mathematics.square
    tan = mathematics.tan
    tanh = mathematics.tanh
    trunc = mathematics.trunc

    adjoint = permuting.adjoint
    moveaxis = permuting.movedim
    movedim = permuting.movedim
    permute = permuting._permute_method
    swapaxes = permuting.transpose
    swapdims = permuting.transpose
    t = permuting.t
    transpose = permuting.transpose

    __pow__ = powers.pow
    __rpow__ = powers.rpow
    float_power = powers.float_power
    pow = powers.pow

    __matmul__ = products.matmul
    __rmatmul__ = products._rmatmul
    addmm = products.addmm
    baddbmm = products.baddbmm
    bmm = products.bmm
    dot = products.dot
    ger = products.outer
    inner = products.inner
    matmul = products.matmul
    mm = products.mm
    mv = products.mv
    outer = products.outer
    vdot = products.dot

    all = reductions.all
    amax = reductions.amax
    amin = reductions.amin
    aminmax = reductions.aminmax
    any = reductions.any
    argmax = reductions.argmax
    argmin = reductions.argmin
    count_nonzero = reductions.count_nonzero
    logsumexp = reductions.logsumexp
    max = reductions.max
    mean = reductions.mean
    min = reductions.min
    nanmean = reductions.nanmean
    nansum = reductions.nansum
    prod = reductions.prod
    sum = reductions.sum

    flatten = reshaping.flatten
    ravel = reshaping.ravel
    reshape = reshaping._reshape_method
    reshape_as = reshaping.reshape_as
    squeeze = reshaping.squeeze
    unflatten = reshaping.unflatten
    unsqueeze = reshaping.unsqueeze
    view = reshaping.view
    view_as = reshaping.view_as

    flip = rolling.flip
    fliplr = rolling.fliplr
    flipud = rolling.flipud
    roll = rolling.roll
    rot90 = rolling.rot90

    index_add = scattering.index_add
    index_copy = scattering.index_copy
    index_fill = scattering.index_fill
    scatter = scattering.scatter
    scatter_add = scattering.scatter_add
    scatter_reduce = scattering.scatter_reduce

    clamp = selection.clamp
    clamp_max = selection.clamp_max
    clamp_min = selection.clamp_min
    clip = selection.clamp
    fmax = selection.fmax
    fmin = selection.fmin
    masked_fill = selection.masked_fill
    maximum = selection.maximum
    minimum = selection.minimum
    nan_to_num = selection.nan_to_num
    where = selection._where_method

    diagonal = slicing.diagonal
    narrow = slicing.narrow
    select = slicing.select
    unfold = slicing.unfold

    log_softmax = softmax.log_softmax
    softmax = softmax.softmax

    argsort = sorting.argsort
    median = sorting.median
    msort = sorting.msort
    sort = sorting.sort
    topk = sorting.topk

    chunk = splitting.chunk
    split = splitting.split
    split_with_sizes = splitting.split
    tensor_split = splitting.tensor_split
    unbind = splitting.unbind

    norm = statistics.norm
    std = statistics.std
    std_mean = statistics.std_mean
    var = statistics.var
    var_mean = statistics.var_mean

    diag = triangles.diag
    diag_embed = triangles.diag_embed
    fill_diagonal_ = triangles.fill_diagonal_
    trace = triangles.trace
    tril = triangles.tril
    triu = triangles.triu

    bernoulli_ = random.bernoulli_
    exponential_ = random.exponential_
    normal_ = random.normal_
    random_ = random.random_
    uniform_ = random.uniform_

    abs_ = in_place_form("abs_", mathematics.abs)
    acos_ = in_place_form("acos_", mathematics.acos)
    acosh_ = in_place_form("acosh_", mathematics.acosh)
    asin_ = in_place_form("asin_", mathematics.asin)
    asinh_ = in_place_form("asinh_", mathematics.asinh)
    atan_ = in_place_form("atan_", mathematics.atan)
    atanh_ = in_place_form("atanh_", mathematics.atanh)
    ceil_ = in_place_form("ceil_", mathematics.ceil)
    cos_ = in_place_form("cos_", mathematics.cos)
    cosh_ = in_place_form("cosh_", mathematics.cosh)
    erf_ = in_place_form("erf_", mathematics.erf)
    exp_ = in_place_form("exp_", mathematics.exp)
    expm1_ = in_place_form("expm1_", mathematics.expm1)
    floor_ = in_place_form("floor_", mathematics.floor)
    frac_ = in_place_form("frac_", mathematics.frac)
    log_ = in_place_form("log_", mathematics.log)
    log10_ = in_place_form("log10_", mathematics.log10)
    log1p_ = in_place_form("log1p_", mathematics.log1p)
    log2_ = in_place_form("log2_", mathematics.log2)
    reciprocal_ = in_place_form("reciprocal_", mathematics.reciprocal)
    round_ = in_place_form("round_", mathematics.round)
    rsqrt_ = in_place_form("rsqrt_", mathematics.rsqrt)
    sigmoid_ = in_place_form("sigmoid_", mathematics.sigmoid)
    sign_ = in_place_form("sign_", mathematics.sign)
    sin_ = in_place_form("sin_", mathematics.sin)
    sinh_ = in_place_form("sinh_", mathematics.sinh)
    sqrt_ = in_place_form("sqrt_", mathematics.sqrt)
    square_ = in_place_form("square_", mathematics.square)
    tan_ = in_place_form("tan_", mathematics.tan)
    tanh_ = in_place_form("tanh_", mathematics.tanh)
    trunc_ = in_place_form("trunc_", mathematics.trunc)
    add_ = in_place_form("add_", arithmetic.add)
    sub_ = in_place_form("sub_", arithmetic.sub)
    mul_ = in_place_form("mul_", arithmetic.mul)
    div_ = in_place_form("div_", arithmetic.div)
    neg_ = in_place_form("neg_", arithmetic.neg)
    addcmul_ = in_place_form("addcmul_", arithmetic.addcmul)
    addcdiv_ = in_place_form("addcdiv_", arithmetic.addcdiv)
    lerp_ = in_place_form("lerp_", arithmetic.lerp)
    pow_ = in_place_form("pow_", powers.pow)
    fmod_ = in_place_form("fmod_", division.fmod)
    remainder_ = in_place_form("remainder_", division.remainder)
    floor_divide_ = in_place_form("floor_divide_", division.floor_divide)
    clamp_ = in_place_form("clamp_", selection.clamp)
    clip_ = in_place_form("clip_", selection.clamp)
    clamp_min_ = in_place_form("clamp_min_", selection.clamp_min)
    clamp_max_ = in_place_form("clamp_max_", selection.clamp_max)
    masked_fill_ = in_place_form("masked_fill_", selection.masked_fill)
    nan_to_num_ = in_place_form("nan_to_num_", selection.nan_to_num)
    relu_ = in_place_form("relu_", activations.relu)
    logical_not_ = in_place_form("logical_not_", logical.logical_not)
    bitwise_and_ = in_place_form("bitwise_and_", logical.bitwise_and)
    bitwise_or_ = in_place_form("bitwise_or_", logical.bitwise_or)
    bitwise_xor_ = in_place_form("bitwise_xor_", logical.bitwise_xor)
    cumsum_ = in_place_form("cumsum_", cumulative.cumsum)
    tril_ = in_place_form("tril_", triangles.tril)
    triu_ = in_place_form("triu_", triangles.triu)
    scatter_ = in_place_form("scatter_", scattering.scatter)
    scatter_add_ = in_place_form("scatter_add_", scattering.scatter_add)
    index_add_ = in_place_form("index_add_", scattering.index_add)
    index_fill_ = in_place_form("index_fill_", scattering.index_fill)
    index_copy_ = in_place_form("index_copy_", scattering.index_copy)
    index_put_ = in_place_form("index_put_", indexing.index_put)
    scatter_reduce_ = in_place_form("scatter_reduce_", scattering.scatter_reduce)
    logical_and_ = in_place_form("logical_and_", logical.logical_and)
    logical_or_ = in_place_form("logical_or_", logical.logical_or)
    logical_xor_ = in_place_form("logical_xor_", logical.logical_xor)
    atan2_ = in_place_form("atan2_", bivariate.atan2)
    cumprod_ = in_place_form("cumprod_", cumulative.cumprod)

    absolute_ = abs_
    divide_ = div_
    fix_ = trunc_
    multiply_ = mul_
    negative_ = neg_
    subtract_ = sub_
    true_divide_ = div_

    __iadd__ = add_
    __isub__ = sub_
    __imul__ = mul_
    __itruediv__ = div_
    __ifloordiv__ = floor_divide_
    __imod__ = remainder_
    __ipow__ = pow_
    __iand__ = bitwise_and_
    __ior__ = bitwise_or_
    __ixor__ = bitwise_xor_


def bind(tensor_class: type) -> None:
    """Give a class the methods of the table."""
    for name, function in vars(OperatorMethods).items():
        if callable(function):
            setattr(tensor_class, name, function)
