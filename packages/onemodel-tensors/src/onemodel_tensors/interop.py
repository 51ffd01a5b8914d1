"""To and from numpy, DLPack and text: the only module that touches numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_tensors import recording
from onemodel_tensors.dtypes import default_dtype, dtype_of, get_default_dtype
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["as_tensor", "asarray", "from_dlpack", "from_numpy", "tensor"]


def from_numpy(array: numpy.ndarray[Any, Any], copy: bool = True) -> Tensor:
    """A tensor with the elements of a numpy array.

    Args:
        array: of any supported dtype, any strides.
        copy: ``False`` shares the memory: writes through numpy are then seen by the tensor, but by no version check.

    Raises:
        DtypeError: the dtype is not supported (complex, strings, objects).
    """
    return Tensor(Array.from_numpy(array, copy=copy))


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of any object with ``__dlpack__`` on the CPU."""
    return Tensor(Array.from_dlpack(source))


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with the values of numbers, nested sequences, a numpy array or a tensor; always a copy.

    A symbolic size, or a sequence that holds one, becomes a traced tensor.

    Args:
        data: Python floats become the default dtype, ints int64, bools bool; arrays keep their dtype.
        dtype: the dtype of the result, if another.
        requires_grad: whether gradients are to be computed for it.

    Raises:
        ShapeError: a nested sequence is ragged.
        DtypeError: the values have no supported dtype.
    """
    wanted = None if dtype is None else dtype_of(dtype)
    if isinstance(data, SymbolicSize):
        return as_tensor(data, dtype)
    if recording.active and _holds_sizes(data):
        return _of_sizes(data, wanted)
    if isinstance(data, (bool, int, float)):
        return Tensor(Array.full((), data, wanted or default_dtype(data)), requires_grad)
    if isinstance(data, Tensor):
        data._before_read("tensor()")
        array = data._array.copy()
    elif isinstance(data, numpy.generic | numpy.ndarray):
        array = Array.from_numpy(numpy.asarray(data))
    elif isinstance(data, Array):
        array = data.copy()
    else:
        array = _from_nested(data, wanted)
    if wanted is not None and array.dtype != wanted:
        from onemodel_tensors.apply import kernel

        array = kernel("Cast", to=wanted)(array)
    return Tensor(array, requires_grad)


def _from_nested(data: Sequence[Any], wanted: str | None) -> Array:
    plain = _without_tensors(data)
    try:
        values = numpy.asarray(plain)
    except ValueError:
        raise ShapeError(
            "tensor: expected nested sequences of equal lengths, got a ragged one"
        ) from None
    if values.dtype == object:
        raise DtypeError(
            f"tensor: expected numbers or nested sequences of them, got {type(data).__name__}"
        )
    if values.size == 0 and values.dtype == numpy.float64:
        return Array.full(values.shape, 0, get_default_dtype())
    if values.dtype == numpy.float64 and wanted is None and not _holds_arrays(plain):
        values = values.astype(numpy.dtype(get_default_dtype()))
    return Array.from_numpy(values)


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.__array__()
    if isinstance(data, (list, tuple)):
        return [_without_tensors(item) for item in data]
    return data


def _holds_arrays(data: Any) -> bool:
    if isinstance(data, numpy.ndarray | numpy.generic):
        return True
    return isinstance(data, list) and any(_holds_arrays(item) for item in data)


def _holds_sizes(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_sizes(item) for item in data)
    return isinstance(data, SymbolicSize) and data.recorder is not None


def _of_sizes(data: Sequence[Any], wanted: str | None) -> Tensor:
    """A sequence some of whose numbers are symbolic sizes, as one traced tensor."""
    from onemodel_tensors.ops.joining import stack
    from onemodel_tensors.ops.promotion import result_type

    parts = [tensor(item) for item in data]
    common = wanted or result_type(*parts)
    return stack([part.to(common) for part in parts])


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """As :func:`tensor`, but a tensor of the right dtype is returned itself.

    A symbolic size becomes a traced tensor.
    """
    if isinstance(data, SymbolicSize):
        wanted = "int64" if dtype is None else dtype_of(dtype)
        recorder = data.recorder
        return (
            tensor(data.example, wanted) if recorder is None else recorder.size_tensor(data, wanted)
        )
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return tensor(data, dtype)


asarray = as_tensor


def restored(data: bytes, dtype: str, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    """The tensor that ``pickle`` and ``copy`` stored as bytes."""
    return Tensor(Array.from_buffer(data, dtype, shape).copy(), requires_grad)


def formatted(value: Tensor) -> str:
    """The text of ``repr``: values, and the dtype where it is not the default for them."""
    array = value._array
    if array.dtype == "bfloat16":
        from onemodel_tensors.apply import kernel

        array = kernel("Cast", to="float32")(array)
    body = numpy.array2string(
        array.numpy(),
        separator=", ",
        prefix="tensor(",
        threshold=200,
        precision=4,
        suppress_small=False,
    )
    parts = [body]
    if value.dtype not in ("bool", "int64", get_default_dtype()):
        parts.append(f"dtype={value.dtype}")
    if array.size == 0:
        parts.append(f"shape={array.shape}")
    if value.grad_fn is not None:
        parts.append(f"grad_fn={value.grad_fn.operator}")
    elif value._node is not None:
        parts.append("requires_grad=True")
    return f"tensor({', '.join(parts)})"


def values_of(values: Any) -> Array:
    """The array of ``Tensor(values)``: a new one of the default dtype.

    Raises:
        TypeError: the values are a number, which PyTorch takes as a size, or no values at all.
    """
    if isinstance(values, Tensor):
        return values.detach().clone()._array
    if isinstance(values, (int, float)) or not (
        isinstance(values, (list, tuple)) or hasattr(values, "__array__")
    ):
        raise TypeError(
            f"Tensor: expected a native array or a sequence of numbers, got {type(values).__name__}; tensor() makes "
            "tensors of values, empty() of sizes"
        )
    return tensor(values, dtype=get_default_dtype())._array
