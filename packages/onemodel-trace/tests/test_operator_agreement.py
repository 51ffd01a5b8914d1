"""Each operator: eager, sessions (exact bits) and ONNX Runtime agree, or the trace refuses by name.

Every case is traced twice: with fixed axes, where it must work, and with every axis of every input
symbolic, where it must be right at other sizes or be refused.
"""

from __future__ import annotations

import onnx
import pytest

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import functional as F
from onemodel_trace import TraceErrorKind, TraceException, Tracer
from onemodel_trace.testing import Case, all_cases

CASES = {case.name: case for case in all_cases()}


def with_parameters(case, names):
    """The case's function with parameters that name the inputs."""
    function = case.function
    if len(names) == 1:
        return lambda x: function(x)
    return lambda x, y: function(x, y)


@pytest.mark.parametrize("name", CASES)
def test_fixed_axes(name, agree):
    case = CASES[name]
    agree(with_parameters(case, case.inputs), *case.examples())


@pytest.mark.parametrize("name", CASES)
def test_all_axes_symbolic(name, agree):
    case = CASES[name]
    axes = {
        input_name: tuple(None if size in (1, 4) else f"s{size}" for size in given.shape)
        for input_name, given in zip("xy", case.inputs)
    }
    try:
        agree(with_parameters(case, case.inputs), *case.examples(), axes=axes)
    except TraceException as error:
        assert error.kind is TraceErrorKind.SYMBOLIC_SHAPE, error


@pytest.mark.parametrize("name", CASES)
def test_between_transposes(name, agree):
    """Optimisers move transposes across operators, and must know all of their operands."""
    case = CASES[name]

    def reversed_axes(tensor):
        return tensor.permute(*reversed(range(tensor.ndim)))

    def model(x, *y):
        found = case.function(*[reversed_axes(tensor) for tensor in (x, *y)])
        listed = found if isinstance(found, tuple | list) else (found,)
        return tuple(reversed_axes(tensor) for tensor in listed)

    examples = [reversed_axes(example).contiguous() for example in case.examples()]
    try:
        model(*examples)
    except OneModelError:
        assert name == "view", "only a view needs its input's layout"
        return
    agree(with_parameters(Case(name, model, case.inputs), case.inputs), *examples)


DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float64", "float16")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_other_element_types(name, dtype, trace):
    """What runs eagerly is a valid file with the eager bits, or refused by name."""
    case = CASES[name]
    given = [
        (tensor * 3).to(dtype) if position == 0 or tensor.dtype == "float32" else tensor
        for position, tensor in enumerate(case.examples())
    ]
    try:
        found = case.function(*given)
    except (OneModelError, TypeError, ValueError):
        return
    expected = found if isinstance(found, tuple | list) else (found,)
    try:
        traced = trace(with_parameters(case, case.inputs), *given)
    except TraceException as error:
        assert error.kind is TraceErrorKind.UNSUPPORTED_OPERATION, error
        assert dtype in str(error)
        return
    onnx.checker.check_model(traced.to_onnx(), full_check=True)
    outputs = traced.session(ArithmeticMode.EXACT).run([tensor.numpy() for tensor in given])
    for left, right in zip(expected, outputs, strict=True):
        array = left.detach().numpy()
        assert (array.dtype, array.shape) == (right.dtype, right.shape)
        assert array.tobytes() == right.tobytes()


NOT_OPERATORS = {
    "autograd", "broadcast_shapes", "default_generator", "enable_grad",
    "functional", "get_default_dtype", "get_rng_state", "gradcheck", "inference_mode", "initial_seed",
    "is_grad_enabled", "manual_seed", "no_grad", "promote_types", "result_type", "seed",
    "set_default_dtype", "set_grad_enabled", "set_rng_state", "from_dlpack", "from_numpy", "asarray",
    "tensor", "scalar_tensor", "bool_", "cuda", "device", "e", "finfo", "get_num_threads", "iinfo", "inf",
    "is_floating_point", "is_tensor", "nan", "newaxis", "numel", "pi", "set_num_threads",
    "use_deterministic_algorithms",
}  # fmt: skip
"""Public names that are no operators, or only ever make constants."""

CONSTANTS = {"linspace", "logspace", "empty", "empty_like", "tril_indices", "triu_indices"}

DEPENDENT, UNSUPPORTED = TraceErrorKind.DATA_DEPENDENT, TraceErrorKind.UNSUPPORTED_OPERATION

REFUSED = {
    "argwhere": (lambda x: om.argwhere(x), DEPENDENT),
    "bincount": (lambda x: om.bincount(x.flatten().abs().long()), DEPENDENT),
    "masked_select": (lambda x: om.masked_select(x, x > 0), DEPENDENT),
    "nonzero": (lambda x: om.nonzero(x), DEPENDENT),
    "unique": (lambda x: om.unique(x), DEPENDENT),
    "equal": (lambda x: om.equal(x, x * 1), DEPENDENT),
    "allclose": (lambda x: om.allclose(x, x * 1), DEPENDENT),
    "bernoulli": (lambda x: om.bernoulli(x.sigmoid()), UNSUPPORTED),
    "multinomial": (lambda x: om.multinomial(x.abs(), 1), DEPENDENT),
    "normal": (lambda x: om.normal(x, 1.0), UNSUPPORTED),
    "rand": (lambda x: om.rand(3), UNSUPPORTED),
    "rand_like": (lambda x: om.rand_like(x), UNSUPPORTED),
    "randint": (lambda x: om.randint(0, 3, (2,)), UNSUPPORTED),
    "randint_like": (lambda x: om.randint_like(x, 3), UNSUPPORTED),
    "randn": (lambda x: om.randn(3), UNSUPPORTED),
    "randn_like": (lambda x: om.randn_like(x), UNSUPPORTED),
    "randperm": (lambda x: om.randperm(3), UNSUPPORTED),
    "cross_entropy": (lambda x: F.cross_entropy(x, om.tensor([0, 1, 2])), UNSUPPORTED),
    "nll_loss": (lambda x: F.nll_loss(x, om.tensor([0, 1, 2])), UNSUPPORTED),
    "ctc_loss": (
        lambda x: F.ctc_loss(x[:, None], om.tensor([[1, 2]]), om.tensor([3]), om.tensor([2])),
        UNSUPPORTED,
    ),
}
"""Refused by kind and name."""


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name, trace, example):
    function, kind = REFUSED[name]
    with pytest.raises(TraceException) as caught:
        trace(function, example(3, 4))
    assert caught.value.kind is kind, caught.value
    drawn = {"normal": "randn", "randint_like": "randint"}
    assert f" {drawn.get(name, name)}" in str(caught.value)
    assert f"[{__file__}:" in str(caught.value)


OTHER_NAMES = {
    "absolute": "abs", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2",
    "clip": "clamp", "concat": "cat", "divide": "div", "fix": "trunc", "moveaxis": "movedim",
    "multiply": "mul", "negative": "neg", "sgn": "sign", "subtract": "sub", "swapaxes": "transpose",
    "swapdims": "transpose", "true_divide": "div",
}  # fmt: skip
"""The same operator under another name."""


def test_every_public_operator_has_a_case_or_a_reason():
    public = {name for name in (*om.__all__, *F.__all__) if name[:1].islower()}
    dtypes = {name for name in public if isinstance(getattr(om, name, None), str)}
    covered = {case.operator for case in all_cases()}
    known = NOT_OPERATORS | CONSTANTS | set(REFUSED) | set(OTHER_NAMES)
    assert sorted(public - dtypes - covered - known) == []
    assert sorted(known - public) == []
    assert {name for name in OTHER_NAMES.values() if name not in covered} == set()


ANSWERS = {
    "device", "dim", "dtype", "element_size", "grad", "grad_fn", "is_complex", "is_contiguous",
    "is_cuda", "is_floating_point", "is_leaf", "is_signed", "itemsize", "ndim", "ndimension",
    "requires_grad", "requires_grad_", "shape", "retain_grad",
}  # fmt: skip
"""What Python may know of a traced tensor: nothing that a value decides; sizes are symbolic."""

READS = {"data", "data_ptr", "item", "numpy", "tolist", "storage_offset", "stride"}

WRITES = {
    "bernoulli_", "copy_", "exponential_", "fill_", "fill_diagonal_", "normal_", "random_",
    "uniform_", "zero_",
}  # fmt: skip

GRADIENTS = {"backward", "register_hook", "register_post_accumulate_grad_hook"}

ARGUMENTS = {
    "copy_": (om.zeros(3, 3),), "fill_": (1.0,), "fill_diagonal_": (1.0,),
    "register_hook": (print,), "register_post_accumulate_grad_hook": (print,),
}  # fmt: skip


def test_every_method_has_a_case_or_a_reason():
    methods = {name for name in dir(om.Tensor) if not name.startswith("_")}
    covered = {case.operator for case in all_cases()}
    covered |= {name + "_" for name in covered | set(OTHER_NAMES)}
    known = ANSWERS | READS | WRITES | GRADIENTS | set(REFUSED)
    assert sorted(methods - covered - known) == []
    assert sorted((ANSWERS | READS | WRITES | GRADIENTS) - methods) == []


@pytest.mark.parametrize("name", sorted(READS | WRITES | GRADIENTS))
def test_every_read_and_write_is_refused(name, example):
    arguments = ARGUMENTS.get(name, ())
    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 3), axis_names=("B", None)) * 2
        with pytest.raises(TraceException):
            found = getattr(x, name)
            found(*arguments)
