"""Where the time of a session goes: the share of each operator, and the rate of the products."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import onnx

from onemodel_graph import Session
from onemodel_kernels import Array, Kernel, set_num_threads


@dataclass(frozen=True)
class Share:
    """What one run of a model spends, by operator.

    Args:
        operators: (name, part of the time), the largest first; a product or convolution includes
            what is computed in its tiles.
        seconds: the time of all kernel calls.
        operations: floating-point operations of its products and convolutions, two for each
            multiply-add.
    """

    operators: list[tuple[str, float]]
    seconds: float
    operations: int


def product_operations(file: Path, inputs: dict[str, np.ndarray]) -> int:
    """The operations of all Conv, Gemm and MatMul nodes at the shapes of the inputs."""
    model = onnx.load(file)
    for value in model.graph.input:
        for axis, extent in zip(
            value.type.tensor_type.shape.dim, inputs[value.name].shape, strict=True
        ):
            axis.dim_value = extent
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {entry.name: tuple(entry.dims) for entry in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        shapes[value.name] = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
    total = 0
    for node in graph.node:
        if node.op_type == "Conv":
            total += 2 * prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
        elif node.op_type in ("Gemm", "MatMul"):
            turned = any(a.name == "transA" and a.i for a in node.attribute)
            inner = shapes[node.input[0]][-2 if turned else -1]
            total += 2 * prod(shapes[node.output[0]]) * inner
    return total


def shares(file: Path, inputs: dict[str, np.ndarray], threads: int, runs: int = 10) -> Share:
    """The shares of an exact session: the shortest time of each call over some runs."""
    session = Session(file, mode="exact", threads=threads)
    best: dict[int, tuple[str, int]] = {}
    for _ in range(runs):
        for index, (label, nanoseconds) in enumerate(session.profile(inputs).entries):
            least = min(nanoseconds, best.get(index, (label, nanoseconds))[1])
            best[index] = (label.partition(" ")[0], least)
    total = sum(nanoseconds for _, nanoseconds in best.values()) or 1
    by_name: dict[str, int] = {}
    for name, nanoseconds in best.values():
        by_name[name] = by_name.get(name, 0) + nanoseconds
    ordered = sorted(by_name.items(), key=lambda entry: -entry[1])
    return Share(
        [(name, nanoseconds / total) for name, nanoseconds in ordered],
        total / 1e9,
        product_operations(file, inputs),
    )


def best_product(threads: int, size: int = 768, runs: int = 15) -> float:
    """Operations a second of the best run of one large product with a packed operand."""
    set_num_threads(threads)
    operand = Array.from_numpy(np.ones((size, size), np.float32))
    kernel = Kernel("MatMul").bind([None, operand])
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        kernel(operand, operand)
        taken.append(time.perf_counter() - start)
    return float(2 * size**3 / min(taken))
