"""Each operator: eager, sessions (exact bits) and ONNX Runtime agree, or the trace refuses by name.

Every case is traced twice: with fixed axes, where it must work, and with every axis of every input
symbolic, where it must be right at other sizes or be refused.
"""

from __future__ import annotations

import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import TraceErrorKind, TraceException
from onemodel_trace.testing import all_cases

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


NOT_OPERATORS = {
    "allclose", "autograd", "broadcast_shapes", "default_generator", "enable_grad", "equal",
    "functional", "get_default_dtype", "get_rng_state", "gradcheck", "inference_mode", "initial_seed",
    "is_grad_enabled", "manual_seed", "no_grad", "promote_types", "result_type", "seed",
    "set_default_dtype", "set_grad_enabled", "set_rng_state", "from_dlpack", "from_numpy", "asarray",
    "tensor", "scalar_tensor", "bool_", "device", "e", "finfo", "get_num_threads", "iinfo", "inf",
    "is_floating_point", "is_tensor", "nan", "newaxis", "numel", "pi", "set_num_threads",
    "use_deterministic_algorithms",
}  # fmt: skip
"""Public names that are no operators, or only ever make constants."""

CONSTANTS = {"linspace", "logspace", "empty", "empty_like", "tril_indices", "triu_indices"}

REFUSED = {
    "argwhere", "bincount", "masked_select", "nonzero", "unique", "bernoulli", "multinomial",
    "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "cross_entropy",
    "nll_loss", "ctc_loss",
}  # fmt: skip
"""Refused by kind and name; see the tests of refusals."""

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
    known = NOT_OPERATORS | CONSTANTS | REFUSED | set(OTHER_NAMES)
    assert sorted(public - dtypes - covered - known) == []
    assert sorted(known - public) == []
