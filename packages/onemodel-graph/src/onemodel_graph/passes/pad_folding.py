"""Lets a convolution pad its own input where a Pad of zeros stands before it."""

from __future__ import annotations

import math
from typing import Any

from onemodel_graph.ir import Graph, Node
from onemodel_graph.passes.base import Matcher, Pass


def _margins(matcher: Matcher, pad: Node, rank: int) -> tuple[list[int], list[int]] | None:
    """The zeros before and behind each spatial axis; ``None`` for any other padding."""
    if pad.attributes.get("mode", "constant") != "constant" or len(pad.inputs) < 2:
        return None
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    if value is not None:
        fill = matcher.number(value)
        # The padding of a convolution is +0.0, and a product with -0.0 may have another sign.
        if fill is None or fill != 0 or math.copysign(1.0, fill) < 0:
            return None
    amounts = matcher.array(pad.inputs[1])
    listed = pad.inputs[3] if len(pad.inputs) > 3 else None
    chosen = None if listed is None else matcher.array(listed)
    if amounts is None or (listed is not None and chosen is None):
        return None
    both: list[int] = amounts.tolist()
    axes: list[int] = list(range(rank)) if chosen is None else chosen.tolist()
    if len(both) != 2 * len(axes) or any(not -rank <= axis < rank for axis in axes):
        return None
    begins, ends = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        begins[axis], ends[axis] = both[position], both[len(axes) + position]
    if any(amount < 0 for amount in both) or any(begins[:2]) or any(ends[:2]):
        return None
    return begins[2:], ends[2:]


def _fold(matcher: Matcher, conv: Node) -> bool:
    pad = matcher.producer(conv.inputs[0], "Pad")
    if pad is None or conv.attributes.get("auto_pad", "NOTSET") != "NOTSET":
        return False
    weight = matcher.array(conv.inputs[1])
    if weight is None or len(weight.shape) < 3:
        return False
    margins = _margins(matcher, pad, len(weight.shape))
    if margins is None:
        return False
    begins, ends = margins
    own: list[Any] = list(conv.attributes.get("pads", (0,) * (2 * len(begins))))
    conv.attributes["pads"] = tuple(
        own_amount + more for own_amount, more in zip(own, [*begins, *ends], strict=True)
    )
    conv.inputs[0] = pad.inputs[0]
    return True


def run(graph: Graph) -> bool:
    """Convolutions with constant weights behind a Pad of zeros along spatial axes."""
    matcher = Matcher(graph)
    convolutions = [n for n in graph.nodes if n.operator == "Conv" and not n.domain]
    # Every one is tried: `any` alone would stop at the first.
    folded = [_fold(matcher, conv) for conv in convolutions]
    return any(folded)


PASS = Pass(
    "pad-folding",
    run,
    ensures="No Pad of zeros stands before a convolution with constant weights.",
    bit_rule="A convolution adds the products of its padding, which is +0.0, in the same places.",
)
