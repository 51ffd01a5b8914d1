"""Recognises GELU written with the error function: x/2 * (1 + erf(x / sqrt 2))."""

from __future__ import annotations

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.base import FAST, Matcher, Pass, near

ROOT = 2.0**0.5


def _scaled(matcher: Matcher, value: Value | None, factor: float) -> Value | None:
    """``x`` when a value is ``x * factor``, written as a product or a division."""
    node = matcher.producer(value, "Mul", "Div")
    if node is None:
        return None
    pair = matcher.split(node)
    if pair is None:
        return None
    number, source = matcher.number(pair[0]), pair[1]
    if node.operator == "Div":
        return source if node.inputs[1] is pair[0] and near(number, 1 / factor) else None
    return source if near(number, factor) else None


def _error_part(matcher: Matcher, value: Value | None) -> Value | None:
    """``x`` when a value is ``1 + erf(x / sqrt 2)``."""
    add = matcher.producer(value, "Add")
    pair = None if add is None else matcher.split(add)
    if pair is None or not near(matcher.number(pair[0]), 1.0):
        return None
    erf = matcher.producer(pair[1], "Erf")
    return None if erf is None else _scaled(matcher, erf.inputs[0], 1 / ROOT)


def _product(matcher: Matcher, value: Value | None) -> list[Value | None]:
    """The factors of nested products, constants included."""
    node = matcher.producer(value, "Mul")
    if node is None:
        return [value]
    found: list[Value | None] = []
    for source in node.inputs:
        deeper = matcher.producer(source, "Mul")
        if deeper is not None and source is not None and matcher.only_reader(source) is node:
            found.extend(_product(matcher, source))
        else:
            found.append(source)
    return found


def _gelu(matcher: Matcher, node: Node) -> Value | None:
    factors = _product(matcher, node.outputs[0])
    if len(factors) != 3:
        return None
    halves = [f for f in factors if near(matcher.number(f), 0.5)]
    rest = [f for f in factors if f not in halves]
    if len(halves) != 1 or len(rest) != 2:
        return None
    for part, x in (rest, rest[::-1]):
        if x is not None and _error_part(matcher, part) is x:
            return x
    return None


def run(graph: Graph) -> bool:
    """Each match becomes one Gelu node; what it was made of is removed when nothing else reads it."""
    matcher = Matcher(graph)
    changed = False
    for node in graph.nodes:
        if node.operator != "Mul" or node.domain:
            continue
        x = _gelu(matcher, node)
        if x is not None:
            node.operator, node.inputs, node.attributes = "Gelu", [x], {"approximate": "none"}
            changed = True
    return changed


PASS = Pass(
    "gelu-recognition",
    run,
    FAST,
    ensures="GELU is one node.",
    bit_rule="One kernel with its own order of steps takes the place of five operators.",
)
