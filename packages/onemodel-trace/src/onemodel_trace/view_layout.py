"""How a view shows the elements of a contiguous array: a range, a shape, an order of axes."""

from __future__ import annotations

from dataclasses import dataclass

from onemodel_kernels import Array


@dataclass(frozen=True, slots=True)
class ViewLayout:
    """The steps from an array to a view of it.

    Attributes:
        start: First element of the range that the view shows.
        count: Elements of the range.
        stored: Shape of the range in the order in which it is stored.
        order: Axes of ``stored`` in the order of the view.
        shape: The view's shape; axes of extent 1 in ``stored`` may be repeated in it.
    """

    start: int
    count: int
    stored: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]


def view_layout(array: Array, view: Array) -> ViewLayout | None:
    """The layout of a view, or None when it is not a range of the array in another order.

    Steps, overlaps and reversed axes have none.
    """
    if not array.is_contiguous or view.dtype != array.dtype or view.size == 0:
        return None
    extents = [
        1 if stride == 0 else extent
        for extent, stride in zip(view.shape, view.strides, strict=True)
    ]
    count = 1
    for extent in extents:
        count *= extent
    # Axes of extent 1 may have any stride; they keep their place behind the others.
    by_stride = sorted(
        range(view.ndim), key=lambda axis: (extents[axis] == 1, -view.strides[axis], axis)
    )
    expected = 1
    for axis in reversed(by_stride):
        if extents[axis] != 1:
            if view.strides[axis] != expected:
                return None
            expected *= extents[axis]
    start = view.offset - array.offset
    if start < 0 or start + count > array.size:
        return None
    order = [0] * view.ndim
    for place, axis in enumerate(by_stride):
        order[axis] = place
    stored = tuple(extents[axis] for axis in by_stride)
    return ViewLayout(start, count, stored, tuple(order), tuple(view.shape))
