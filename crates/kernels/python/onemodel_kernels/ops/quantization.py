"""Quantised operators: integer sums are exact, and rescaling has a fixed order of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_kernels.ops.convolution import WINDOW, conv_type, prepare_conv
from onemodel_kernels.ops.narrow import FLOATS as NARROW_FLOATS
from onemodel_kernels.ops.narrow import HELD, to_grid
from onemodel_kernels.ops.narrow import INTEGERS as NARROW_INTEGERS
from onemodel_kernels.ops.products import matmul_shape
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, dtype_name, integer, normalise_axis

RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int16": (-32768, 32767),
    **NARROW_INTEGERS,
}
INTEGER_SUMS = "Integer sums are exact; rescaling is one division or product and one rounding."


def _quantised(call: Call) -> list[TensorType]:
    dtype = _target(call)
    if dtype not in RANGES and dtype not in NARROW_FLOATS:
        allowed = ", ".join([*RANGES, *NARROW_FLOATS])
        raise DtypeError(f"the result's type must be one of {allowed}, not {dtype}")
    return [(HELD.get(dtype, dtype), call.shape())]


def _target(call: Call) -> str:
    """The type that QuantizeLinear gives; the zero point of a narrow one is held in another type."""
    given: str | None = call["output_dtype"]
    if given in HELD:
        return given
    zero = call.dtypes[2] if call.has(2) else None
    return zero or given or "uint8"


def _dequantised(call: Call) -> list[TensorType]:
    return [(call["output_dtype"] or call.dtype(1), call.shape())]


def spread(emit: Emitter, value: Any, shape: Sequence[int], axis: int, block: int) -> Any:
    """A scale or zero point in a form that broadcasts with ``shape``: one, per axis, or per block."""
    _, own = emit.type(value)
    if len(own) == 0 or (len(own) == 1 and own[0] == 1):
        return value if len(own) == 0 else emit.emit("Reshape", value, shape=())
    axis = normalise_axis(axis, len(shape))
    if len(own) == 1 and not block:
        if own[0] != shape[axis]:
            raise ShapeError(f"{own[0]} scales do not fit the extent {shape[axis]} of axis {axis}")
        return emit.emit(
            "Reshape", value, shape=tuple(own[0] if a == axis else 1 for a in range(len(shape)))
        )
    if len(own) != len(shape) or not block:
        raise ShapeError(f"scales of shape {own} do not fit an input of shape {tuple(shape)}")
    wide = emit.emit("Unsqueeze", value, axes=(axis + 1,))
    target = (*own[: axis + 1], block, *own[axis + 1 :])
    wide = emit.emit("Expand", wide, shape=target)
    wide = emit.emit("Reshape", wide, shape=(*own[:axis], own[axis] * block, *own[axis + 1 :]))
    if own[axis] * block == shape[axis]:
        return wide
    return emit.emit("Slice", wide, starts=(0,), ends=(shape[axis],), axes=(axis,), steps=(1,))


def saturate(emit: Emitter, value: Any, zero: Any, dtype: str) -> Any:
    """``value`` rounded to even, shifted by a zero point, clipped to the type's range."""
    low, high = RANGES[dtype]
    rounded = emit.emit("Round", value)
    if zero is not None:
        rounded = emit.emit("Add", rounded, emit.emit("Cast", zero, to="float32"))
    clipped = emit.emit("Clip", rounded, min=float(low), max=float(high))
    return emit.emit("Cast", clipped, to=HELD.get(dtype, dtype))


def _emit_quantise(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, scale, zero = (*inputs, None)[:3]
    _quantised(call)
    dtype = _target(call)
    shape, axis, block = call.shape(), call["axis"], call["block_size"] or 0
    wide = emit.emit("Cast", x, to="float32") if call.dtype() != "float32" else x
    if emit.type(scale)[0] != "float32":
        scale = emit.emit("Cast", scale, to="float32")
    quotient = emit.emit("Div", wide, spread(emit, scale, shape, axis, block))
    if zero is not None:
        zero = spread(emit, zero, shape, axis, block)
    if dtype not in NARROW_FLOATS:
        return saturate(emit, quotient, zero, dtype)
    shifted = quotient if zero is None else emit.emit("Add", quotient, zero)
    return to_grid(emit, shifted, dtype, bool(call["saturate"]))


def _emit_dequantise(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, scale, zero = (*inputs, None)[:3]
    shape, axis, block = call.shape(), call["axis"], call["block_size"] or 0
    dtype = call.dtype(1)
    # Narrow floating-point numbers are held in float32; integers are subtracted as such.
    inner = "float32" if call.dtype() == "float32" else "int32"
    whole = emit.emit("Cast", x, to=inner) if call.dtype() != inner else x
    if zero is not None:
        zero = emit.emit("Cast", spread(emit, zero, shape, axis, block), to=inner)
        whole = emit.emit("Sub", whole, zero)
    wide = whole if dtype == inner else emit.emit("Cast", whole, to=dtype)
    result = emit.emit("Mul", wide, spread(emit, scale, shape, axis, block))
    target = call["output_dtype"]
    return result if target in (None, dtype) else emit.emit("Cast", result, to=target)


def _dynamic(call: Call) -> list[TensorType]:
    return [("uint8", call.shape()), ("float32", ()), ("uint8", ())]


def _emit_dynamic(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x = inputs[0]
    zero = emit.constant(0.0, "float32")
    low = emit.emit("Min", emit.emit("ReduceMin", x, keepdims=0), zero)
    high = emit.emit("Max", emit.emit("ReduceMax", x, keepdims=0), zero)
    scale = emit.emit("Div", emit.emit("Sub", high, low), emit.constant(255.0, "float32"))
    # An input of zeros only has the scale 1: nothing is divided by 0.
    scale = emit.emit(
        "Where", emit.emit("Equal", scale, zero), emit.constant(1.0, "float32"), scale
    )
    shift = emit.emit("Sub", zero, emit.emit("Div", low, scale))
    shift = emit.emit("Round", emit.emit("Clip", shift, min=0.0, max=255.0))
    point = emit.emit("Cast", shift, to="uint8")
    return emit.emit("QuantizeLinear", x, scale, point), scale, point


def _matmul_integer(call: Call) -> list[TensorType]:
    return [("int32", matmul_shape(call.shape(0), call.shape(1)))]


def _shifted(emit: Emitter, value: Any, zero: Any, rows: bool) -> Any:
    """``value - zero`` in int32; a zero point of one axis belongs to the rows of A or columns of B."""
    whole = emit.emit("Cast", value, to="int32")
    if zero is None:
        return whole
    _, shape = emit.type(zero)
    if rows and len(shape) == 1 and shape[0] > 1:
        zero = emit.emit("Unsqueeze", zero, axes=(1,))
    if len(shape) == 1 and shape[0] == 1:
        zero = emit.emit("Reshape", zero, shape=())
    return emit.emit("Sub", whole, emit.emit("Cast", zero, to="int32"))


def integer_product(emit: Emitter, a: Any, b: Any, a_zero: Any, b_zero: Any) -> Any:
    """``(a - a_zero) @ (b - b_zero)`` in int32: by the kernel of bytes where b is one matrix."""
    bytes_only = all(emit.type(value)[0] in ("int8", "uint8") for value in (a, b))
    _, left = emit.type(a)
    _, right = emit.type(b)
    if a_zero is not None and emit.type(a_zero)[1] == (1,):
        a_zero = emit.emit("Reshape", a_zero, shape=())
    plain = bytes_only and len(left) >= 2 and len(right) == 2
    plain = plain and (a_zero is None or emit.type(a_zero)[1] == ())
    plain = plain and (b_zero is None or len(emit.type(b_zero)[1]) <= 1)
    if plain:
        return emit.kernel("MatMulInteger", a, b, a_zero, b_zero)
    return emit.emit("MatMul", _shifted(emit, a, a_zero, True), _shifted(emit, b, b_zero, False))


def _emit_matmul_integer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    return integer_product(emit, *(*inputs, None, None)[:4])


def _conv_integer(call: Call) -> list[TensorType]:
    # Positions of optional inputs are zero points, not a bias: none is looked at here.
    plain = Call(call.operator, call.shapes[:2], call.dtypes[:2], call.attributes)
    return conv_type(plain, 1, 2, "int32")


def integer_convolution(
    emit: Emitter, call: Call, x: Any, x_zero: Any, w: Any, w_zero: Any, weight: int
) -> Any:
    """The exact integer sums of a convolution, as float64 (exact below 2⁵³)."""

    def shifted(value: Any, zero: Any, per_channel: bool) -> Any:
        whole = emit.emit("Cast", value, to="float64")
        if zero is None:
            return whole
        _, shape = emit.type(zero)
        zero = emit.emit("Cast", zero, to="float64")
        if per_channel and len(shape) == 1 and shape[0] > 1:
            rank = len(emit.type(value)[1])
            zero = emit.emit("Reshape", zero, shape=(shape[0],) + (1,) * (rank - 1))
        elif len(shape) == 1:
            zero = emit.emit("Reshape", zero, shape=())
        return emit.emit("Sub", whole, zero)

    attributes = prepare_conv(call, weight)
    return emit.emit("Conv", shifted(x, x_zero, False), shifted(w, w_zero, True), **attributes)


def _emit_conv_integer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, w, x_zero, w_zero = (*inputs, None, None)[:4]
    sums = integer_convolution(emit, call, x, x_zero, w, w_zero, 1)
    return emit.emit("Cast", sums, to="int32")


def _rescaled(emit: Emitter, sums: Any, a: Any, b: Any, y: Any, zero: Any, dtype: str) -> Any:
    scale = emit.emit("Div", emit.emit("Mul", a, b), y)
    wide = emit.emit("Cast", sums, to="float32")
    return saturate(emit, emit.emit("Mul", wide, scale), zero, dtype)


def _single(emit: Emitter, value: Any) -> Any:
    value = value if emit.type(value)[0] == "float32" else emit.emit("Cast", value, to="float32")
    _, shape = emit.type(value)
    return emit.emit("Reshape", value, shape=()) if shape == (1,) else value


def _scalar(emit: Emitter, value: Any) -> Any:
    return emit.emit("Reshape", value, shape=()) if emit.type(value)[1] == (1,) else value


def _qlinear_matmul(call: Call) -> list[TensorType]:
    return [(call.dtype(7), matmul_shape(call.shape(0), call.shape(3)))]


def _emit_qlinear_matmul(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    sums = integer_product(emit, a, b, a_zero, b_zero)
    a_scale = _single(emit, a_scale)
    if len(emit.type(a_scale)[1]) == 1:
        a_scale = emit.emit("Unsqueeze", a_scale, axes=(1,))
    scales = (a_scale, _single(emit, b_scale), _single(emit, y_scale))
    return _rescaled(emit, sums, *scales, _scalar(emit, y_zero), call.dtype(7))


def _qlinear_conv(call: Call) -> list[TensorType]:
    return conv_type(call, 3, 8, call.dtype(7))


def _emit_qlinear_conv(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (*inputs, None)[:9]
    sums = integer_convolution(emit, call, x, x_zero, w, w_zero, 3)
    rank = call.rank()
    columns = (-1,) + (1,) * (rank - 2)
    if bias is not None:
        bias = emit.emit("Cast", emit.emit("Reshape", bias, shape=columns), to="float64")
        sums = emit.emit("Add", sums, bias)
    w_scale = _single(emit, w_scale)
    if len(emit.type(w_scale)[1]) == 1:
        w_scale = emit.emit("Reshape", w_scale, shape=columns)
    scales = (_single(emit, x_scale), w_scale, _single(emit, y_scale))
    return _rescaled(emit, sums, *scales, _scalar(emit, y_zero), call.dtype(7))


SPECS = [
    operator(
        "QuantizeLinear",
        "x y_scale y_zero_point?",
        "y",
        _quantised,
        {
            "saturate": integer(1),
            "axis": integer(1),
            "block_size": integer(0),
            "output_dtype": dtype_name(),
            "precision": dtype_name(),
        },
        since_version=19,
        decompose=_emit_quantise,
        determinism=INTEGER_SUMS,
        doc="round(x / scale) + zero point, clipped to the type's range.",
    ),
    operator(
        "DequantizeLinear",
        "x x_scale x_zero_point?",
        "y",
        _dequantised,
        {"axis": integer(1), "block_size": integer(0), "output_dtype": dtype_name()},
        since_version=19,
        decompose=_emit_dequantise,
        determinism=INTEGER_SUMS,
        doc="(x - zero point) * scale.",
    ),
    operator(
        "DynamicQuantizeLinear",
        "x",
        "y y_scale y_zero_point",
        _dynamic,
        since_version=11,
        decompose=_emit_dynamic,
        determinism=INTEGER_SUMS,
        doc="QuantizeLinear to uint8 with the scale of the input's own range.",
    ),
    operator(
        "MatMulInteger",
        "A B a_zero_point? b_zero_point?",
        "Y",
        _matmul_integer,
        since_version=10,
        decompose=_emit_matmul_integer,
        determinism=INTEGER_SUMS,
        doc="(A - a_zero_point) @ (B - b_zero_point) in int32.",
    ),
    operator(
        "ConvInteger",
        "x w x_zero_point? w_zero_point?",
        "y",
        _conv_integer,
        WINDOW,
        since_version=10,
        decompose=_emit_conv_integer,
        determinism=INTEGER_SUMS,
        doc="The convolution of x - x_zero_point with w - w_zero_point in int32.",
    ),
    operator(
        "QLinearMatMul",
        "a a_scale a_zero_point b b_scale b_zero_point y_scale y_zero_point",
        "y",
        _qlinear_matmul,
        since_version=10,
        decompose=_emit_qlinear_matmul,
        determinism=INTEGER_SUMS,
        doc="The product of quantised matrices, quantised again.",
    ),
    operator(
        "QLinearConv",
        "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
        "y",
        _qlinear_conv,
        WINDOW,
        since_version=10,
        decompose=_emit_qlinear_conv,
        determinism=INTEGER_SUMS,
        doc="The convolution of quantised tensors, quantised again.",
    ),
]
