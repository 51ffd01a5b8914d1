"""Writing into tensors, and keeping the autograd graph right when one does.

A write is computed out of place and then copied in. When gradients are recorded, the tensor whose storage is written
(the *base*) gets a new place in the graph, and so does every live view of it: reading any of them afterwards gives the
gradient of what was written. Arrays that the new record needs and that the write is about to destroy are copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, OneModelError, ShapeError
from onemodel_tensors import recording
from onemodel_tensors.autograd.mode import is_grad_enabled
from onemodel_tensors.autograd.nodes import Leaf, Output
from onemodel_tensors.dtypes import category
from onemodel_tensors.ops.arrays import sum_to, zeros
from onemodel_tensors.ops.casts import to_dtype
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["in_place", "in_place_form", "write"]


def in_place(target: Tensor, what: str, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Make ``target`` the result of ``compute(target)``, and return it.

    While a trace records, a traced target is rebound to the result instead of written into.

    Args:
        target: the tensor to change.
        what: the user's call, for errors and the recorder.
        compute: the operator, out of place.

    Raises:
        OneModelError: the target is a leaf that requires a gradient, or a view of one; nothing was written.
        DtypeError: the result's dtype is of a higher category than the target's.
        ShapeError: the result has another shape.
    """
    recorder = target._asked()
    if recorder is not None:
        recorder.before_rebind(target, what)
        value = _fitting(target, compute(target), what)
        target._array, target._node, target._trace = value._array, value._node, value._trace
        target._view = value._view
        return target
    _check_writable(target, what)
    return write(target, compute(target), what)


def in_place_form(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The method with a trailing underscore that belongs to an operator."""
    what = f"{name}()"

    def form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return in_place(input, what, lambda x: function(x, *args, **kwargs))

    form.__name__ = form.__qualname__ = name
    form.__doc__ = (
        f"The tensor becomes the result of ``{function.__name__}`` with it, and is returned."
    )
    return form


def before_write(target: Tensor, what: str) -> None:
    """Ask a recorder, and autograd, whether ``target`` may be written into; raises before anything is."""
    recorder = target._asked()
    if recorder is not None:
        recorder.before_write(target, what)
    _check_writable(target, what)


def _check_writable(target: Tensor, what: str) -> None:
    if target._array.read_only:
        raise OneModelError(
            f"{what}: expected writable memory, but the tensor of shape {target._array.shape} shares memory that is "
            "read-only; clone() it"
        )
    base = target if target._view is None else target._view.base
    if isinstance(base._node, Leaf) and is_grad_enabled():
        form = "a leaf" if base is target else "a view of a leaf"
        raise OneModelError(
            f"{what}: expected a tensor that may be written in place, got {form} that requires a gradient (shape "
            f"{target._array.shape}); write under no_grad(), or use the out-of-place form"
        )


def _fitting(target: Tensor, value: Tensor, what: str) -> Tensor:
    dtype = target._array.dtype
    if value._array.dtype != dtype:
        if category(value._array.dtype) > category(dtype):
            raise DtypeError(
                f"{what}: expected a result that fits a {dtype} tensor, got {value._array.dtype}; "
                "use the out-of-place form"
            )
        value = to_dtype(value, dtype)
    if value._array.shape != target._array.shape:
        raise ShapeError(
            f"{what}: expected a result of the target's shape {target._array.shape}, got {value._array.shape}"
        )
    return value


def write(target: Tensor, value: Tensor, what: str) -> Tensor:
    """Copy ``value``, of the target's shape, into a target that was checked by :func:`before_write`."""
    value = _fitting(target, value, what)
    if recording.active:
        recorder = value._asked()
        if recorder is not None:
            recorder.before_capture(target, value, what)
    view = target._view
    base = target if view is None else view.base
    source = value._array
    storage = target._array.storage_id
    if source.storage_id == storage:
        source = source.copy()
    recording_gradients = (value._node is not None or base._node is not None) and is_grad_enabled()
    if recording_gradients:
        _keep_overwritten(value, storage)
    target._array.copy_from(source)
    if not recording_gradients:
        return target
    if view is None:
        base._node = value._node
    else:
        base._node = BackwardRecord(
            "Write", (), NO_ATTRIBUTES, _write_gradient, (base._node, value._node), (view.replay,)
        )
    _renew_views(base)
    return target


def _keep_overwritten(value: Tensor, storage: int) -> None:
    """Give the value's record its own copies of the arrays that are about to be overwritten."""
    node = value._node
    record = node.record if isinstance(node, Output) else node
    if isinstance(record, BackwardRecord):
        record.saved = tuple(
            [a.copy() if type(a) is Array and a.storage_id == storage else a for a in record.saved]
        )
        record.versions = tuple([a.version for a in record.saved if type(a) is Array])


def _write_gradient(record: BackwardRecord, g: Array) -> Gradients:
    (replay,) = record.saved
    written = replay(g).contiguous() if record.needs(1) else None
    kept = None
    if record.needs(0):
        kept = g.copy()
        replay(kept).fill(0)
    return (
        kept,
        written.copy() if written is not None and written.storage_id == g.storage_id else written,
    )


def _renew_views(base: Tensor) -> None:
    """Put every live view of a changed base after the change."""
    for known in base._views or ():
        view = known()
        if (
            view is None
            or view._view is None
            or view._view.base is not base
            or isinstance(view._node, Leaf)
        ):
            continue
        if base._node is None:
            view._node = None
            continue
        saved = (view._view.replay, base._array.shape, base._array.dtype)
        view._node = BackwardRecord("View", (), NO_ATTRIBUTES, _view_gradient, (base._node,), saved)


def _view_gradient(record: BackwardRecord, g: Array) -> Gradients:
    replay, shape, dtype = record.saved
    whole = zeros(shape, dtype)
    part = replay(whole)
    if 0 in part.strides and part.size:
        # An expanded view repeats elements: their gradients are summed, not overwritten.
        ranges = tuple(
            1 if stride == 0 else extent for extent, stride in zip(part.shape, part.strides)
        )
        g = sum_to(g, ranges)
        for axis, stride in enumerate(part.strides):
            if stride == 0:
                part = part.slice(axis, 0, 1, 1)
    part.copy_from(g)
    return (whole,)


def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the values of ``src``, broadcast and cast, into the tensor, and return it.

    Raises:
        OneModelError: the tensor is a leaf that requires a gradient, or a view of one.
        ShapeError: ``src`` does not broadcast to the tensor's shape.
    """
    before_write(input, "copy_()")
    if not isinstance(src, Tensor):
        from onemodel_tensors.interop import tensor

        src = tensor(src)
    value = to_dtype(src, input._array.dtype)
    if value._array.shape != input._array.shape:
        value = value.expand(input._array.shape)
    return write(input, value, "copy_()")


def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one value into every element, and return the tensor."""
    before_write(input, "fill_()")
    from onemodel_tensors.ops.promotion import operands

    (source,) = operands("fill_", value, dtype=input._array.dtype)
    return write(input, source.expand(input._array.shape), "fill_()")


def zero_(input: Tensor) -> Tensor:
    """Write 0 into every element, and return the tensor."""
    before_write(input, "zero_()")
    from onemodel_tensors.ops.promotion import scalar

    zero = scalar(0, input._array.dtype)
    return write(input, zero.expand(input._array.shape), "zero_()")


def detach_(input: Tensor) -> Tensor:
    """Make the tensor a leaf without history, and return it."""
    if input._asked() is None:
        input._node = None
    return input
