"""Upsample, early Resize and GridSample, RoiAlign."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter


@adapter(100, "Upsample")
def _upsample(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    scales = node.attributes.get("scales")
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if scales is not None:
        given = rewriter.constant(scales, "float32")
    return _old_resize(rewriter, node.inputs[0], given)


@adapter(11, "Resize")
def _resize(rewriter: Rewriter) -> list[Node]:
    return _old_resize(rewriter, rewriter.node.inputs[0], rewriter.node.inputs[1])


def _old_resize(rewriter: Rewriter, x: object, scales: object) -> list[Node]:
    """Before opset 11: output position times 1/scale, nearest by rounding down."""
    return rewriter.replace(
        "Resize",
        [x, None, scales],  # type: ignore[list-item]
        mode=rewriter.node.attributes.get("mode", "nearest"),
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@adapter(20, "GridSample")
def _grid_sample(rewriter: Rewriter) -> list[Node]:
    attributes = rewriter.node.attributes
    mode = attributes.get("mode", "bilinear")
    attributes["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return rewriter.done()


@adapter(16, "RoiAlign")
def _roi_align(rewriter: Rewriter) -> list[Node]:
    rewriter.node.attributes["coordinate_transformation_mode"] = "output_half_pixel"
    return rewriter.done()
