"""New tensors of given values. Sizes may be symbolic: the result is then traced, as it depends on an input's shape."""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors.apply import kernel, recorded, recorder_of
from onemodel_tensors.devices import require_cpu
from onemodel_tensors.dtypes import default_dtype, dtype_of, get_default_dtype
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.comparison import eq
from onemodel_tensors.ops.expanding import expand
from onemodel_tensors.ops.promotion import result_type, scalar
from onemodel_tensors.ops.reshaping import unsqueeze
from onemodel_tensors.ops.sizes import example, examples, listed, size_of, sizes_of
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "scalar_tensor",
    "zeros",
    "zeros_like",
]


def _filled(sizes: tuple[Any, ...], value: Any, dtype: str, requires_grad: bool) -> Tensor:
    if recorder_of((), sizes) is not None:
        return expand(scalar(value, dtype), *sizes)
    return Tensor(Array.full(examples(sizes), value, dtype), requires_grad)


def _dtype(dtype: Any) -> str:
    return get_default_dtype() if dtype is None else dtype_of(dtype)


def zeros(
    *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None, **given: Any
) -> Tensor:
    """A tensor of zeros.

    Args:
        size: the extents, as ints or as one sequence.
        dtype: the default dtype if ``None``.
        requires_grad: whether gradients are to be computed for it.
        device: accepted where it is ``"cpu"``.
        given: the extents as ``size=…``.
    """
    if given:
        size = listed(size, given, "size", "zeros")
    require_cpu(device, "zeros")
    return _filled(sizes_of(size), 0, _dtype(dtype), requires_grad)


def ones(
    *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None, **given: Any
) -> Tensor:
    """A tensor of ones; see :func:`zeros`."""
    if given:
        size = listed(size, given, "size", "ones")
    require_cpu(device, "ones")
    return _filled(sizes_of(size), 1, _dtype(dtype), requires_grad)


def empty(
    *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None, **given: Any
) -> Tensor:
    """A tensor of zeros: memory is never shown as it happened to be."""
    if given:
        size = listed(size, given, "size", "empty")
    require_cpu(device, "empty")
    return _filled(sizes_of(size), 0, _dtype(dtype), requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """A tensor of one value; its dtype is the value's if none is given."""
    require_cpu(device, "full")
    if isinstance(fill_value, Tensor):
        wanted = fill_value.dtype if dtype is None else dtype_of(dtype)
        return expand(fill_value.to(wanted), *sizes_of((size,))).clone()
    wanted = default_dtype(fill_value) if dtype is None else dtype_of(dtype)
    if isinstance(fill_value, SymbolicSize):
        return expand(scalar(fill_value, wanted), *sizes_of((size,)))
    return _filled(sizes_of((size,)), fill_value, wanted, requires_grad)


def _like(input: Tensor, value: Any, dtype: Any, requires_grad: bool) -> Tensor:
    wanted = input.dtype if dtype is None else dtype_of(dtype)
    if isinstance(value, Tensor | SymbolicSize):
        return full(input.shape, value, dtype=wanted)
    return _filled(input.shape, value, wanted, requires_grad)


def zeros_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Zeros of a tensor's shape and dtype."""
    require_cpu(device, "zeros_like")
    return _like(input, 0, dtype, requires_grad)


def ones_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Ones of a tensor's shape and dtype."""
    require_cpu(device, "ones_like")
    return _like(input, 1, dtype, requires_grad)


empty_like = zeros_like


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """One value in a tensor's shape and dtype."""
    require_cpu(device, "full_like")
    return _like(input, fill_value, dtype, requires_grad)


def new_zeros(
    input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Zeros of the tensor's dtype in another shape."""
    require_cpu(device, "new_zeros")
    return zeros(*size, dtype=dtype or input.dtype, requires_grad=requires_grad)


def new_ones(
    input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Ones of the tensor's dtype in another shape."""
    require_cpu(device, "new_ones")
    return ones(*size, dtype=dtype or input.dtype, requires_grad=requires_grad)


def new_empty(
    input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Zeros of the tensor's dtype in another shape."""
    require_cpu(device, "new_empty")
    return zeros(*size, dtype=dtype or input.dtype, requires_grad=requires_grad)


def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """One value of the tensor's dtype in another shape."""
    require_cpu(device, "new_full")
    return full(size, fill_value, dtype=dtype or input.dtype, requires_grad=requires_grad)


def new_tensor(
    input: Tensor, data: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """A tensor of the same dtype with other values."""
    require_cpu(device, "new_tensor")
    from onemodel_tensors.interop import tensor

    return tensor(data, dtype or input.dtype, requires_grad)


def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """``start, start + step, …`` before ``end``; from 0 if only one number is given.

    Args:
        start: the first number, or the end. Symbolic sizes are allowed.
        end: where to stop, exclusive.
        step: the distance, not 0.
        dtype: int64 for ints, the default dtype for floats, if ``None``.
        requires_grad: whether gradients are to be computed for it.
        device: accepted where it is ``"cpu"``.

    Raises:
        AttributeValueError: ``step`` is 0.
    """
    require_cpu(device, "arange")
    if end is None:
        start, end = 0, start
    bounds = [_bound(value) for value in (start, end, step)]
    wanted = result_type(*bounds) if dtype is None else dtype_of(dtype)
    numbers = [example(b) if isinstance(b, SymbolicSize) else b for b in bounds]
    if numbers[2] == 0:
        raise AttributeValueError("arange: expected a step other than 0")
    run = kernel("Range", start=numbers[0], limit=numbers[1], delta=numbers[2], dtype=wanted)
    array = run()
    if recorder_of((), bounds) is None:
        return Tensor(array, requires_grad)
    attributes = {"start": bounds[0], "limit": bounds[1], "delta": bounds[2], "dtype": wanted}
    return recorded("Range", (), attributes, array, None)


def _bound(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.item()
    return size_of(value) if isinstance(value, SymbolicSize) else value


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, evenly apart."""
    require_cpu(device, "linspace")
    from onemodel_tensors.interop import tensor

    count = int(steps)
    if count < 0:
        raise AttributeValueError(f"linspace: expected steps of at least 0, got {steps}")
    width = (end - start) / (count - 1) if count > 1 else 0.0
    half = count // 2
    values = [
        start + width * i if i < half or count == 1 else end - width * (count - 1 - i)
        for i in range(count)
    ]
    made = tensor(values, dtype="float64").to(_dtype(dtype))
    return made.requires_grad_() if requires_grad else made


def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None
) -> Tensor:
    """``base`` to the powers that :func:`linspace` gives."""
    from onemodel_tensors.ops.powers import pow

    return pow(base, linspace(start, end, steps, dtype="float64")).to(_dtype(dtype))


def eye(
    n: Any, m: Any = None, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """The matrix (n, m) with ones on the main diagonal; square if ``m`` is not given."""
    require_cpu(device, "eye")
    rows, columns = size_of(n), size_of(n if m is None else m)
    if recorder_of((), (rows, columns)) is not None:
        same = eq(unsqueeze(arange(rows), 1), unsqueeze(arange(columns), 0))
        return to_dtype(same, _dtype(dtype))
    shape = examples((rows, columns))
    return Tensor(kernel("EyeLike", dtype=_dtype(dtype), k=0, shape=shape)(), requires_grad)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Views of 1-D tensors broadcast against each other.

    Args:
        tensors: 1-D tensors, or one sequence of them.
        indexing: ``"ij"`` for the order given, ``"xy"`` to exchange the first two axes.

    Raises:
        AttributeValueError: another indexing.
    """
    if indexing not in ("ij", "xy"):
        raise AttributeValueError(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
    listed = (
        list(tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        else list(tensors)
    )
    listed = [t.reshape(1) if t._array.ndim == 0 else t for t in listed]
    exchange = indexing == "xy" and len(listed) > 1
    if exchange:
        listed[0], listed[1] = listed[1], listed[0]
    shape = [t.shape[0] for t in listed]
    grids = []
    for position, vector in enumerate(listed):
        for _ in range(len(listed) - position - 1):
            vector = vector.unsqueeze(-1)
        grids.append(expand(vector, *shape))
    if exchange:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def scalar_tensor(value: Any, *, dtype: Any = None) -> Tensor:
    """A 0-d tensor."""
    from onemodel_tensors.interop import as_tensor

    return as_tensor(value, _dtype(dtype))
