"""Sampling at computed positions: GridSample, AffineGrid and deformable convolution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.products import CHAIN
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, integers, text
from onemodel_kernels.ops.written import require_writable

TAPS = "Weights from rounded steps; taps added in row-major order; exact."
CUBIC = -0.75


def _number(emit: Emitter, like: Any, value: float) -> Any:
    return emit.constant(value, emit.type(like)[0])


def _clamped(emit: Emitter, x: Any, low: float, high: float) -> Any:
    return emit.emit("Min", emit.emit("Max", x, _number(emit, x, low)), _number(emit, x, high))


def _reflected(emit: Emitter, x: Any, low: float, high: float) -> Any:
    """``x`` folded back and forth into ``low … high``."""
    span = high - low
    if span <= 0:
        return emit.emit("Add", emit.emit("Mul", x, _number(emit, x, 0.0)), _number(emit, x, low))
    away = emit.emit("Abs", emit.emit("Sub", x, _number(emit, x, low)))
    within = emit.emit("Mod", away, _number(emit, x, 2 * span), fmod=1)
    back = emit.emit("Sub", _number(emit, x, 2 * span), within)
    folded = emit.emit("Where", emit.emit("Greater", within, _number(emit, x, span)), back, within)
    return emit.emit("Add", folded, _number(emit, x, low))


class _Axis:
    """One spatial axis: positions, and the taps around them as (index, weight)."""

    def __init__(
        self, emit: Emitter, size: int, padding: str, align: bool, mode: str, position: Any
    ) -> None:
        self.emit = emit
        self.size = size
        self.padding = padding
        self.low, self.high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        if mode == "nearest":
            position = emit.emit("Round", position)
        if padding == "border":
            position = _clamped(emit, position, 0.0, size - 1.0)
        elif padding == "reflection":
            position = _reflected(emit, position, self.low, self.high)
        self.taps = self._taps(position, mode)

    def _taps(self, x: Any, mode: str) -> list[tuple[Any, Any, Any]]:
        emit = self.emit
        if mode == "nearest":
            return [self._tap(x, None)]
        base = emit.emit("Floor", x)
        part = emit.emit("Sub", x, base)
        one = _number(emit, x, 1.0)
        if mode == "linear":
            weights = [emit.emit("Sub", one, part), part]
            return [self._tap(self._moved(base, i), w) for i, w in enumerate(weights)]
        rest = emit.emit("Sub", one, part)
        weights = [
            self._outer(emit.emit("Add", part, one)),
            self._inner(part),
            self._inner(rest),
            self._outer(emit.emit("Add", rest, one)),
        ]
        return [self._tap(self._moved(base, i - 1), w) for i, w in enumerate(weights)]

    def _moved(self, base: Any, by: int) -> Any:
        return base if by == 0 else self.emit.emit("Add", base, _number(self.emit, base, float(by)))

    def _inner(self, x: Any) -> Any:
        """((a + 2)x - (a + 3))x² + 1."""
        emit = self.emit
        y = emit.emit("Mul", x, _number(emit, x, CUBIC + 2))
        y = emit.emit("Sub", y, _number(emit, x, CUBIC + 3))
        y = emit.emit("Mul", emit.emit("Mul", y, x), x)
        return emit.emit("Add", y, _number(emit, x, 1.0))

    def _outer(self, x: Any) -> Any:
        """((ax - 5a)x + 8a)x - 4a."""
        emit = self.emit
        y = emit.emit("Mul", x, _number(emit, x, CUBIC))
        y = emit.emit("Sub", y, _number(emit, x, 5 * CUBIC))
        y = emit.emit("Add", emit.emit("Mul", y, x), _number(emit, x, 8 * CUBIC))
        return emit.emit("Sub", emit.emit("Mul", y, x), _number(emit, x, 4 * CUBIC))

    def _tap(self, index: Any, weight: Any) -> tuple[Any, Any, Any]:
        """(index inside the axis, weight, whether it was inside); ``None`` for always."""
        emit = self.emit
        inside = None
        if self.padding == "zeros":
            inside = emit.emit(
                "And",
                emit.emit("GreaterOrEqual", index, _number(emit, index, 0.0)),
                emit.emit("LessOrEqual", index, _number(emit, index, self.size - 1.0)),
            )
        elif self.padding == "reflection":
            index = emit.emit("Floor", _reflected(emit, index, self.low, self.high))
        index = _clamped(emit, index, 0.0, self.size - 1.0)
        # NaN positions read the first element: every comparison with NaN is false.
        known = emit.emit("Equal", index, index)
        index = emit.emit("Where", known, index, _number(emit, index, 0.0))
        return emit.emit("Cast", index, to="int64"), weight, inside


def sample(
    emit: Emitter, x: Any, positions: Sequence[Any], padding: str, align: bool, mode: str
) -> Any:
    """Values of ``x (N, C, spatial…)`` at ``positions`` (one of shape ``(N, Q)`` an axis): ``(N, Q,
    C)``.
    """
    dtype, shape = emit.type(x)
    batch, channels, *sizes = shape
    points = extents.product(sizes)
    rows = emit.emit("Reshape", x, shape=(batch, channels, points), allowzero=1)
    rows = emit.emit("Transpose", rows, perm=(0, 2, 1))
    axes = [
        _Axis(emit, size, padding, align, mode, position)
        for size, position in zip(sizes, positions, strict=True)
    ]
    total = None
    for taps in product(*(axis.taps for axis in axes)):
        flat, weight, inside = None, None, None
        for (index, part, within), size in zip(taps, sizes, strict=True):
            if flat is None:
                flat = index
            else:
                flat = emit.emit("Add", emit.emit("Mul", flat, emit.constant(size, "int64")), index)
            if part is not None:
                weight = part if weight is None else emit.emit("Mul", weight, part)
            if within is not None:
                inside = within if inside is None else emit.emit("And", inside, within)
        value = emit.emit("GatherND", rows, emit.emit("Unsqueeze", flat, axes=(2,)), batch_dims=1)
        if weight is not None:
            value = emit.emit("Mul", value, emit.emit("Unsqueeze", weight, axes=(2,)))
        if inside is not None:
            inside = emit.emit("Unsqueeze", inside, axes=(2,))
            value = emit.emit("Where", inside, value, emit.constant(0.0, dtype))
        total = value if total is None else emit.emit("Add", total, value)
    return total


def _grid_sample(call: Call) -> list[TensorType]:
    x, grid = call.shape(0), call.shape(1)
    if len(grid) != len(x) or grid[-1] != len(x) - 2:
        raise ShapeError(f"the grid {grid} must be (N, out…, {len(x) - 2}) for an input {x}")
    extents.unify(x[0], grid[0], "the batches of the input and the grid")
    if call["mode"] not in ("linear", "nearest", "cubic"):
        raise AttributeValueError(f"mode must be linear, nearest or cubic, not {call['mode']!r}")
    if call["padding_mode"] not in ("zeros", "border", "reflection"):
        raise AttributeValueError(f"unknown padding_mode {call['padding_mode']!r}")
    return [(call.dtype(), (*x[:2], *grid[1:-1]))]


def _emit_grid_sample(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, grid = inputs[:2]
    (_, target) = _grid_sample(call)[0]
    shape = call.shape()
    axes = len(shape) - 2
    align = bool(call["align_corners"])
    points = extents.product(target[2:])
    dtype = call.dtype()
    if call.dtype(1) != dtype:
        grid = emit.emit("Cast", grid, to=dtype)
    flat = emit.emit("Reshape", grid, shape=(shape[0], points, axes), allowzero=1)
    positions = []
    for axis, size in enumerate(shape[2:]):
        column = emit.emit("Gather", flat, emit.constant(axes - 1 - axis, "int64"), axis=2)
        column = emit.emit("Add", column, emit.constant(1.0, dtype))
        half = emit.constant(2.0, dtype)
        if align:
            column = emit.emit("Div", column, half)
            column = emit.emit("Mul", column, emit.constant(size - 1.0, dtype))
        else:
            column = emit.emit("Mul", column, emit.constant(float(size), dtype))
            column = emit.emit("Sub", column, emit.constant(1.0, dtype))
            column = emit.emit("Div", column, half)
        positions.append(column)
    y = sample(emit, x, positions, call["padding_mode"], align, call["mode"])
    y = emit.emit("Transpose", y, perm=(0, 2, 1))
    return emit.emit("Reshape", y, shape=tuple(target), allowzero=1)


def _affine_grid(call: Call) -> list[TensorType]:
    size = tuple(call.static("size"))
    return [(call.dtype(), (size[0], *size[2:], len(size) - 2))]


def _emit_affine_grid(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    theta = inputs[0]
    dtype = call.dtype()
    batch, _, *sizes = call["size"]
    axes = len(sizes)
    columns = []
    for axis in range(axes - 1, -1, -1):
        n = sizes[axis]
        require_writable("a grid along an axis", n)
        if call["align_corners"]:
            marks = [-1.0 + 2.0 * i / (n - 1) if n > 1 else -1.0 for i in range(n)]
        else:
            marks = [(2.0 * i + 1.0) / n - 1.0 for i in range(n)]
        column = emit.constant(marks, dtype)
        form = tuple(n if a == axis else 1 for a in range(axes))
        column = emit.emit("Expand", emit.emit("Reshape", column, shape=form), shape=tuple(sizes))
        columns.append(emit.emit("Reshape", column, shape=(1, -1)))
    points = extents.product(sizes)
    columns.append(emit.emit("Expand", emit.constant([[1.0]], dtype), shape=(1, points)))
    grid = emit.emit("Concat", *columns, axis=0)
    y = emit.emit("Transpose", emit.emit("MatMul", theta, grid), perm=(0, 2, 1))
    return emit.emit("Reshape", y, shape=(batch, *sizes, axes), allowzero=1)


def _deform_sizes(call: Call) -> tuple[Any, ...]:
    shape, kernel = call.shape(), tuple(call.shape(1)[2:])
    if len(shape) != 4:
        raise ShapeError(f"the input must have 4 axes, but its shape is {shape}")
    strides = tuple(call["strides"] or (1, 1))
    dilations = tuple(call["dilations"] or (1, 1))
    pads = tuple(call["pads"] or (0, 0, 0, 0))
    sizes = tuple(
        extents.window(shape[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[2 + i])
        for i in range(2)
    )
    return kernel, strides, dilations, pads, sizes


def _deform(call: Call) -> list[TensorType]:
    *_, sizes = _deform_sizes(call)
    return [(call.dtype(), (call.shape()[0], call.shape(1)[0], *sizes))]


def _emit_deform(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """Samples every tap of every window, then one product of matrices a group."""
    x, w, offset, bias, mask = (*inputs, None, None)[:5]
    dtype = call.dtype()
    (kh, kw), strides, dilations, pads, (oh, ow) = _deform_sizes(call)
    batch, channels, _, _ = call.shape()
    groups, parts = call["group"], call["offset_group"]
    taps, points = kh * kw, oh * ow
    offset = emit.emit("Reshape", offset, shape=(batch, parts, taps, 2, points), allowzero=1)
    if mask is not None:
        mask = emit.emit("Reshape", mask, shape=(batch, parts, taps * points, 1), allowzero=1)
    require_writable("positions of taps", taps, points)
    marks: tuple[list[list[float]], list[list[float]]] = ([], [])
    for i, j in product(range(kh), range(kw)):
        places = list(product(range(oh), range(ow)))
        marks[0].append([float(a * strides[0] - pads[0] + i * dilations[0]) for a, _ in places])
        marks[1].append([float(b * strides[1] - pads[1] + j * dilations[1]) for _, b in places])
    per_part = channels // parts
    sampled = []
    for part in range(parts):
        own = emit.emit("Gather", offset, emit.constant(part, "int64"), axis=1)
        positions = []
        for axis in range(2):
            moved = emit.emit("Gather", own, emit.constant(axis, "int64"), axis=2)
            moved = emit.emit("Add", moved, emit.constant(marks[axis], dtype))
            positions.append(emit.emit("Reshape", moved, shape=(batch, taps * points), allowzero=1))
        piece = emit.emit(
            "Slice", x, starts=(part * per_part,), ends=((part + 1) * per_part,), axes=(1,)
        )
        values = sample(emit, piece, positions, "zeros", True, "linear")
        if mask is not None:
            values = emit.emit(
                "Mul", values, emit.emit("Gather", mask, emit.constant(part, "int64"), axis=1)
            )
        sampled.append(values)
    values = sampled[0] if parts == 1 else emit.emit("Concat", *sampled, axis=2)
    values = emit.emit("Reshape", values, shape=(batch, taps, points, channels), allowzero=1)
    values = emit.emit("Transpose", values, perm=(0, 3, 1, 2))
    inner = channels // groups * taps
    values = emit.emit("Reshape", values, shape=(batch, groups, inner, points), allowzero=1)
    out = call.shape(1)[0]
    w = emit.emit("Reshape", w, shape=(groups, out // groups, inner))
    y = emit.emit(
        "Reshape", emit.emit("MatMul", w, values), shape=(batch, out, oh, ow), allowzero=1
    )
    if bias is not None:
        y = emit.emit("Add", y, emit.emit("Reshape", bias, shape=(out, 1, 1)))
    return y


SPECS = [
    operator(
        "GridSample",
        "X grid",
        "Y",
        _grid_sample,
        {"align_corners": integer(0), "padding_mode": text("zeros"), "mode": text("linear")},
        since_version=20,
        decompose=_emit_grid_sample,
        determinism=TAPS,
        doc="The input at the positions of a grid over -1 … 1.",
    ),
    operator(
        "AffineGrid",
        "theta @size",
        "grid",
        _affine_grid,
        {"align_corners": integer(0)},
        since_version=20,
        decompose=_emit_affine_grid,
        determinism=CHAIN,
        doc="A regular grid over -1 … 1 mapped by affine matrices.",
    ),
    operator(
        "DeformConv",
        "X W offset B? mask?",
        "Y",
        _deform,
        {
            "strides": integers(),
            "pads": integers(),
            "offset_group": integer(1),
            "kernel_shape": integers(),
            "group": integer(1),
            "dilations": integers(),
        },
        since_version=19,
        decompose=_emit_deform,
        determinism=TAPS + " " + CHAIN,
        doc="A convolution whose taps are moved by offsets and weighted by a mask.",
    ),
]
