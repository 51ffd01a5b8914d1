"""Forms of opsets 1 to 6: explicit broadcasting, flags of a training framework."""

from __future__ import annotations

from onemodel_graph.ir import Node
from onemodel_graph.onnx_io.adapters.rewriter import Rewriter, adapter
from onemodel_kernels.errors import AttributeValueError

_FLAGS = ("consumed_inputs", "is_test")


@adapter(7, "Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal")
def _broadcast(rewriter: Rewriter) -> list[Node]:
    """``axis`` says where the second input's axes begin; present broadcasting aligns at the end."""
    node = rewriter.node
    for flag in _FLAGS:
        node.attributes.pop(flag, None)
    node.attributes.pop("broadcast", None)
    axis = node.attributes.pop("axis", None)
    left, right = node.inputs[:2]
    if axis is None or left is None or right is None:
        return rewriter.done()
    if left.shape is not None and right.shape is not None:
        start = axis + len(left.shape) if axis < 0 else axis
        if not 0 <= start <= len(left.shape):
            raise AttributeValueError(
                f"expected 'axis' to be one of the {len(left.shape)} axes of the first input, got {axis}"
            )
        after = len(left.shape) - start - len(right.shape)
        if after > 0:
            first = len(right.shape)
            axes = rewriter.constant(list(range(first, first + after)))
            node.inputs[1] = rewriter.add("Unsqueeze", [right, axes])
        return rewriter.done()
    # Ranks are not known here: the shape 1 … 1 of the left input, with the right one's in its place.
    shape = rewriter.add("Shape", [left])
    ones = rewriter.add("Div", [shape, shape])
    extents = rewriter.add("Shape", [right])
    count = rewriter.add("Shape", [extents])
    start = rewriter.constant([axis])
    if axis < 0:
        start = rewriter.add("Add", [start, rewriter.add("Shape", [shape])])
    end = rewriter.add("Add", [start, count])
    zero, last = rewriter.constant([0]), rewriter.constant([2**31 - 1])
    head = rewriter.add("Slice", [ones, zero, start, zero])
    tail = rewriter.add("Slice", [ones, end, last, zero])
    target = rewriter.add("Concat", [head, extents, tail], axis=0)
    node.inputs[1] = rewriter.add("Reshape", [right, target])
    return rewriter.done()


@adapter(7, "Gemm")
def _gemm(rewriter: Rewriter) -> list[Node]:
    rewriter.node.attributes.pop("broadcast", None)
    return rewriter.done()


@adapter(
    7,
    "Abs", "Ceil", "Clip", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Max", "Mean",
    "Min", "Neg", "PRelu", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Sum", "Tanh",
    "InstanceNormalization",
)  # fmt: skip
def _flags(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    for flag in _FLAGS:
        node.attributes.pop(flag, None)
    if node.operator == "Clip":
        node.attributes.setdefault("min", -3.4028234663852886e38)
        node.attributes.setdefault("max", 3.4028234663852886e38)
    if node.operator == "PRelu":
        return _channel_slope(rewriter)
    return rewriter.next()


def _channel_slope(rewriter: Rewriter) -> list[Node]:
    """Before opset 7 a slope of one axis belongs to the channels."""
    node = rewriter.node
    x, slope = node.inputs
    if x is not None and x.shape is not None and len(x.shape) > 2:
        axes = rewriter.constant(list(range(1, len(x.shape) - 1)))
        node.inputs[1] = rewriter.add("Unsqueeze", [slope, axes])
    return rewriter.done()


@adapter(7, "BatchNormalization", "Dropout")
def _inference(rewriter: Rewriter) -> list[Node]:
    for flag in _FLAGS:
        rewriter.node.attributes.pop(flag, None)
    return rewriter.next()


@adapter(6, "Cast")
def _cast(rewriter: Rewriter) -> list[Node]:
    to = rewriter.node.attributes.get("to")
    if isinstance(to, str):
        named = {"FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16"}
        rewriter.node.attributes["to"] = named.get(to, to.lower())
    return rewriter.done()


@adapter(5, "Reshape")
def _reshape(rewriter: Rewriter) -> list[Node]:
    node = rewriter.node
    node.attributes.pop("consumed_inputs", None)
    shape = node.attributes.pop("shape", None)
    if shape is not None:
        rewriter.set_input(1, rewriter.constant(list(shape)))
    return rewriter.done()


@adapter(4, "Concat")
def _concat(rewriter: Rewriter) -> list[Node]:
    rewriter.node.attributes.setdefault("axis", 1)
    return rewriter.done()


@adapter(2, "Pad")
def _pad(rewriter: Rewriter) -> list[Node]:
    pads = rewriter.node.attributes.pop("paddings", None)
    if pads is not None:
        rewriter.node.attributes["pads"] = pads
    return rewriter.next()


@adapter(2, "Split")
def _split(rewriter: Rewriter) -> list[Node]:
    if len(rewriter.node.inputs) > 1 and rewriter.node.inputs[1] is not None:
        return rewriter.done()
    return rewriter.next()


@adapter(7, "Upsample")
def _upsample(rewriter: Rewriter) -> list[Node]:
    attributes = rewriter.node.attributes
    height, width = attributes.pop("height_scale", None), attributes.pop("width_scale", None)
    if height is not None and width is not None:
        attributes["scales"] = (1.0, 1.0, height, width)
    return rewriter.next()
