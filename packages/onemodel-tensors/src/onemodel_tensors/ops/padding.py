"""Padding, and cropping by negative amounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["pad"]

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Elements added before and after axes, or taken away.

    Args:
        input: any tensor.
        pad: (before, after) pairs, the last axis first, as many as axes are padded.
        mode: ``"constant"``, ``"reflect"`` (without the edge), ``"replicate"`` (of the edge) or ``"circular"``.
        value: what is added in constant mode; 0 if ``None``.

    Raises:
        ShapeError: more pairs than axes, or more elements taken away or reflected than there are.
        AttributeValueError: another mode, an odd number of amounts.
    """
    amounts = [int(p) for p in pad]
    x = input._array
    if mode not in _MODES:
        raise AttributeValueError(f"pad: expected mode in {sorted(_MODES)}, got {mode!r}")
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise ShapeError(
            f"pad: expected (before, after) pairs for at most {x.ndim} axes, got {tuple(amounts)}"
        )
    count = len(amounts) // 2
    axes = tuple(range(x.ndim - count, x.ndim))
    before, after = amounts[0::2][::-1], amounts[1::2][::-1]
    for axis, b, a in zip(axes, before, after):
        extent = x.shape[axis]
        limit = {"reflect": extent - 1, "circular": extent}.get(mode)
        if b + a + extent < 0 or min(b, a) < -extent or (limit is not None and max(b, a) > limit):
            raise ShapeError(
                f"pad: expected amounts that axis {axis} of extent {extent} allows in {mode} mode, got ({b}, {a})"
            )
        if mode != "constant" and extent == 0 and max(b, a) > 0:
            raise ShapeError(f"pad: expected elements to repeat, but axis {axis} has none")
    attributes: dict[str, Any] = {"pads": (*before, *after), "axes": axes, "mode": _MODES[mode]}
    if mode == "constant":
        attributes["value"] = _typed(value, x.dtype)
    out = kernel("Pad", **attributes)(x)
    gradient = _pad_gradient if x.dtype in FLOATING else None
    return recorded("Pad", (input,), attributes, out, gradient, (x.shape,))


def _typed(value: float | None, dtype: str) -> float:
    if dtype in FLOATING:
        return float(value or 0.0)
    number = 0 if value is None else value
    if number != int(number):
        raise AttributeValueError(f"pad: expected a value that {dtype} can hold, got {value}")
    return int(number)


def _pad_gradient(record: BackwardRecord, g: Array) -> Gradients:
    attributes = {k: v for k, v in record.attributes.items() if k != "value"}
    return (kernel("PadGrad", input_shape=record.saved[0], **attributes)(g),)
