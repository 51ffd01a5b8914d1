"""Every operator by name, place, keyword, dtype, promotion, and on 0-d and empty tensors."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F


@dataclass(frozen=True)
class Row:
    """Operators of one signature.

    Args:
        names: as PyTorch has them.
        places: o for the package, f for ``functional``, m for a method.
        keywords: arguments after the tensors, with ``=value`` where the default is fixed.
    """

    names: str
    places: str
    keywords: str = ""


ROWS = [
    Row("neg abs sign floor ceil trunc sqrt rsqrt reciprocal square exp log log2 log10", "om"),
    Row("expm1 log1p sin cos tan asin acos atan sinh cosh asinh acosh atanh tanh erf", "om"),
    Row("round", "om", "decimals=0"),
    Row("sigmoid tanh", "omf"),
    Row("relu", "omf"),
    Row("relu6", "f"),
    Row("hardtanh", "f", "min_val=-1.0 max_val=1.0 inplace=False"),
    Row("leaky_relu", "f", "negative_slope=0.01 inplace=False"),
    Row("elu celu", "f", "alpha=1.0 inplace=False"),
    Row("selu silu mish hardsigmoid hardswish", "f", "inplace=False"),
    Row("gelu", "f", "approximate=none"),
    Row("softplus", "f", "beta=1 threshold=20"),
    Row("softsign tanhshrink logsigmoid", "f"),
    Row("hardshrink softshrink", "f", "lambd=0.5"),
    Row("threshold", "f", "threshold value inplace=False"),
    Row("prelu", "f", "weight"),
    Row("glu", "f", "dim=-1"),
    Row("isnan isinf isfinite logical_not bitwise_not", "om"),
    Row("clamp clip", "om", "min=None max=None"),
    Row("to", "m", "dtype"),
    Row("type", "m", "dtype"),
    Row("float double half bfloat16 long int short char byte bool", "m"),
    Row("type_as", "m", "other"),
    Row("clone detach", "om"),
    Row("contiguous", "m"),
    Row("dropout dropout1d dropout2d dropout3d", "f", "p=0.5 training=True inplace=False"),
    Row("alpha_dropout", "f", "p=0.5 training=False inplace=False"),
    Row("drop_path", "f", "p=0.0 training=False"),
    Row("add sub", "om", "other alpha=1"),
    Row("mul multiply true_divide", "om", "other"),
    Row("div", "om", "other rounding_mode=None"),
    Row("floor_divide remainder fmod", "om", "other"),
    Row("pow", "om", "exponent"),
    Row("maximum minimum atan2 eq ne lt le gt ge", "om", "other"),
    Row("logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor", "om", "other"),
    Row("where", "o", "condition input=None other=None"),
    Row("masked_fill", "om", "mask value"),
    Row("lerp", "om", "end weight"),
    Row("addcmul addcdiv", "om", "tensor1 tensor2 value=1"),
    Row("logaddexp hypot", "om", "other"),
    Row("isclose allclose", "om", "other rtol=1e-05 atol=1e-08 equal_nan=False"),
    Row("equal", "om", "other"),
    Row("matmul inner", "om", "other"),
    Row("dot vdot", "om", "tensor"),
    Row("mm bmm", "om", "mat2"),
    Row("mv", "om", "vec"),
    Row("outer", "om", "vec2"),
    Row("addmm", "om", "mat1 mat2 beta=1 alpha=1"),
    Row("baddbmm", "om", "batch1 batch2 beta=1 alpha=1"),
    Row("linear", "f", "weight bias=None"),
    Row("einsum", "o", "equation operands"),
    Row("tensordot", "o", "dims=2"),
    Row("cdist", "o", "p=2.0"),
    Row("cosine_similarity", "of", "dim=1 eps=1e-08"),
    Row(
        "scaled_dot_product_attention", "f",
        "attn_mask=None dropout_p=0.0 is_causal=False scale=None enable_gqa=False",
    ),
    Row("sum mean prod", "om", "dim=None keepdim=False dtype=None"),
    Row("amax amin", "om", "dim keepdim=False"),
    Row("max min", "om", "dim=None keepdim=False"),
    Row("argmax argmin any all", "om", "dim=None keepdim=False"),
    Row("var std var_mean", "om", "dim=None correction=1 keepdim=False"),
    Row("logsumexp", "om", "dim keepdim=False"),
    Row("norm", "om", "p dim=None keepdim=False"),
    Row("vector_norm", "o", "ord=2 dim=None keepdim=False"),
    Row("cumsum cumprod", "om", "dim dtype=None"),
    Row("flatten", "om", "start_dim=0 end_dim=-1"),
    Row("unflatten", "om", "dim sizes"),
    Row("view reshape permute", "m"),
    Row("ravel t", "om"),
    Row("view_as reshape_as expand_as", "m", "other"),
    Row("transpose", "om", "dim0 dim1"),
    Row("movedim moveaxis", "om", "source destination"),
    Row("swapaxes swapdims", "om"),
    Row("squeeze", "om", "dim=None"),
    Row("unsqueeze", "om", "dim"),
    Row("expand repeat", "m"),
    Row("broadcast_to", "om", "size"),
    Row("narrow", "om", "dim start length"),
    Row("select", "om", "dim index"),
    Row("index_select gather", "om", "dim index"),
    Row("take_along_dim", "om", "indices dim"),
    Row("scatter", "om", "dim index src reduce=None"),
    Row("scatter_add", "om", "dim index src"),
    Row("scatter_reduce", "om", "dim index src reduce include_self=True"),
    Row("index_add", "om", "dim index source alpha=1"),
    Row("index_put", "om", "indices values accumulate=False"),
    Row("masked_select", "om", "mask"),
    Row("nonzero", "om", "as_tuple=False"),
    Row("unique", "om", "sorted=True return_inverse=False return_counts=False dim=None"),
    Row("cat concat stack", "o", "tensors dim=0"),
    Row("hstack vstack dstack column_stack", "o", "tensors"),
    Row("split", "om", "dim=0"),
    Row("chunk", "om", "chunks dim=0"),
    Row("tensor_split", "om", "indices_or_sections dim=0"),
    Row("unbind", "om", "dim=0"),
    Row("pad", "f", "pad mode=constant value=None"),
    Row("flip", "om", "dims"),
    Row("roll", "om", "shifts dims=None"),
    Row("tile", "om", "dims"),
    Row("repeat_interleave", "om", "repeats dim=None"),
    Row("tril triu", "om", "diagonal=0"),
    Row("diagonal", "om", "offset=0 dim1=0 dim2=1"),
    Row("diag", "om", "diagonal=0"),
    Row("eye", "o", "n m=None dtype=None"),
    Row("arange", "o", "dtype=None requires_grad=False"),
    Row("zeros ones empty rand randn", "o", "dtype=None requires_grad=False"),
    Row("full", "o", "size fill_value dtype=None requires_grad=False"),
    Row("zeros_like ones_like empty_like rand_like randn_like", "o", "dtype=None"),
    Row("full_like", "o", "fill_value dtype=None"),
    Row("new_zeros new_ones new_empty", "m", "dtype=None"),
    Row("new_full", "m", "size fill_value dtype=None"),
    Row("linspace", "o", "start end steps dtype=None"),
    Row("meshgrid", "o", "indexing=ij"),
    Row("one_hot", "f", "num_classes=-1"),
    Row("topk", "om", "k dim=-1 largest=True sorted=True"),
    Row("sort argsort", "om", "dim=-1 descending=False"),
    Row("unfold", "m", "dimension size step"),
    Row("unfold", "f", "kernel_size dilation=1 padding=0 stride=1"),
    Row("fold", "f", "output_size kernel_size dilation=1 padding=0 stride=1"),
    Row("pixel_shuffle", "f", "upscale_factor"),
    Row("pixel_unshuffle", "f", "downscale_factor"),
    Row("channel_shuffle", "f", "groups"),
    Row("conv1d conv2d conv3d", "f", "weight bias=None stride=1 padding=0 dilation=1 groups=1"),
    Row(
        "conv_transpose1d conv_transpose2d conv_transpose3d", "f",
        "weight bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1",
    ),
    Row(
        "max_pool1d max_pool2d max_pool3d", "f",
        "kernel_size stride=None padding=0 dilation=1 ceil_mode=False return_indices=False",
    ),
    Row(
        "avg_pool1d avg_pool2d avg_pool3d", "f",
        "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True",
    ),
    Row("avg_pool2d avg_pool3d", "f", "divisor_override=None"),
    Row("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d", "f", "output_size"),
    Row("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", "f", "output_size"),
    Row(
        "interpolate", "f",
        "size=None scale_factor=None mode=nearest align_corners=None recompute_scale_factor=None "
        "antialias=False",
    ),
    Row("upsample", "f", "size=None scale_factor=None mode=nearest align_corners=None"),
    Row("grid_sample", "f", "grid mode=bilinear padding_mode=zeros align_corners=False"),
    Row("affine_grid", "f", "size align_corners=False"),
    Row(
        "batch_norm", "f",
        "running_mean running_var weight=None bias=None training=False momentum=0.1 eps=1e-05",
    ),
    Row("layer_norm", "f", "normalized_shape weight=None bias=None eps=1e-05"),
    Row("rms_norm", "f", "normalized_shape weight=None eps=None"),
    Row("group_norm", "f", "num_groups weight=None bias=None eps=1e-05"),
    Row(
        "instance_norm", "f",
        "running_mean=None running_var=None weight=None bias=None use_input_stats=True "
        "momentum=0.1 eps=1e-05",
    ),
    Row("normalize", "f", "p=2.0 dim=1 eps=1e-12"),
    Row("softmax log_softmax", "omf", "dim dtype=None"),
    Row("softmin", "f", "dim dtype=None"),
    Row("lstm gru rnn_tanh rnn_relu", "f"),
    Row("embedding", "f", "weight padding_idx=None max_norm=None"),
    Row("embedding_bag", "f", "weight mode=mean"),
    Row("mse_loss l1_loss", "f", "target reduction=mean"),
    Row("smooth_l1_loss", "f", "target reduction=mean beta=1.0"),
    Row("huber_loss", "f", "target reduction=mean delta=1.0"),
    Row("binary_cross_entropy", "f", "target weight=None reduction=mean"),
    Row(
        "binary_cross_entropy_with_logits", "f",
        "target weight=None reduction=mean pos_weight=None",
    ),
    Row("kl_div", "f", "target reduction=mean log_target=False"),
    Row("cosine_embedding_loss", "f", "target margin=0 reduction=mean"),
    Row("margin_ranking_loss", "f", "target margin=0 reduction=mean"),
    Row("triplet_margin_loss", "f", "margin=1.0 p=2 eps=1e-06 swap=False reduction=mean"),
    Row("gaussian_nll_loss", "f", "target var full=False eps=1e-06 reduction=mean"),
    Row("nll_loss", "f", "target weight=None ignore_index=-100 reduction=mean"),
    Row(
        "cross_entropy", "f",
        "target weight=None ignore_index=-100 reduction=mean label_smoothing=0.0",
    ),
    Row(
        "ctc_loss", "f",
        "log_probs targets input_lengths target_lengths blank=0 reduction=mean "
        "zero_infinity=False",
    ),
    Row("rrelu", "f", "lower=0.125 upper=0.3333333333333333 training=False inplace=False"),
    Row("multi_margin_loss", "f", "target p=1 margin=1.0 weight=None reduction=mean"),
    Row("median", "om", "dim=None keepdim=False"),
    Row("msort positive numel absolute negative subtract fix sgn arctan2", "om"),
    Row("is_floating_point is_tensor is_grad_enabled", "o"),
    Row("arccos arcsin arctan divide", "om"),
    Row("tril_indices triu_indices", "o", "row col offset=0"),
    Row("randint_like", "o"),
    Row("sum_to_size fill_diagonal_ exponential_", "m"),
    Row("atleast_1d atleast_2d atleast_3d", "o"),
]  # fmt: skip

PLACES = {"o": om, "f": F, "m": om.Tensor}


def entries():
    for row in ROWS:
        for name in row.names.split():
            for place in row.places:
                yield pytest.param(name, place, row.keywords, id=f"{place}-{name}")


@pytest.mark.parametrize(("name", "place", "keywords"), list(entries()))
def test_names_and_keywords(name, place, keywords):
    function = getattr(PLACES[place], name)
    parameters = inspect.signature(function).parameters
    for keyword in keywords.split():
        argument, _, default = keyword.partition("=")
        assert argument in parameters, f"{name}({argument}=…)"
        if default:
            found = parameters[argument].default
            same = str(found) == default or found == number(default)
            assert same, f"{name}({argument}={found!r}), not {default}"


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


UNARY_FLOAT = [
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp",
    "log",
    "log2",
    "log10",
    "expm1",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "tanh",
    "sigmoid",
    "erf",
]
UNARY_KEEPING = ["neg", "abs", "sign", "square", "relu"]
ROUNDING = ["floor", "ceil", "trunc", "round"]


@pytest.mark.parametrize("name", UNARY_FLOAT)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
def test_functions_of_reals_make_integers_float32(name, dtype):
    x = om.ones(2, dtype=dtype)
    wanted = dtype if dtype.startswith("float") else "float32"
    assert getattr(om, name)(x).dtype == wanted


@pytest.mark.parametrize("name", UNARY_KEEPING + ROUNDING)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float32", "float64"])
def test_functions_of_numbers_keep_the_dtype(name, dtype):
    x = om.ones(2, dtype=dtype)
    assert getattr(om, name)(x).dtype == dtype


@pytest.mark.parametrize("name", UNARY_FLOAT + UNARY_KEEPING + ROUNDING + ["isnan", "logical_not"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_unary_operators_on_no_axis_and_no_element(name, shape):
    out = getattr(om, name)(om.full(shape, 0.5))
    assert out.shape == shape


BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "atan2",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
]
PROMOTIONS = [
    ("bool", "uint8", "uint8"), ("uint8", "int8", "int32"), ("int32", "int64", "int64"),
    ("int64", "float32", "float32"), ("float32", "float64", "float64"), ("bool", "float32", "float32"),
]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("a", "b", "wanted"), PROMOTIONS)
def test_promotion(name, a, b, wanted):
    x, y = om.ones(2, dtype=a), om.ones(2, dtype=b)
    if name in {"eq", "ne", "lt", "le", "gt", "ge"}:
        wanted = "bool"
    elif name in {"div", "atan2"} and not wanted.startswith("float"):
        wanted = "float32"
    function = getattr(om, name)
    assert function(x, y).dtype == wanted
    assert function(y, x).dtype == wanted


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
def test_a_number_or_a_0d_tensor_raises_only_the_category(name, dtype):
    x = om.ones(2, dtype=dtype)
    function = getattr(om, name)
    kind = {"eq", "ne", "lt", "le", "gt", "ge"}
    for other, higher in ((2, False), (om.tensor(2), False), (2.5, True), (om.tensor(2.5), True)):
        wanted = dtype
        if name in kind:
            wanted = "bool"
        elif not dtype.startswith("float") and (higher or name in {"div", "atan2"}):
            wanted = "float32"
        assert function(x, other).dtype == wanted, other


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_on_no_axis_and_no_element(name):
    function = getattr(om, name)
    assert function(om.tensor(1.5), om.tensor(2.0)).shape == ()
    assert function(om.zeros(0, 3), om.zeros(3)).shape == (0, 3)
    assert function(om.zeros(2, 1), om.zeros(0)).shape == (2, 0)


@pytest.mark.parametrize(
    ("name", "identity"),
    [("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True), ("logsumexp", -float("inf"))],
)
def test_reductions_of_nothing_give_the_identity(name, identity):
    function = getattr(om, name)
    assert function(om.zeros(2, 0), 1).tolist() == [identity, identity]
    assert function(om.zeros(0, 3), 1).shape == (0,)


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min", "argmax", "argmin", "median"])
def test_reductions_without_an_identity_refuse_nothing(name):
    with pytest.raises(om.OneModelError, match=name):
        getattr(om, name)(om.zeros(2, 0), 1)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32"])
def test_sums_and_products_of_integers_are_int64(name, dtype):
    assert getattr(om, name)(om.ones(3, dtype=dtype), 0).dtype == "int64"


@pytest.mark.parametrize("name", ["mean", "var", "std", "softmax", "log_softmax"])
def test_means_of_integers_are_refused(name):
    with pytest.raises(om.DtypeError):
        getattr(om, name)(om.ones(3, dtype="int64"), 0)


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "prod",
        "amax",
        "amin",
        "argmax",
        "argmin",
        "any",
        "all",
        "logsumexp",
        "var",
        "std",
        "cumsum",
        "cumprod",
    ],
)
def test_reductions_of_a_0d_tensor(name):
    x = om.tensor(2.0)
    found = getattr(om, name)(x, 0)
    assert found.shape == ()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_compute_in_float32_and_round_once(dtype):
    x = om.linspace(-3, 3, 40).to(dtype)
    y = om.linspace(0.1, 2, 40).to(dtype)
    assert om.cat([x, y]).reshape(2, 40).T[0].dtype == dtype
    for name in ("add", "sub", "mul", "div"):
        function = getattr(om, name)
        assert function(x, y).dtype == dtype
        assert om.equal(function(x, y), function(x.float(), y.float()).to(dtype))
    for name in ("exp", "tanh", "sigmoid", "sin"):
        function = getattr(om, name)
        assert om.equal(function(x), function(x.float()).to(dtype))
    assert (x + y.double()).dtype == "float64"


MOVES = {
    "reshape": (lambda x: x.reshape(3, 0), (2, 0, 3), (3, 0)),
    "permute": (lambda x: x.permute(2, 0, 1), (2, 0, 3), (3, 2, 0)),
    "cat": (lambda x: om.cat([x, x], 1), (2, 0, 3), (2, 0, 3)),
    "stack": (lambda x: om.stack([x, x]), (0,), (2, 0)),
    "split": (lambda x: x.split(2)[0], (0, 3), (0, 3)),
    "flip": (lambda x: x.flip(0), (0, 3), (0, 3)),
    "roll": (lambda x: x.roll(1, 0), (0, 3), (0, 3)),
    "tile": (lambda x: x.tile(2, 2), (0, 3), (0, 6)),
    "pad": (lambda x: F.pad(x, (1, 1)), (0, 3), (0, 5)),
    "expand": (lambda x: x.expand(4, 0, 3), (0, 3), (4, 0, 3)),
    "tril": (lambda x: x.tril(), (0, 3), (0, 3)),
    "sort": (lambda x: x.sort(0).values, (0, 3), (0, 3)),
    "topk": (lambda x: x.topk(2, 1).values, (0, 3), (0, 2)),
    "gather": (lambda x: x.gather(1, om.zeros(0, 2, dtype="int64")), (0, 3), (0, 2)),
    "index_select": (lambda x: x.index_select(1, om.tensor([0, 2])), (0, 3), (0, 2)),
    "where": (lambda x: om.where(x > 0, x, 0.0), (0, 3), (0, 3)),
    "masked_select": (lambda x: x.masked_select(x > 0), (0, 3), (0,)),
    "nonzero": (lambda x: x.nonzero(), (0, 3), (0, 2)),
    "matmul": (lambda x: x @ om.zeros(3, 2), (0, 3), (0, 2)),
    "matmul-k": (lambda x: x.T @ om.zeros(0, 2), (0, 3), (3, 2)),
    "linear": (lambda x: F.linear(x, om.zeros(2, 3)), (0, 3), (0, 2)),
    "softmax": (lambda x: x.softmax(1), (0, 3), (0, 3)),
    "layer_norm": (lambda x: F.layer_norm(x, (3,)), (0, 3), (0, 3)),
    "embedding": (lambda x: F.embedding(x.long(), om.zeros(4, 2)), (0, 3), (0, 3, 2)),
    "one_hot": (lambda x: F.one_hot(x.long(), 4), (0, 3), (0, 3, 4)),
    "conv2d": (lambda x: F.conv2d(x, om.zeros(2, 1, 3, 3)), (0, 1, 5, 5), (0, 2, 3, 3)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (0, 1, 4, 4), (0, 1, 2, 2)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), (0, 1, 2, 2), (0, 1, 4, 4)),
    "cumsum": (lambda x: x.cumsum(0), (0, 3), (0, 3)),
    "unbind": (lambda x: om.stack(x.unbind(1), 1), (0, 3), (0, 3)),
    "column_stack": (lambda x: om.column_stack([x, x]), (0,), (0, 2)),
    "atleast_3d": (om.atleast_3d, (0,), (1, 0, 1)),
    "sum_to_size": (lambda x: x.sum_to_size(1, 3), (0, 3), (1, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MOVES))
def test_operators_on_empty_tensors(name):
    function, shape, wanted = MOVES[name]
    x = om.zeros(shape, requires_grad=True)
    out = function(x)
    assert out.shape == wanted
    if out.requires_grad:
        out.sum().backward()
        assert x.grad.shape == shape


def test_dtypes_by_their_other_names():
    assert (om.float, om.double, om.half, om.long) == ("float32", "float64", "float16", "int64")
    assert (om.int, om.short, om.bool) == ("int32", "int16", "bool")
    assert om.zeros(1, dtype=om.long).dtype == "int64"
    assert om.finfo(om.float32).eps == 2.0**-23
    assert om.finfo("float32").max == 3.4028234663852886e38
    assert om.finfo("float64").tiny == 2.2250738585072014e-308
    assert om.finfo().min == -om.finfo().max
    assert (om.iinfo("int64").min, om.iinfo(om.uint8).max) == (-(2**63), 255)
    with pytest.raises(om.DtypeError, match="iinfo"):
        om.finfo("int64")
    with pytest.raises(om.DtypeError, match="finfo"):
        om.iinfo("float32")


def test_names_left_out_say_what_to_use():
    for place, name in ((om, "searchsorted"), (om.zeros(2), "resize_"), (F, "fft")):
        assert not hasattr(place, name)
        with pytest.raises(om.UnsupportedError, match=f"^{name}: not offered by .*; [a-z]"):
            getattr(place, name)
    with pytest.raises(AttributeError, match="onemodel_tensors has no attribute 'nonsense'"):
        om.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match="Tensor has no attribute 'nonsense'"):
        om.zeros(1).nonsense  # noqa: B018
    assert om.device("cpu:0") == "cpu"
    with pytest.raises(om.AttributeValueError, match="expected device 'cpu'"):
        om.device("cuda")
    om.use_deterministic_algorithms(True)


def test_sizes_and_axes_by_keyword():
    x = om.arange(6).reshape(shape=(2, 3))
    assert x.flip(dims=(0, 1)).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert x.permute(dims=(1, 0)).shape == (3, 2)
    assert x.tile(dims=(2,)).shape == (2, 6)
    assert x.repeat(repeats=(2, 1)).shape == (4, 3)
    assert x.unsqueeze(0).expand(size=(4, 2, 3)).shape == (4, 2, 3)
    assert x.view(size=(6,)).shape == (6,)
    for make in (om.zeros, om.ones, om.empty, om.rand, om.randn):
        assert make(size=(2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match="flip: expected dims"):
        x.flip(0, dims=(1,))
    with pytest.raises(TypeError, match=r"zeros: expected size either .* got shape"):
        om.zeros(shape=(2,))
