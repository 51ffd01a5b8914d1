"""Traces reference architectures and compares eager, sessions and ONNX Runtime at several sizes.

    python tools/trace_oracle.py                 all of them, one table
    python tools/trace_oracle.py ResNet Swin     some of them
    python tools/trace_oracle.py --list

For each architecture: trace (with verify), onnx.checker, ONNX Runtime, a fast and an exact session, at
the traced and at other sizes. The table gives the largest scaled difference to the eager outputs,
whether the exact session has the eager bits, the number of nodes, and times of one run at the traced
size in milliseconds. The exit code is 1 when anything disagrees.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parent))

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode
from reference_models import Reference, all_references

LIMIT = 1e-4
"""Scaled difference to ONNX Runtime: whole networks, whose sums are ordered in other ways."""

FAST = 1e-5
"""Scaled difference that fast mode promises, for each operator; networks add up a few."""


def inputs_at(reference: Reference, sizes: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random inputs of the sizes."""
    generator = np.random.Generator(np.random.PCG64(seed))
    made = {}
    for name in reference.inputs:
        shape = reference.shape(name, sizes)
        if reference.is_integer(name):
            high = 2 if name == "mask" else reference.high
            made[name] = generator.integers(1 if name == "mask" else 0, high, shape)
        else:
            made[name] = generator.standard_normal(shape, np.float32)
    return made


def distance(expected: list[np.ndarray], found: list[Any]) -> float:
    """Largest scaled difference; infinite when shapes or dtypes differ."""
    worst = 0.0
    for left, right in zip(expected, found, strict=True):
        right = np.asarray(right)
        if left.shape != right.shape or left.dtype != right.dtype:
            return float("inf")
        if left.size:
            scale = max(float(np.abs(left).max()), 1e-6)
            worst = max(worst, float(np.abs(left - right).max()) / scale)
    return worst


def milliseconds(run: Callable[[], Any]) -> float:
    """The best of a few runs."""
    run()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def flat(result: Any) -> list[np.ndarray]:
    """The outputs of a model as arrays."""
    listed = result if isinstance(result, tuple | list) else (result,)
    return [tensor.numpy() for tensor in listed]


def check(reference: Reference) -> dict[str, Any]:
    """Everything about one architecture."""
    model = reference.model()
    example = inputs_at(reference, reference.sizes[0], 0)
    tensors = [om.from_numpy(array) for array in example.values()]
    names = list(reference.inputs)
    start = time.perf_counter()
    traced = model.trace(
        *tensors,
        input_names=names,
        axis_names={name: reference.axes(name) for name in names},
        verify=False,
    )
    tracing = (time.perf_counter() - start) * 1e3
    proto = traced.to_onnx()
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    fast, exact = traced.session(), traced.session(ArithmeticMode.EXACT)
    result: dict[str, Any] = {
        "nodes": len(traced.graph.nodes), "peer": 0.0, "fast": 0.0, "bits": True, "trace": tracing,
    }  # fmt: skip
    for number, sizes in enumerate(reference.sizes):
        given = inputs_at(reference, sizes, number)
        with om.no_grad():
            expected = flat(model(*[om.from_numpy(array) for array in given.values()]))
        result["peer"] = max(result["peer"], distance(expected, peer.run(None, given)))
        result["fast"] = max(result["fast"], distance(expected, fast.run(given)))
        bits = exact.run(given)
        same = all(a.tobytes() == b.tobytes() for a, b in zip(expected, bits, strict=True))
        result["bits"] = result["bits"] and same
    with om.no_grad():
        result["eager ms"] = milliseconds(lambda: model(*tensors))
    result["session ms"] = milliseconds(lambda: fast.run(example))
    result["peer ms"] = milliseconds(lambda: peer.run(None, example))
    return result


def main() -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="architectures; all when none is given")
    parser.add_argument("--list", action="store_true", help="print the names")
    arguments = parser.parse_args()
    references = all_references()
    known = {reference.name: reference for reference in references}
    if arguments.list:
        print("\n".join(known))
        return 0
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"unknown architecture {unknown[0]!r}; --list prints all {len(known)}")
    chosen = [known[name] for name in arguments.names] or references
    head = (
        "architecture",
        "nodes",
        "to ORT",
        "to fast",
        "exact",
        "trace",
        "eager",
        "session",
        "ORT ms",
    )
    print("{:20} {:>5} {:>8} {:>8} {:>5} {:>7} {:>7} {:>7} {:>7}".format(*head))
    failed = []
    for reference in chosen:
        try:
            found = check(reference)
        except Exception as error:
            failed.append(reference.name)
            print(f"{reference.name:20} failed: {type(error).__name__}: {error}")
            if len(chosen) == 1:
                traceback.print_exc()
            continue
        print(
            f"{reference.name:20} {found['nodes']:5} {found['peer']:8.1e} {found['fast']:8.1e} "
            f"{'bits' if found['bits'] else 'DIFF':>5} {found['trace']:7.1f} {found['eager ms']:7.2f} "
            f"{found['session ms']:7.2f} {found['peer ms']:7.2f}"
        )
        if found["peer"] > LIMIT or found["fast"] > 10 * FAST or not found["bits"]:
            failed.append(reference.name)
    print(
        f"{len(chosen) - len(failed)} of {len(chosen)} agree"
        + (f"; not: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
