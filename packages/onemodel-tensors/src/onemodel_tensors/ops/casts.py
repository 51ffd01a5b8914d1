"""Conversions between dtypes, and copies."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.devices import require_cpu
from onemodel_tensors.dtypes import DTYPE_NAMES, FLOATING, dtype_of
from onemodel_tensors.ops.arrays import cast
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["clone", "contiguous", "detach", "to"]


def to_dtype(input: Tensor, dtype: str) -> Tensor:
    """The tensor in another dtype; itself when it has it.

    Float to integer truncates; what does not fit, and NaN, gives an unspecified value. Anything to
    bool is ``x != 0``. The gradient is cast back, and stops at integers.
    """
    source = input._array.dtype
    if source == dtype:
        return input
    array = kernel("Cast", to=dtype)(input._array)
    differentiable = source in FLOATING and dtype in FLOATING
    return recorded(
        "Cast",
        (input,),
        {"to": dtype},
        array,
        _cast_gradient if differentiable else None,
        (source,),
    )


def _cast_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (cast(g, record.saved[0]),)


def cast_like(source: Tensor, target: Tensor, operator: str) -> Tensor:
    """The source, which must have the target's dtype.

    Raises:
        DtypeError: it has another.
    """
    if source._array.dtype != target._array.dtype:
        raise DtypeError(
            f"{operator}: expected a source of dtype {target._array.dtype} as the input, got {source._array.dtype}; "
            "use .to(input.dtype)"
        )
    return source


def to(input: Tensor, *args: Any, dtype: Any = None, copy: bool = False, **_: Any) -> Tensor:
    """The tensor in another dtype: ``to(dtype)``, ``to(other_tensor)``, ``to(dtype=…)``.

    A device is accepted where it is ``"cpu"``; ``non_blocking`` has no effect.

    Args:
        input: any tensor.
        args: a dtype, a device name or a tensor whose dtype is meant.
        dtype: the dtype.
        copy: copy even if the dtype is the same.
    """
    wanted = dtype
    for value in args:
        if isinstance(value, Tensor):
            wanted = value.dtype
        elif isinstance(value, str) and value not in DTYPE_NAMES:
            require_cpu(value, "to")
        elif not isinstance(value, bool):
            wanted = value
    result = input if wanted is None else to_dtype(input, dtype_of(wanted))
    return clone(result) if copy and result is input else result


def type(input: Tensor, dtype: Any = None) -> Any:
    """The tensor in another dtype; without one, the name of its dtype."""
    return input._array.dtype if dtype is None else to_dtype(input, dtype_of(dtype))


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return to_dtype(input, other._array.dtype)


def to_float32(input: Tensor) -> Tensor:
    """The tensor as float32."""
    return to_dtype(input, "float32")


def to_float64(input: Tensor) -> Tensor:
    """The tensor as float64."""
    return to_dtype(input, "float64")


def to_float16(input: Tensor) -> Tensor:
    """The tensor as float16."""
    return to_dtype(input, "float16")


def to_bfloat16(input: Tensor) -> Tensor:
    """The tensor as bfloat16."""
    return to_dtype(input, "bfloat16")


def to_int32(input: Tensor) -> Tensor:
    """The tensor as int32."""
    return to_dtype(input, "int32")


def to_int16(input: Tensor) -> Tensor:
    """The tensor as int16."""
    return to_dtype(input, "int16")


def to_int64(input: Tensor) -> Tensor:
    """The tensor as int64."""
    return to_dtype(input, "int64")


def to_bool(input: Tensor) -> Tensor:
    """The tensor as bool: ``x != 0``."""
    return to_dtype(input, "bool")


def to_int8(input: Tensor) -> Tensor:
    """The tensor as int8."""
    return to_dtype(input, "int8")


def to_uint8(input: Tensor) -> Tensor:
    """The tensor as uint8."""
    return to_dtype(input, "uint8")


def cpu(input: Tensor) -> Tensor:
    """The tensor itself: there is no other device."""
    return input


def clone(input: Tensor) -> Tensor:
    """A copy with its own storage, contiguous; gradients pass through it."""
    array = input._array.copy()
    return recorded("Identity", (input,), NO_ATTRIBUTES, array, identity_gradient)


def contiguous(input: Tensor) -> Tensor:
    """The tensor in row-major order: itself if it is, else a copy."""
    if input._array.is_contiguous:
        return input
    array = input._array.contiguous()
    return recorded("Identity", (input,), NO_ATTRIBUTES, array, identity_gradient)


def identity_gradient(_: BackwardRecord, g: Array) -> Gradients:
    """The gradient of a copy."""
    return (g,)


def detach(input: Tensor) -> Tensor:
    """A tensor that shares the storage but not the history.

    While a trace records, a traced tensor is returned itself: a graph has no gradients to stop.
    """
    if input._asked() is not None:
        return input
    return Tensor(input._array)
