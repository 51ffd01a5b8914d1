"""Draws the pictures of the documentation into docs/images, as SVG.

    python tools/docs/figures.py            draw all of them

The architecture is drawn from the table below, the traced graph from the tutorial's model, the error
plots from kernels that run now.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from graph_picture import draw_graph
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import MaxNLocator
from sweeps import FUNCTIONS, errors_at

import onemodel_tensors as om
from onemodel_kernels import Array, Kernel
from onemodel_training import Conv2d, Linear, MaxPool2d, NnModule, manual_seed

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
INK, PALE, STRONG, WARM = "#1f2933", "#e8ecf8", "#3f51b5", "#b5533f"
# Equal pictures give equal files: identifiers by content, no date, text as text.
mpl.rcParams.update(
    {
        "svg.hashsalt": "onemodel",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
    }
)


def store(figure: Any, name: str) -> None:
    """Write a figure."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(
        IMAGES / f"{name}.svg", metadata={"Date": None, "Creator": None}, facecolor="white"
    )
    plt.close(figure)
    file = IMAGES / f"{name}.svg"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Box:
    """One package: where it stands, and what it is for."""

    name: str
    text: str
    x: float
    y: float
    width: float = 3.0


BOXES = (
    Box("onemodel_training", "modules, layers, losses,\noptimisers, training loop", 0.3, 6.0, 3.2),
    Box("onemodel_trace", "an eager run becomes a graph\nwith symbolic axes", 3.4, 4.0, 3.3),
    Box("onemodel_tensors", "eager tensors,\nautomatic differentiation", 0.3, 2.0, 3.2),
    Box("onemodel_graph", "ONNX and format v1,\npasses, plans, sessions", 6.6, 2.0, 3.2),
    Box("onemodel_kernels", "Rust: arrays, kernels with one defined order of operations, programs,\n"
        "the facts of each operator", 0.3, 0.0, 9.5),
)  # fmt: skip
HEIGHT = 1.2


def architecture() -> None:
    """The packages, who imports whom, and what passes between them."""
    figure, axes = plt.subplots(figsize=(9.2, 6.6))
    for box in BOXES:
        axes.add_patch(
            FancyBboxPatch(
                (box.x, box.y), box.width, HEIGHT, boxstyle="round,pad=0.02,rounding_size=0.12",
                facecolor=PALE, edgecolor=STRONG, linewidth=1.4,
            )
        )  # fmt: skip
        middle = box.x + box.width / 2
        axes.text(
            middle, box.y + 0.88, box.name, ha="center", va="center", weight="bold", color=INK
        )
        axes.text(middle, box.y + 0.40, box.text, ha="center", va="center", size=9, color=INK)
    arrow = {"arrowstyle": "-|>", "color": STRONG, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    for start, end, label, at in (
        ((1.2, 6.0), (1.2, 3.22), "Tensor,\nfunctional", (1.3, 4.6)),
        ((3.0, 6.0), (4.2, 5.22), "Tracer, TracedModel", (3.75, 5.72)),
        ((4.2, 4.0), (3.0, 3.22), "Recorder:\noperator records", (1.75, 3.58)),
        ((5.9, 4.0), (7.1, 3.22), "GraphBuilder", (5.3, 3.5)),
        ((1.9, 2.0), (1.9, 1.22), "Array, Kernel", (2.05, 1.6)),
        ((8.2, 2.0), (8.2, 1.22), "Array, Program,\nOpSpec", (8.35, 1.6)),
    ):
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
        axes.text(*at, label, size=8.5, color=STRONG, ha="left", va="center")
    axes.add_patch(
        FancyBboxPatch(
            (7.3, 4.1), 2.5, 1.0, boxstyle="round,pad=0.02,rounding_size=0.12",
            facecolor="#fdf3ee", edgecolor=WARM, linewidth=1.2, linestyle="--",
        )
    )  # fmt: skip
    axes.text(8.55, 4.6, "files: .onnx for every engine,\n.om1 mapped into memory", size=8.5,
              color=WARM, ha="center", va="center")  # fmt: skip
    both = {**arrow, "color": WARM, "arrowstyle": "<|-|>"}
    axes.annotate("", xy=(8.55, 4.08), xytext=(8.55, 3.22), arrowprops=both)
    axes.text(6.9, 6.6, "Blue arrows point at what is imported.", size=8.5, color=INK)
    axes.set_xlim(0, 10.4)
    axes.set_ylim(-0.2, 7.4)
    axes.set_axis_off()
    figure.tight_layout()
    store(figure, "architecture")


class Reader(NnModule):
    """The tutorial's model."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Conv2d(1, 16, 3, padding=1)
        self.second = Conv2d(16, 32, 3, padding=1)
        self.pool = MaxPool2d(2)
        self.head = Linear(32 * 2 * 2, 10)

    def forward(self, image: om.Tensor) -> Any:
        """Scores of the ten digits."""
        x = self.pool(self.first(image).relu())
        x = self.pool(self.second(x).relu())
        return self.head(x.flatten(1))


def traced_graph() -> None:
    """What the tutorial's trace gives."""
    manual_seed(0)
    traced = Reader().eval().trace(
        om.rand(2, 1, 8, 8), input_names=["image"], output_names=["scores"],
        axis_names={"image": {0: "batch"}},
    )  # fmt: skip
    store(draw_graph(traced.graph), "traced-graph")


def function_error() -> None:
    """The error of elementary functions, the largest in each of many stretches of arguments."""
    ranges = {
        "Exp": (-90, 89), "Log": (0, 4), "Tanh": (-4, 4), "Sigmoid": (-16, 16), "Erf": (-4, 4),
        "Sin": (-7, 7),
    }  # fmt: skip
    figure, grid = plt.subplots(2, 3, figsize=(9.6, 4.8), sharey=True)
    functions = {function.kernel: function for function in FUNCTIONS}
    for axes, (name, (low, high)) in zip(grid.flat, ranges.items(), strict=True):
        x, error = errors_at(functions[name], np.linspace(low, high, 400_000, dtype=np.float32))
        groups = np.array_split(np.arange(x.size), 250)
        places = [float(x[group].mean()) for group in groups]
        largest = [float(error[group].max()) for group in groups]
        axes.fill_between(places, largest, color="#c5cae9", linewidth=0)
        axes.plot(places, largest, color=STRONG, linewidth=0.9)
        axes.axhline(0.5, color=WARM, linewidth=0.9, linestyle="--")
        axes.set_xlim(low, high)
        axes.set_ylim(0, 2)
        axes.set_title(name, size=10)
        axes.tick_params(labelsize=8)
        # The numbers at the ends of neighbours would touch.
        axes.xaxis.set_major_locator(MaxNLocator(6, prune="both"))
    for axes in grid[:, 0]:
        axes.set_ylabel("error, ulp", size=9)
    figure.suptitle(
        "float32: largest error in each of 250 stretches; dashed: correctly rounded", size=10
    )
    figure.tight_layout()
    store(figure, "function-error")


def product_error() -> None:
    """How the error of a matrix product grows with its length."""
    draws = np.random.default_rng(0)
    lengths = [2**n for n in range(3, 15)]
    rows = []
    multiply = Kernel("MatMul")
    for length in lengths:
        a = draws.normal(size=(64, length)).astype(np.float32)
        b = draws.normal(size=(length, 64)).astype(np.float32)
        got = multiply(Array.from_numpy(a), Array.from_numpy(b)).numpy().astype(np.float64)
        a64, b64 = a.astype(np.float64), b.astype(np.float64)
        error = np.abs(got - a64 @ b64) / (np.abs(a64) @ np.abs(b64))
        rows.append((error.max(), np.median(error)))
    unit = 2.0**-24
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    axes.loglog(lengths, [row[0] for row in rows], "o-", color=STRONG, label="largest of 4096")
    axes.loglog(lengths, [row[1] for row in rows], "o-", color="#8c9eff", label="median")
    axes.loglog(lengths, [k * unit for k in lengths], "--", color=WARM, label="proved bound, k u")
    axes.loglog(lengths, [k**0.5 * unit for k in lengths], ":", color=WARM, label="√k u")
    axes.set_xlabel("length k of the sum")
    axes.set_ylabel("error over Σ |a b|")
    axes.set_title("float32 MatMul: one chain of fma for each element, u = 2⁻²⁴", size=10)
    axes.legend(fontsize=8)
    figure.tight_layout()
    store(figure, "product-error")


def main() -> None:
    """Draw everything."""
    architecture()
    traced_graph()
    function_error()
    product_error()


if __name__ == "__main__":
    main()
