"""Operators of the domain ``com.microsoft`` that files of ONNX Runtime's optimiser carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError
from onemodel_kernels.ops.convolution import WINDOW, conv_type, prepare_conv
from onemodel_kernels.ops.products import CHAIN, matmul_shape
from onemodel_kernels.ops.quantization import INTEGER_SUMS
from onemodel_kernels.ops.reductions import ROWS
from onemodel_kernels.ops.rules import broadcasting, operator, same
from onemodel_kernels.ops.spec import Attribute, Call, Emitter, TensorType, integer, real, text
from onemodel_kernels.ops.unary import ELEMENTARY

DOMAIN = "com.microsoft"
_ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid")


def _swapped(shape: Sequence[Any], turned: Any) -> tuple[Any, ...]:
    if not turned or len(shape) < 2:
        return tuple(shape)
    return (*shape[:-2], shape[-1], shape[-2])


def _fused_matmul(call: Call) -> list[TensorType]:
    if call["transBatchA"] or call["transBatchB"]:
        raise AttributeValueError("transBatchA and transBatchB are not supported")
    left = _swapped(call.shape(0), call["transA"])
    return [(call.agree(), matmul_shape(left, _swapped(call.shape(1), call["transB"])))]


def _emit_fused_matmul(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    _fused_matmul(call)
    parts = []
    for index, name in enumerate(("transA", "transB")):
        value, rank = inputs[index], call.rank(index)
        if call[name] and rank > 1:
            perm = (*range(rank - 2), rank - 1, rank - 2)
            value = emit.emit("Transpose", value, perm=perm)
        parts.append(value)
    product = emit.emit("MatMul", *parts)
    if call["alpha"] == 1.0:
        return product
    return emit.emit("Mul", product, emit.constant(call["alpha"], call.dtype()))


def _emit_gelu(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x = inputs[0]
    if len(inputs) > 1 and inputs[1] is not None:
        x = emit.emit("Add", x, inputs[1])
    form = "tanh" if call.operator == "FastGelu" else "none"
    return emit.emit("Gelu", x, approximate=form)


def _emit_quick_gelu(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    return emit.emit("Swish", inputs[0], alpha=call["alpha"])


def _skip(call: Call) -> list[TensorType]:
    shape = call.shape()
    statistics = ("float32", (*shape[:-1], 1))
    return [(call.dtype(), shape), statistics, statistics, (call.dtype(), shape)]


def _emit_skip(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    simple = call.operator == "SkipSimplifiedLayerNormalization"
    x, skip, gamma, *rest = inputs
    beta = None if simple or not rest else rest.pop(0)
    total = emit.emit("Add", x, skip)
    if rest and rest[0] is not None:
        total = emit.emit("Add", total, rest[0])
    if simple:
        y, inverse = emit.kernel("RMSNormalization", total, gamma, axis=-1, epsilon=call["epsilon"])
        mean = emit.emit("ReduceMean", total, axes=(-1,), keepdims=1)
    else:
        y, mean, inverse = emit.emit(
            "LayerNormalization", total, gamma, beta, epsilon=call["epsilon"]
        )
    return y, mean, inverse, total


def activated(emit: Emitter, call: Call, value: Any) -> Any:
    """The activation that a fused operator names, with its parameters."""
    name, parameters = call["activation"], call["activation_params"] or ()
    if not name:
        return value
    if name not in _ACTIVATIONS:
        raise AttributeValueError(f"the activation {name!r} is not supported")
    names = {
        "LeakyRelu": ("alpha",),
        "Clip": ("min", "max"),
        "HardSigmoid": ("alpha", "beta"),
    }.get(name, ())
    return emit.emit(name, value, **dict(zip(names, parameters, strict=False)))


def _fused_conv(call: Call) -> list[TensorType]:
    return conv_type(call, 1, 2, call.dtype())


def _emit_fused_conv(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, w, bias, other = (*inputs, None, None)[:4]
    y = emit.emit("Conv", x, w, bias, **prepare_conv(call))
    if other is not None:
        y = emit.emit("Add", y, other)
    return activated(emit, call, y)


def _to_float(call: Call) -> list[TensorType]:
    return [("float32", matmul_shape(call.shape(0), call.shape(1)))]


def _scaled(emit: Emitter, sums: Any, scales: Sequence[Any], bias: Any) -> Any:
    scale = emit.emit("Mul", *scales)
    y = emit.emit("Mul", emit.emit("Cast", sums, to="float32"), scale)
    return y if bias is None else emit.emit("Add", y, bias)


def _emit_to_float(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    a, b, a_scale, b_scale, a_zero, b_zero, bias = (*inputs, None, None, None)[:7]
    sums = emit.emit("MatMulInteger", a, b, a_zero, b_zero)
    return _scaled(emit, sums, (a_scale, b_scale), bias)


def _emit_dynamic(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    a, b, b_scale, b_zero, bias = (*inputs, None, None)[:5]
    whole, a_scale, a_zero = emit.emit("DynamicQuantizeLinear", a)
    sums = emit.emit("MatMulInteger", whole, b, a_zero, b_zero)
    return _scaled(emit, sums, (a_scale, b_scale), bias)


def _own(name: str, inputs: str, outputs: str, rule: Any, **facts: Any) -> Any:
    return operator(name, inputs, outputs, rule, domain=DOMAIN, **facts)


_ACTIVATION = {"activation": text(), "activation_params": Attribute("floats")}
SPECS = [
    _own(
        "FusedMatMul",
        "A B",
        "Y",
        _fused_matmul,
        attributes={
            "alpha": real(1.0),
            "transA": integer(0),
            "transB": integer(0),
            "transBatchA": integer(0),
            "transBatchB": integer(0),
        },
        decompose=_emit_fused_matmul,
        determinism=CHAIN,
        doc="alpha * op(A) @ op(B).",
    ),
    _own(
        "Gelu",
        "X",
        "Y",
        same,
        decompose=_emit_gelu,
        determinism=ELEMENTARY,
        doc="x * Phi(x).",
    ),
    _own(
        "BiasGelu",
        "A B",
        "C",
        broadcasting,
        decompose=_emit_gelu,
        determinism=ELEMENTARY,
        doc="GELU of a + b.",
    ),
    _own(
        "FastGelu",
        "X bias?",
        "Y",
        same,
        decompose=_emit_gelu,
        determinism=ELEMENTARY,
        doc="The tanh form of GELU of x + bias.",
    ),
    _own(
        "QuickGelu",
        "X",
        "Y",
        same,
        attributes={"alpha": real(1.7020000219345093)},
        decompose=_emit_quick_gelu,
        determinism=ELEMENTARY,
        doc="x * sigmoid(alpha*x).",
    ),
    _own(
        "SkipLayerNormalization",
        "input skip gamma beta? bias?",
        "output mean? inv_std_var? input_skip_bias_sum?",
        _skip,
        attributes={"epsilon": real(9.999999960041972e-13)},
        decompose=_emit_skip,
        determinism=ROWS,
        doc="Layer normalisation of input + skip + bias.",
    ),
    _own(
        "SkipSimplifiedLayerNormalization",
        "input skip gamma bias?",
        "output mean? inv_std_var? input_skip_bias_sum?",
        _skip,
        attributes={"epsilon": real(9.999999960041972e-13)},
        decompose=_emit_skip,
        determinism=ROWS,
        doc="RMS normalisation of input + skip + bias.",
    ),
    _own(
        "FusedConv",
        "X W B? Z?",
        "Y",
        _fused_conv,
        attributes={**WINDOW, **_ACTIVATION},
        decompose=_emit_fused_conv,
        determinism=CHAIN,
        doc="A convolution, an addition and an activation.",
    ),
    _own(
        "MatMulIntegerToFloat",
        "A B a_scale b_scale a_zero_point? b_zero_point? bias?",
        "Y",
        _to_float,
        decompose=_emit_to_float,
        determinism=INTEGER_SUMS,
        doc="MatMulInteger times both scales, plus a bias.",
    ),
    _own(
        "DynamicQuantizeMatMul",
        "A B b_scale b_zero_point? bias?",
        "Y",
        _to_float,
        decompose=_emit_dynamic,
        determinism=INTEGER_SUMS,
        doc="A quantised by its own range, times B, scaled back.",
    ),
]
