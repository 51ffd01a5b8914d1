"""MaxRoiPool: the greatest element of each bin of each box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.node_planning import Host
from onemodel_graph.planning.planner import Planner
from onemodel_graph.planning.slot import Known
from onemodel_graph.planning.steps import Step, handler
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, BoundsError, ShapeError

MOST_BINS = 1 << 16
"""Bins of all boxes of a run, each of which is one kernel call."""


def _nearest(number: float) -> int:
    """The nearest integer; halves go away from zero."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)


def _bins(first: float, last: float, count: int, extent: int) -> list[tuple[int, int]]:
    """(start, stop) of each bin along an axis, within the image."""
    start = _nearest(first)
    size = max(_nearest(last) - start + 1, 1) / count
    found = []
    for index in range(count):
        begin = start + math.floor(index * size)
        end = start + math.ceil((index + 1) * size)
        found.append((min(max(begin, 0), extent), min(max(end, 0), extent)))
    return found


@handler("MaxRoiPool", "X rois", "pooled_shape:ints! spatial_scale:float")
def _max_roi_pool(planner: Planner, step: Step, inputs: Sequence[Known]) -> Sequence[Known]:
    bins = step.node.attributes["pooled_shape"]
    scale = step.node.attributes.get("spatial_scale", 1.0)
    if len(bins) != 2 or min(bins) < 1:
        raise AttributeValueError(
            f"{step.node.label}: expected 'pooled_shape' to be two numbers from 1 on, got {bins}"
        )
    reduce = Kernel("ReduceMax", axes=(1, 2), keepdims=0)

    def run(arguments: list[Any]) -> Sequence[Any]:
        x, boxes = arguments
        if x.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 5:
            raise ShapeError(
                f"MaxRoiPool: expected (N, C, H, W) and boxes (n, 5), got {x.shape}, {boxes.shape}"
            )
        batch, channels, height, width = x.shape
        shape = (boxes.shape[0], channels, *bins)
        if boxes.shape[0] * bins[0] * bins[1] > MOST_BINS:
            raise ShapeError(
                f"MaxRoiPool: expected at most {MOST_BINS} bins in a run, got "
                f"{boxes.shape[0]} boxes of {bins[0]} by {bins[1]}"
            )
        if 0 in shape:
            return [Array.full(shape, 0, x.dtype)]
        empty = Array.full((channels,), 0, x.dtype)
        parts = []
        for number, left, top, right, bottom in boxes.tolist():
            edges = (left * scale, top * scale, right * scale, bottom * scale)
            if not all(map(math.isfinite, (number, *edges))) or not 0 <= number < batch:
                raise BoundsError(
                    f"MaxRoiPool: expected a box of finite numbers in one of {batch} images, got "
                    f"{[number, left, top, right, bottom]}"
                )
            image = x.select(0, int(number))
            columns = _bins(edges[0], edges[2], bins[1], width)
            for begin, end in _bins(edges[1], edges[3], bins[0], height):
                for start, stop in columns:
                    if end <= begin or stop <= start:
                        parts.append(empty)
                        continue
                    part = image.slice(1, begin, end, 1).slice(2, start, stop, 1)
                    parts.append(reduce(part.contiguous()))
        stacked: Array = Kernel("Concat", axis=0)(*(part.unsqueeze((0,)) for part in parts))
        rows = stacked.reshape((boxes.shape[0], *bins, channels))
        return [rows.permute((0, 3, 1, 2)).contiguous()]

    raise Host(run, inputs)
