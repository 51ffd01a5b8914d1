"""Operands of one operator: numbers become 0-d tensors, and all get the dtype that PyTorch's rules say."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.errors import DtypeError
from onemodel_tensors.dtypes import (
    FLOATING,
    HALVES,
    INTEGERS,
    category,
    default_dtype,
    get_default_dtype,
    promote_types,
)
from onemodel_tensors.layouts import LayoutError, is_blocked
from onemodel_tensors.ops.arrays import number
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = ["floating", "operands", "result_type", "scalar"]

_scalars: dict[tuple[Any, str], Tensor] = {}
_SCALAR_LIMIT = 1024


def scalar(value: Any, dtype: str) -> Tensor:
    """A 0-d tensor of a number or a symbolic size; shared by all callers, never written to."""
    if isinstance(value, SymbolicSize):
        recorder = value.recorder
        if recorder is not None:
            return recorder.size_tensor(value, dtype)
        value = value.example
    if value == 0:
        return Tensor(number(value, dtype))
    key = (value, dtype)
    found = _scalars.get(key)
    if found is None:
        if len(_scalars) >= _SCALAR_LIMIT:
            _scalars.clear()
        found = _scalars[key] = Tensor(number(value, dtype))
    return found


def plain_number(value: Any, operator: str) -> Any:
    """A Python number, or a symbolic size, of an operand that is no tensor."""
    if isinstance(value, (SymbolicSize, float, int)):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    if is_blocked(value):
        raise LayoutError(
            f"{operator}: expected tensors of one layout, got a plain one and one of shape {value.shape} in "
            f"{value.layout}; convert one of them with to_blocked() or to_plain()"
        )
    raise TypeError(
        f"{operator}: expected a tensor or a number, got {type(value).__name__}; "
        "from_numpy() and tensor() make tensors of arrays and sequences"
    )


def result_type(*values: Any) -> str:
    """The dtype of an operator's result on these tensors and numbers."""
    with_axes = without_axes = numbers = None
    for value in values:
        if isinstance(value, Tensor):
            dtype = value._array.dtype
            if value._array.ndim:
                with_axes = dtype if with_axes is None else promote_types(with_axes, dtype)
            else:
                without_axes = dtype if without_axes is None else promote_types(without_axes, dtype)
        else:
            dtype = default_dtype(value)
            numbers = dtype if numbers is None else promote_types(numbers, dtype)
    return _combined(with_axes, _combined(without_axes, numbers)) or get_default_dtype()


def _combined(higher: str | None, lower: str | None) -> str | None:
    if higher is None or lower is None:
        return higher or lower
    return higher if category(higher) >= category(lower) else promote_types(higher, lower)


def operands(operator: str, *values: Any, dtype: str | None = None) -> tuple[Tensor, ...]:
    """The operands as tensors of one dtype.

    Args:
        operator: the operator's name, for errors.
        values: tensors, numbers, symbolic sizes.
        dtype: the common dtype if it is not the one that the rules give.

    Raises:
        TypeError: an operand is neither tensor nor number.
    """
    if dtype is None and len(values) == 2:
        a, b = values
        kind = type(b)
        if (kind is float or kind is int) and isinstance(a, Tensor):
            own = a._array.dtype
            if own in FLOATING or (kind is int and own in INTEGERS):
                return a, scalar(b, own)
    checked = [v if isinstance(v, Tensor) else plain_number(v, operator) for v in values]
    common = dtype or result_type(*checked)
    return tuple(
        [to_dtype(v, common) if isinstance(v, Tensor) else scalar(v, common) for v in checked]
    )


def floating(input: Any, operator: str) -> Tensor:
    """The operand of a function of real numbers: integers and bools become the default dtype.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"{operator}: expected a tensor, got {type(input).__name__}")
    if input._array.dtype in FLOATING:
        return input
    return to_dtype(input, get_default_dtype())


def require_floating(input: Tensor, operator: str) -> None:
    """Raise unless a tensor has a floating-point dtype.

    Raises:
        DtypeError: it has an integer or bool one.
    """
    if input._array.dtype not in FLOATING:
        raise DtypeError(
            f"{operator}: expected a floating-point tensor, got {input._array.dtype}; "
            "use .float() first"
        )


def refuse_half(input: Tensor, operator: str) -> None:
    """Raise for a dtype that is for storage only.

    Raises:
        DtypeError: the dtype is float16 or bfloat16.
    """
    if input._array.dtype in HALVES:
        raise DtypeError(
            f"{operator}: expected float32 or float64, got {input._array.dtype}, which is for "
            "storage; use .float() first"
        )
