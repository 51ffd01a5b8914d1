"""Sums, means, products, extrema and truth over axes.

``dim=None`` and ``dim=()`` mean all axes. An empty sum is 0, an empty product 1, an empty mean NaN, ``any`` of nothing
false and ``all`` of nothing true; an empty maximum is an error. NaN is the maximum and the minimum of what holds it.

Determinism: every result depends on the elements and their order alone.
"""

from __future__ import annotations

from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, ShapeError
from onemodel_tensors.apply import kernel, recorded
from onemodel_tensors.dtypes import FLOATING, dtype_of
from onemodel_tensors.ops.arrays import (
    DIV,
    EQUAL,
    EXP,
    MUL,
    NOT,
    SUB,
    cast,
    masked,
    number,
    reduce_sum,
    zeros,
)
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.ops.sizes import axes_of, axis_of
from onemodel_tensors.ops.sorting import ValuesAndIndices
from onemodel_tensors.record import BackwardRecord, Gradient, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "prod",
    "sum",
]


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the reduced axes as ones."""
    return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])


def _reduce(
    operator: str,
    input: Tensor,
    axes: tuple[int, ...],
    keepdim: bool,
    gradient: Gradient | None,
    saved: Any = (),
) -> Tensor:
    attributes = {"axes": axes, "keepdims": int(keepdim), "noop_with_empty_axes": 0}
    if not axes:  # a 0-d tensor: its only element
        attributes["noop_with_empty_axes"] = 1
    out = kernel(operator, **attributes)(input._array)
    return recorded(
        operator, (input,), attributes, out, gradient, (input._array.shape, axes, *saved)
    )


def _with_dtype(input: Tensor, dtype: Any, widen: bool) -> Tensor:
    if dtype is not None:
        return to_dtype(input, dtype_of(dtype))
    source = input._array.dtype
    return (
        to_dtype(input, "int64")
        if widen and source not in FLOATING and source != "int64"
        else input
    )


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over axes; bools and integers are summed as int64.

    Args:
        input: any tensor of numbers.
        dim: an axis, several, or ``None`` for all.
        keepdim: keep the axes with extent 1.
        dtype: cast first.
    """
    x = _with_dtype(input, dtype, True)
    axes = axes_of(dim, x._array.ndim, "sum")
    return _reduce("ReduceSum", x, axes, keepdim, _sum_gradient)


def _sum_gradient(record: BackwardRecord, g: Array) -> Gradients:
    shape, axes = record.saved
    return (g.view_or_copy(kept_shape(shape, axes)).expand(shape),)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over axes; of no elements, NaN.

    Raises:
        DtypeError: the tensor holds integers or bools and no floating-point ``dtype`` is given.
    """
    x = _with_dtype(input, dtype, False)
    if x._array.dtype not in FLOATING:
        raise DtypeError(
            f"mean: expected a floating-point tensor, got {x._array.dtype}; use .float() or dtype="
        )
    axes = axes_of(dim, x._array.ndim, "mean")
    return _reduce("ReduceMean", x, axes, keepdim, _mean_gradient)


def _mean_gradient(record: BackwardRecord, g: Array) -> Gradients:
    shape, axes = record.saved
    count = 1
    for axis in axes:
        count *= shape[axis]
    spread = DIV(g, number(float(count), g.dtype)) if count else g
    return (spread.view_or_copy(kept_shape(shape, axes)).expand(shape),)


def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over axes; bools and integers as int64, wrapping. The gradient is right where elements are 0."""
    x = _with_dtype(input, dtype, True)
    axes = axes_of(dim, x._array.ndim, "prod")
    return _reduce("ReduceProd", x, axes, keepdim, _prod_gradient, (x._array,))


def _prod_gradient(record: BackwardRecord, g: Array) -> Gradients:
    shape, axes, x = record.saved
    if x.size == 0:
        return (zeros(shape, g.dtype),)
    rest = tuple([axis for axis in range(len(shape)) if axis not in axes])
    order = (*rest, *axes)
    moved = x.permute(order)
    rows = moved.view_or_copy((*[shape[a] for a in rest], _count(shape, axes)))
    others = MUL(_products_before(rows, False), _products_before(rows, True))
    scale = g.view_or_copy((*[shape[a] for a in rest], 1))
    whole = MUL(others, scale).view_or_copy(moved.shape)
    inverse = [0] * len(order)
    for position, axis in enumerate(order):
        inverse[axis] = position
    return (whole.permute(tuple(inverse)),)


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count


def _products_before(rows: Array, after: bool) -> Array:
    """For each element the product of those before it (or after it) along the last axis, by doubling steps."""
    axis, extent = rows.ndim - 1, rows.shape[-1]
    one = Array.full((*rows.shape[:-1], 1), 1, rows.dtype)
    concat = kernel("Concat", axis=axis)
    if after:
        products = concat(rows.slice(axis, 1, extent, 1), one)
    else:
        products = concat(one, rows.slice(axis, 0, extent - 1, 1))
    step = 1
    while step < extent:
        ones = Array.full((*rows.shape[:-1], step), 1, rows.dtype)
        if after:
            shifted = concat(products.slice(axis, step, extent, 1), ones)
        else:
            shifted = concat(ones, products.slice(axis, 0, extent - step, 1))
        products = MUL(products, shifted)
        step *= 2
    return products  # type: ignore[no-any-return]


def _require_elements(x: Array, axes: tuple[int, ...], what: str) -> None:
    for axis in axes:
        if x.shape[axis] == 0:
            raise ShapeError(
                f"{what}: expected elements along axis {axis}, got shape {x.shape}: nothing has no {what}"
            )


def _extremum(operator: str, input: Tensor, dim: Any, keepdim: bool, what: str) -> Tensor:
    x = input._array
    axes = axes_of(dim, x.ndim, what)
    _require_elements(x, axes, what)
    attributes = {"axes": axes, "keepdims": int(keepdim), "noop_with_empty_axes": int(not axes)}
    out = kernel(operator, **attributes)(x)
    gradient = _extremum_gradient if x.dtype in FLOATING else None
    return recorded(operator, (input,), attributes, out, gradient, (x, out, axes))


def _extremum_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, out, axes = record.saved
    kept = kept_shape(x.shape, axes)
    equal = EQUAL(x, out.view_or_copy(kept))
    count = reduce_sum(cast(equal, g.dtype), axes)
    return (masked(equal, DIV(g.view_or_copy(kept), count)),)


def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The maximum over axes; the gradient goes in equal parts to all elements that equal it.

    Raises:
        ShapeError: an axis is empty.
    """
    return _extremum("ReduceMax", input, dim, keepdim, "amax")


def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The minimum over axes; the gradient goes in equal parts to all elements that equal it.

    Raises:
        ShapeError: an axis is empty.
    """
    return _extremum("ReduceMin", input, dim, keepdim, "amin")


def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The minimum and the maximum over an axis, or over all."""
    return amin(input, dim, keepdim), amax(input, dim, keepdim)


def _arg(operator: str, input: Tensor, dim: int | None, keepdim: bool, what: str) -> Tensor:
    x = input
    if dim is None:
        x, axis = input.reshape(-1), 0
    else:
        axis = axis_of(dim, input._array.ndim, what)
        if input._array.ndim == 0:
            x = input.reshape(1)
    _require_elements(x._array, (axis,), what)
    attributes = {
        "axis": axis,
        "keepdims": int(keepdim and dim is not None),
        "select_last_index": 0,
    }
    out = kernel(operator, **attributes)(x._array)
    found = recorded(operator, (x,), attributes, out, None)
    if input._array.ndim == 0:
        return found.reshape(())
    return found.reshape((1,) * input._array.ndim) if keepdim and dim is None else found


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The int64 position of the first maximum along an axis, or in the flattened tensor; the first NaN if any.

    Raises:
        ShapeError: there are no elements.
    """
    return _arg("ArgMax", input, dim, keepdim, "argmax")


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The int64 position of the first minimum along an axis, or in the flattened tensor; the first NaN if any.

    Raises:
        ShapeError: there are no elements.
    """
    return _arg("ArgMin", input, dim, keepdim, "argmin")


def _with_indices(
    operator: str, input: Tensor, dim: int, keepdim: bool, what: str
) -> ValuesAndIndices:
    x = input._array
    axis = axis_of(dim, x.ndim, what)
    if x.ndim == 0:
        return ValuesAndIndices(input.clone(), _arg("ArgMax", input, 0, keepdim, what))
    indices = _arg("ArgMax" if operator == "ReduceMax" else "ArgMin", input, axis, True, what)
    attributes = {"axes": (axis,), "keepdims": int(keepdim), "noop_with_empty_axes": 0}
    out = kernel(operator, **attributes)(x)
    gradient = _at_index_gradient if x.dtype in FLOATING else None
    values = recorded(
        operator, (input,), attributes, out, gradient, (indices._array, x.shape, axis)
    )
    return ValuesAndIndices(values, indices if keepdim else indices.squeeze(axis))


def _at_index_gradient(record: BackwardRecord, g: Array) -> Gradients:
    indices, shape, axis = record.saved
    scatter = kernel("ScatterElements", axis=axis, reduction="none")
    return (scatter(zeros(shape, g.dtype), indices, g.view_or_copy(indices.shape)),)


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The maximum of all elements; with an axis, values and positions; with a tensor, the elementwise maximum.

    Args:
        input: any tensor of numbers.
        dim: ``None``, an axis, or another tensor.
        keepdim: keep the axis with extent 1.

    Raises:
        ShapeError: there are no elements.
    """
    if isinstance(dim, Tensor):
        from onemodel_tensors.ops.selection import maximum

        return maximum(input, dim)
    if dim is None:
        return _extremum("ReduceMax", input, None, False, "max")
    return _with_indices("ReduceMax", input, dim, keepdim, "max")


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The minimum of all elements; with an axis, values and positions; with a tensor, the elementwise minimum."""
    if isinstance(dim, Tensor):
        from onemodel_tensors.ops.selection import minimum

        return minimum(input, dim)
    if dim is None:
        return _extremum("ReduceMin", input, None, False, "min")
    return _with_indices("ReduceMin", input, dim, keepdim, "min")


def _truth(operator: str, input: Tensor, dim: Any, keepdim: bool, what: str) -> Tensor:
    x = to_dtype(input, "bool")
    axes = axes_of(dim, x._array.ndim, what)
    name = "ReduceAny" if operator == "ReduceMax" else "ReduceAll"
    attributes = {"axes": axes, "keepdims": int(keepdim), "noop_with_empty_axes": int(not axes)}
    return recorded(name, (x,), attributes, kernel(name, **attributes)(x._array), None)


def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not 0."""
    return _truth("ReduceMax", input, dim, keepdim, "any")


def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether no element is 0."""
    return _truth("ReduceMin", input, dim, keepdim, "all")


def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0."""
    return sum(to_dtype(input, "bool"), dim)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """``log(sum(e**x))`` over axes, without overflow; all -inf gives -inf."""
    from onemodel_tensors.ops.promotion import floating

    x = floating(input, "logsumexp")
    axes = axes_of(dim, x._array.ndim, "logsumexp")
    attributes = {"axes": axes, "keepdims": int(keepdim), "noop_with_empty_axes": int(not axes)}
    out = kernel("ReduceLogSumExp", **attributes)(x._array)
    return recorded(
        "ReduceLogSumExp", (x,), attributes, out, _logsumexp_gradient, (x._array, out, axes)
    )


def _logsumexp_gradient(record: BackwardRecord, g: Array) -> Gradients:
    x, out, axes = record.saved
    kept = kept_shape(x.shape, axes)
    share = EXP(SUB(x, out.view_or_copy(kept)))
    # -inf minus -inf: an element without weight in a sum without any.
    share = masked(NOT(kernel("IsNaN")(share)), share)
    return (MUL(share, g.view_or_copy(kept)),)


def nansum(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum over axes, NaN counting as 0."""
    from onemodel_tensors.ops.logical import isnan
    from onemodel_tensors.ops.selection import masked_fill

    return sum(masked_fill(input, isnan(input), 0), dim, keepdim)


def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The mean over axes of the elements that are not NaN."""
    from onemodel_tensors.ops.arithmetic import div
    from onemodel_tensors.ops.logical import isnan, logical_not

    counted = sum(logical_not(isnan(input)), dim, keepdim)
    return div(nansum(input, dim, keepdim), to_dtype(counted, input._array.dtype))
