"""Operators on boxes whose number of results depends on scores: they run between programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.node_planning import Host
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Known
from onemodel_graph.planning.steps import Step, handler
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import ShapeError


class _Calls:
    """Kernels by name, for arithmetic on arrays in single precision."""

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}

    def __call__(self, name: str, *arrays: Array) -> Array:
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = Kernel(name)
        result: Array = kernel(*arrays)
        return result


def _corners(call: _Calls, boxes: Array, centred: bool) -> tuple[Array, Array, Array, Array]:
    """(first, last) of both axes for boxes ``(n, 4)``."""
    a, b, c, d = (boxes.select(1, i).contiguous() for i in range(4))
    if not centred:
        return call("Min", a, c), call("Max", a, c), call("Min", b, d), call("Max", b, d)
    two = tensor(2.0, boxes.dtype)
    width, height = call("Div", c, two), call("Div", d, two)
    return (
        call("Sub", b, height),
        call("Add", b, height),
        call("Sub", a, width),
        call("Add", a, width),
    )


class _Boxes:
    """The boxes ``(n, 4)`` of one image in the order of their scores."""

    def __init__(self, call: _Calls, boxes: Array, centred: bool, threshold: float) -> None:
        self._call = call
        self._corners = _corners(call, boxes, centred)
        top, bottom, left, right = self._corners
        self._area = call("Mul", call("Sub", right, left), call("Sub", bottom, top))
        self._threshold = tensor(threshold, boxes.dtype)
        self._zero = tensor(0.0, boxes.dtype)

    def overlapping(self, index: int) -> list[bool]:
        """Whether each box shares more than the threshold of its union with box ``index``."""
        call = self._call

        def shared(low: Array, high: Array) -> Array:
            first = call("Max", low, low.select(0, index))
            last = call("Min", high, high.select(0, index))
            return call("Max", call("Sub", last, first), self._zero)

        top, bottom, left, right = self._corners
        common = call("Mul", shared(left, right), shared(top, bottom))
        union = call("Sub", call("Add", self._area, self._area.select(0, index)), common)
        above = call("Greater", call("Div", common, union), self._threshold)
        found: list[bool] = call("And", above, call("Greater", common, self._zero)).tolist()
        return found


def _number(array: Array | None, default: float) -> float:
    return default if array is None or array.size == 0 else array.reshape(()).item()


@handler("NonMaxSuppression", "boxes scores max? iou? least?", "center_point_box:int")
def _non_max_suppression(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    centred = bool(step.node.attributes.get("center_point_box", 0))

    def run(arguments: list[Any]) -> Sequence[Any]:
        boxes, scores, limit, iou, least = (*arguments, None, None, None)[:5]
        count = int(_number(limit, 0))
        threshold = float(_number(iou, 0.0))
        floor = None if least is None or least.size == 0 else float(_number(least, 0.0))
        call, gather = _Calls(), Kernel("Gather", axis=0)
        chosen: list[list[int]] = []
        for batch in range(boxes.shape[0] if count > 0 else 0):
            image = boxes.select(0, batch).contiguous()
            for kind in range(scores.shape[1]):
                row = scores.select(0, batch).select(0, kind).tolist()
                order = sorted(
                    (i for i, score in enumerate(row) if floor is None or score > floor),
                    key=lambda i: (-row[i], i),
                )
                kept: list[int] = []
                found = _Boxes(call, gather(image, tensor(order, "int64")), centred, threshold)
                alive = list(range(len(order)))
                while alive and len(kept) < count:
                    best = alive[0]
                    kept.append(order[best])
                    covered = found.overlapping(best) if len(alive) > 1 else []
                    alive = [i for i in alive[1:] if not covered[i]]
                chosen.extend([batch, kind, i] for i in kept)
        if not chosen:
            return [Array.full((0, 3), 0, "int64")]
        return [tensor(chosen, "int64")]

    raise Host(run, inputs)


MOST_SAMPLES = 1 << 16
"""Samples along an axis of a box, beyond any that makes sense."""


def _taps(
    low: float, size: float, bins: int, grid: int, extent: int
) -> list[tuple[int, int, float, float]]:
    """(lower, upper, weight of lower, weight of upper) of each sample along one axis."""
    found = []
    for index in range(bins):
        for sample in range(grid):
            at = low + index * size + (sample + 0.5) * size / grid
            if at < -1.0 or at > extent:
                found.append((0, 0, 0.0, 0.0))
                continue
            at = max(at, 0.0)
            lower = int(at)
            if lower >= extent - 1:
                found.append((extent - 1, extent - 1, 1.0, 0.0))
            else:
                found.append((lower, lower + 1, 1.0 - (at - lower), at - lower))
    return found


@handler(
    "RoiAlign",
    "X rois batch_indices",
    "mode:string output_height:int output_width:int sampling_ratio:int spatial_scale:float "
    "coordinate_transformation_mode:string",
)
def _roi_align(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    attributes = step.node.attributes
    bins = (attributes.get("output_height", 1), attributes.get("output_width", 1))
    scale = attributes.get("spatial_scale", 1.0)
    ratio = attributes.get("sampling_ratio", 0)
    half = attributes.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    largest = attributes.get("mode", "avg") == "max"
    gather = Kernel("Gather", axis=1)
    reduce = Kernel("ReduceMax" if largest else "ReduceSum", axes=(2, 4), keepdims=0)

    def pooled(call: _Calls, image: Array, box: list[float]) -> Array:
        channels, height, width = image.shape
        offset = 0.5 if half else 0.0
        left, top, right, bottom = (edge * scale - offset for edge in box)
        sizes = [bottom - top, right - left]
        if not half:
            sizes = [max(size, 1.0) for size in sizes]
        steps = [size / n for size, n in zip(sizes, bins, strict=True)]
        grid = [ratio if ratio > 0 else max(-int(-size // 1), 1) for size in steps]
        if max(bins) * max(grid) > MOST_SAMPLES:
            raise ShapeError(
                f"RoiAlign: expected at most {MOST_SAMPLES} samples along an axis of a box, "
                f"got {max(bins)} bins of {max(grid)}"
            )
        rows = _taps(top, steps[0], bins[0], grid[0], height)
        columns = _taps(left, steps[1], bins[1], grid[1], width)
        flat = image.contiguous().reshape((channels, height * width))
        total = None
        for y, x in ((0, 0), (0, 1), (1, 0), (1, 1)):
            places = [row[y] * width + column[x] for row in rows for column in columns]
            weights = [row[2 + y] * column[2 + x] for row in rows for column in columns]
            part = call("Mul", gather(flat, tensor(places, "int64")), tensor(weights, image.dtype))
            if total is None:
                total = part
            else:
                total = call("Max" if largest else "Add", total, part)
        assert total is not None
        split = total.reshape((channels, bins[0], grid[0], bins[1], grid[1]))
        result: Array = reduce(split)
        return result if largest else call("Div", result, tensor(grid[0] * grid[1], image.dtype))

    def run(arguments: list[Any]) -> Sequence[Any]:
        x, boxes, batches = arguments
        call = _Calls()
        made = [
            pooled(call, x.select(0, batch), box)
            for box, batch in zip(boxes.tolist(), batches.tolist(), strict=True)
        ]
        if not made:
            return [Array.full((0, x.shape[1], *bins), 0, x.dtype)]
        joined: Array = Kernel("Concat", axis=0)(*(part.unsqueeze((0,)) for part in made))
        return [joined]

    raise Host(run, inputs)
