"""Windows and Fourier transforms, as products with matrices that are made when a plan is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.products import CHAIN
from onemodel_kernels.ops.reductions import scalar_operand
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import (
    Call,
    Emitter,
    TensorType,
    dtype_name,
    integer,
    normalise_axis,
)
from onemodel_kernels.ops.written import require_writable

TWO_PI = 6.283185307179586
_WINDOWS = {
    "HannWindow": (0.5, -0.5, 0.0),
    "HammingWindow": (25 / 46, -21 / 46, 0.0),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


def _window(call: Call) -> list[TensorType]:
    return [(call["output_datatype"], (scalar_operand(call.static("size")),))]


def _emit_window(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    size = scalar_operand(call["size"])
    period = size if call["periodic"] else size - 1
    constant, first, second = _WINDOWS[call.operator]
    require_writable("a window", size)
    steps = emit.constant([TWO_PI * i / period if period else 0.0 for i in range(size)], "float64")
    result = emit.emit("Mul", emit.emit("Cos", steps), emit.constant(first, "float64"))
    result = emit.emit("Add", result, emit.constant(constant, "float64"))
    if second:
        twice = emit.emit("Cos", emit.emit("Mul", steps, emit.constant(2.0, "float64")))
        result = emit.emit("Add", result, emit.emit("Mul", twice, emit.constant(second, "float64")))
    return emit.emit("Cast", result, to=call["output_datatype"])


def fourier_matrices(
    emit: Emitter, length: int, bins: int, inverse: bool, dtype: str
) -> tuple[Any, Any]:
    """Cosine and (signed) sine matrices of ``length`` rows and ``bins`` columns."""
    require_writable("a transform of samples and frequencies", length, bins)
    # Angles are reduced to one turn first, so that they are as exact for late samples as for early.
    angles = [[TWO_PI * ((i * k) % length) / length for k in range(bins)] for i in range(length)]
    steps = emit.constant(angles, "float64")
    cos, sin = emit.emit("Cos", steps), emit.emit("Sin", steps)
    if not inverse:
        sin = emit.emit("Neg", sin)
    return emit.emit("Cast", cos, to=dtype), emit.emit("Cast", sin, to=dtype)


def _dft_sizes(call: Call) -> tuple[int, int, int]:
    """(axis, length of the transform, bins that are kept)."""
    shape = call.shape()
    if not shape or shape[-1] not in (1, 2):
        raise ShapeError(f"the last axis must have 1 or 2 entries (real, imaginary), not {shape}")
    given = scalar_operand(call["axis"])
    axis = normalise_axis(-2 if given is None else given, len(shape))
    if axis == len(shape) - 1:
        raise AttributeValueError("axis must not be the last one, which holds the two parts")
    length = scalar_operand(call["dft_length"])
    if call["inverse"] and call["onesided"]:
        size = 2 * (shape[axis] - 1) if length is None else length
        return axis, size, size
    size = shape[axis] if length is None else length
    return axis, size, size // 2 + 1 if call["onesided"] else size


def _dft(call: Call) -> list[TensorType]:
    axis, _, bins = _dft_sizes(call)
    parts = 1 if call["inverse"] and call["onesided"] else 2
    shape = call.shape()
    return [(call.dtype(), (*shape[:axis], bins, *shape[axis + 1 : -1], parts))]


def _resized(emit: Emitter, x: Any, axis: int, size: int) -> Any:
    shape = emit.type(x)[1]
    if shape[axis] > size:
        return emit.emit("Slice", x, starts=(0,), ends=(size,), axes=(axis,), steps=(1,))
    if shape[axis] < size:
        pads = [0] * (2 * len(shape))
        pads[len(shape) + axis] = size - shape[axis]
        return emit.emit("Pad", x, pads=tuple(pads), mode="constant")
    return x


def transform(
    emit: Emitter, real: Any, imaginary: Any, bins: int, inverse: bool
) -> tuple[Any, Any]:
    """The two parts of the transform along the last axis; ``imaginary`` may be ``None``."""
    dtype, shape = emit.type(real)
    cos, sin = fourier_matrices(emit, shape[-1], bins, inverse, dtype)
    out_real, out_imaginary = emit.emit("MatMul", real, cos), emit.emit("MatMul", real, sin)
    if imaginary is not None:
        out_real = emit.emit("Sub", out_real, emit.emit("MatMul", imaginary, sin))
        out_imaginary = emit.emit("Add", out_imaginary, emit.emit("MatMul", imaginary, cos))
    if inverse:
        scale = emit.constant(float(shape[-1]), dtype)
        out_real = emit.emit("Div", out_real, scale)
        out_imaginary = emit.emit("Div", out_imaginary, scale)
    return out_real, out_imaginary


def _mirrored(emit: Emitter, x: Any, size: int) -> Any:
    """All bins of a transform of real numbers, from those that are not redundant."""
    rank = len(emit.type(x)[1])
    axis = rank - 2
    kept = emit.type(x)[1][axis]
    want = size // 2 + 1
    x = _resized(emit, x, axis, want) if kept != want else x
    last = (size + 1) // 2 - 1
    tail = emit.emit("Slice", x, starts=(last,), ends=(0,), axes=(axis,), steps=(-1,))
    signs = emit.constant([1.0, -1.0], emit.type(x)[0])
    return emit.emit("Concat", x, emit.emit("Mul", tail, signs), axis=axis)


def _emit_dft(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x = inputs[0]
    axis, size, bins = _dft_sizes(call)
    rank = call.rank()
    perm = [a for a in range(rank - 1) if a != axis] + [axis, rank - 1]
    x = emit.emit("Transpose", x, perm=tuple(perm))
    if call["inverse"] and call["onesided"]:
        x = _mirrored(emit, x, size)
    else:
        x = _resized(emit, x, rank - 2, size)
    imaginary = None
    if emit.type(x)[1][-1] == 2:
        real, imaginary = emit.emit("Split", x, axis=rank - 1, split=(1, 1))
        imaginary = emit.emit("Squeeze", imaginary, axes=(rank - 1,))
    else:
        real = x
    real = emit.emit("Squeeze", real, axes=(rank - 1,))
    parts = transform(emit, real, imaginary, bins, bool(call["inverse"]))
    shown = parts[:1] if call["inverse"] and call["onesided"] else parts
    columns = [emit.emit("Unsqueeze", part, axes=(rank - 1,)) for part in shown]
    y = columns[0] if len(columns) == 1 else emit.emit("Concat", *columns, axis=rank - 1)
    back = tuple(perm.index(a) for a in range(rank))
    return emit.emit("Transpose", y, perm=back)


def _stft_sizes(call: Call) -> tuple[int, int, int]:
    """(frames, length of a frame, bins)."""
    step = scalar_operand(call.static("frame_step"))
    length = scalar_operand(call["frame_length"])
    if length is None:
        length = call.shape(1)[0] if call.has(1) else None
    if length is None:
        raise AttributeValueError("one of the inputs 'window' and 'frame_length' is required")
    signal = call.shape()[1]
    if not extents.is_static(signal):
        raise ShapeError("the length of the signal must be static")
    frames = (signal - length) // step + 1
    return frames, length, length // 2 + 1 if call["onesided"] else length


def _stft(call: Call) -> list[TensorType]:
    frames, _, bins = _stft_sizes(call)
    return [(call.dtype(), (call.shape()[0], frames, bins, 2))]


def _emit_stft(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    signal, window = (*inputs, None)[:2]
    frames, length, bins = _stft_sizes(call)
    step = scalar_operand(call["frame_step"])
    shape = call.shape()
    imaginary = None
    if len(shape) == 3 and shape[2] == 2:
        signal, imaginary = emit.emit("Split", signal, axis=2, split=(1, 1))
        imaginary = emit.emit("Squeeze", imaginary, axes=(2,))
    if len(emit.type(signal)[1]) == 3:
        signal = emit.emit("Squeeze", signal, axes=(2,))
    require_writable("frames of samples", frames, length)
    picks = emit.constant([[f * step + i for i in range(length)] for f in range(frames)], "int64")

    def framed(part: Any) -> Any:
        if part is None:
            return None
        cut = emit.emit("Gather", part, picks, axis=1)
        return cut if window is None else emit.emit("Mul", cut, window)

    parts = transform(emit, framed(signal), framed(imaginary), bins, False)
    columns = [emit.emit("Unsqueeze", part, axes=(3,)) for part in parts]
    return emit.emit("Concat", *columns, axis=3)


def _mel(call: Call) -> list[TensorType]:
    length = scalar_operand(call.static("dft_length"))
    return [
        (call["output_datatype"], (length // 2 + 1, scalar_operand(call.static("num_mel_bins"))))
    ]


def _emit_mel(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    bins, length, rate, low, high = (
        scalar_operand(call[name])
        for name in (
            "num_mel_bins",
            "dft_length",
            "sample_rate",
            "lower_edge_hertz",
            "upper_edge_hertz",
        )
    )
    rows = length // 2 + 1
    require_writable("a matrix of frequencies and mel bins", rows, bins + 2)
    ends = emit.constant([1.0 + low / 700.0, 1.0 + high / 700.0], "float64")
    edges = emit.emit("Mul", emit.emit("Log10", ends), emit.constant(2595.0, "float64"))
    first, last = emit.emit("Split", edges, axis=0, split=(1, 1))
    step = emit.emit("Div", emit.emit("Sub", last, first), emit.constant(bins + 2.0, "float64"))
    count = emit.constant([float(i) for i in range(bins + 2)], "float64")
    points = emit.emit("Add", emit.emit("Mul", count, step), first)
    # 10^(m / 2595), written with the exponential function.
    exponent = emit.emit("Mul", points, emit.constant(2.302585092994046 / 2595.0, "float64"))
    hertz = emit.emit(
        "Mul",
        emit.emit("Sub", emit.emit("Exp", exponent), emit.constant(1.0, "float64")),
        emit.constant(700.0, "float64"),
    )
    scaled = emit.emit("Mul", hertz, emit.constant(length + 1.0, "float64"))
    places = emit.emit("Floor", emit.emit("Div", scaled, emit.constant(float(rate), "float64")))

    def part(start: int) -> Any:
        return emit.emit(
            "Slice", places, starts=(start,), ends=(start + bins,), axes=(0,), steps=(1,)
        )

    left, centre, right = part(0), part(1), part(2)
    row = emit.constant([[float(i)] for i in range(rows)], "float64")
    one, zero = emit.constant(1.0, "float64"), emit.constant(0.0, "float64")
    up = emit.emit("Div", emit.emit("Sub", row, left), emit.emit("Sub", centre, left))
    down = emit.emit("Div", emit.emit("Sub", right, row), emit.emit("Sub", right, centre))
    flat = emit.emit("Equal", centre, left)
    rising = emit.emit(
        "And",
        emit.emit("GreaterOrEqual", row, left),
        emit.emit("LessOrEqual", row, centre),
    )
    falling = emit.emit(
        "And", emit.emit("GreaterOrEqual", row, centre), emit.emit("Less", row, right)
    )
    value = emit.emit("Where", rising, up, zero)
    at_centre = emit.emit("And", flat, emit.emit("Equal", row, centre))
    value = emit.emit("Where", falling, down, value)
    value = emit.emit("Where", at_centre, one, value)
    return emit.emit("Cast", value, to=call["output_datatype"])


_WINDOW = {"periodic": integer(1), "output_datatype": dtype_name("float32")}
SPECS = [
    operator(
        name,
        "@size",
        "output",
        _window,
        _WINDOW,
        since_version=17,
        decompose=_emit_window,
        doc=f"The window {a:.4g} + {b:.4g} cos(2πi/n) + {c:.4g} cos(4πi/n).",
    )
    for name, (a, b, c) in _WINDOWS.items()
]
SPECS += [
    operator(
        "DFT",
        "input @dft_length? @axis?",
        "output",
        _dft,
        {"inverse": integer(0), "onesided": integer(0)},
        since_version=20,
        decompose=_emit_dft,
        determinism=CHAIN,
        doc="The discrete Fourier transform along an axis.",
    ),
    operator(
        "STFT",
        "signal @frame_step window? @frame_length?",
        "output",
        _stft,
        {"onesided": integer(1)},
        since_version=17,
        decompose=_emit_stft,
        determinism=CHAIN,
        doc="The Fourier transform of each frame of a signal.",
    ),
    operator(
        "MelWeightMatrix",
        "@num_mel_bins @dft_length @sample_rate @lower_edge_hertz @upper_edge_hertz",
        "output",
        _mel,
        {"output_datatype": dtype_name("float32")},
        since_version=17,
        decompose=_emit_mel,
        doc="Weights that gather the bins of a spectrum into mel bands.",
    ),
]
