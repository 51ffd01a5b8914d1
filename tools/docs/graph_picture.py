"""Draws a small graph: nodes in rows by their depth, weights as notes beside them."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from onemodel_graph.ir import Graph, Node, Value

STEP = 1.0
COLUMN = 3.4


def _shape(value: Value) -> str:
    return " × ".join("?" if extent is None else str(extent) for extent in value.shape or ())


def _depths(graph: Graph) -> dict[int, int]:
    """The row of each node: one below the lowest of those that it reads."""
    row_of: dict[Value, int] = dict.fromkeys(graph.inputs, 0)
    depths: dict[int, int] = {}
    for node in graph.nodes:
        row = 1 + max(
            (row_of.get(value, 0) for value in node.inputs if value is not None), default=0
        )
        depths[id(node)] = row
        row_of.update((value, row) for value in node.outputs if value is not None)
    return depths


def _weights(graph: Graph, node: Node) -> str:
    named = [
        value for value in node.inputs if value is not None and value.name in graph.initializers
    ]
    return "\n".join(f"{value.name}: {_shape(value) or 'scalar'}" for value in named)


def draw_graph(graph: Graph) -> Any:
    """A figure of the graph.

    Args:
        graph: Best below thirty nodes. Operators are boxes, weights are listed beside the node that
            reads them, arrows carry shapes with symbolic axes by name.
    """
    depths = _depths(graph)
    rows: dict[int, list[Node]] = {}
    for node in graph.nodes:
        rows.setdefault(depths[id(node)], []).append(node)
    last = max(rows) + 1
    figure, axes = plt.subplots(figsize=(7.2, 0.62 * (last + 1.4)))
    place: dict[Value, tuple[float, float]] = {}

    def box(x: float, y: float, text: str, colour: str, bold: bool = True) -> None:
        axes.add_patch(
            FancyBboxPatch((x - 0.8, y - 0.27), 1.6, 0.54, boxstyle="round,pad=0.02,rounding_size=0.12",
                           facecolor=colour, edgecolor="#3f51b5", linewidth=1.2)
        )  # fmt: skip
        axes.text(x, y, text, ha="center", va="center", size=9, weight="bold" if bold else "normal")

    def arrow(value: Value, x: float, y: float) -> None:
        if value not in place:
            return
        x0, y0 = place[value]
        axes.annotate("", xy=(x, y + 0.29), xytext=(x0, y0 - 0.29),
                      arrowprops={"arrowstyle": "-|>", "color": "#3f51b5", "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        axes.text(
            (x0 + x) / 2 + 0.12, (y0 + y) / 2, _shape(value), size=7.5, color="#3f51b5", va="center"
        )

    for column, value in enumerate(graph.inputs):
        x = COLUMN * (column - (len(graph.inputs) - 1) / 2)
        box(x, 0.0, value.name, "#fff3e0", bold=False)
        place[value] = (x, 0.0)
    for row, nodes in sorted(rows.items()):
        for column, node in enumerate(nodes):
            x, y = COLUMN * (column - (len(nodes) - 1) / 2), -STEP * row
            box(x, y, node.operator, "#e8ecf8")
            note = _weights(graph, node)
            if note:
                axes.text(x - 1.0, y, note, size=7.5, color="#5f6b7a", ha="right", va="center")
            for value in node.inputs:
                if value is not None:
                    arrow(value, x, y)
            place.update((value, (x, y)) for value in node.outputs if value is not None)
    for column, value in enumerate(graph.outputs):
        x, y = COLUMN * (column - (len(graph.outputs) - 1) / 2), -STEP * last
        box(x, y, value.name, "#fff3e0", bold=False)
        arrow(value, x, y)
    width = COLUMN * max(map(len, rows.values()))
    axes.set_xlim(-width / 2 - 2.2, width / 2 + 1.6)
    axes.set_ylim(-STEP * last - 0.6, 0.6)
    axes.set_axis_off()
    figure.tight_layout()
    return figure
