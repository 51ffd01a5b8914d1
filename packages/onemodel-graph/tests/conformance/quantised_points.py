"""Where the codes of a dynamically quantised model part from float64, in a session and elsewhere.

    python quantised_points.py MODEL [--folder FOLDER]

``MODEL`` is one of ``real_models.json``. For each case and runtime: the largest difference of the
outputs from float64 (over the largest value), how many DynamicQuantizeLinear nodes give other codes
than in float64 and how many other codes than ONNX's definition gives for the float32 tensor that
they read, the error of what they read before codes differ (root mean square, relative), and the
first code that differs: its element, the value before rounding in float64 and as the float32 numbers
give it, and how large the errors of the tensor are in steps of its scale. A value nearer to a half
than those is a tie that float32 cannot decide.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import float64_oracle
import numpy as np
import onnx
import onnxruntime
import real_models
from model_inputs import inputs

from onemodel_graph import Session
from onemodel_graph.onnx_io import import_model


def defined(x: Any) -> tuple[Any, Any, Any]:
    """What DynamicQuantizeLinear is in float32: codes, scale, zero point."""
    low, high = np.float32(min(x.min(), 0)), np.float32(max(x.max(), 0))
    scale = np.float32((high - low) / np.float32(255))
    zero = np.clip(np.rint((np.float32(0) - low) / scale), 0, 255)
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, np.uint8(zero)


def runtimes(model: Any, feeds: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All outputs by name, of each runtime."""
    names = [value.name for value in model.graph.output]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    made = {"ONNX Runtime": theirs.run(None, feeds)}
    for mode in ("fast", "exact"):
        made[f"session, {mode}"] = Session(import_model(model), mode).run(feeds)
    return {name: dict(zip(names, outputs, strict=True)) for name, outputs in made.items()}


def shown(points: list[Any], got: dict[str, Any], want: dict[str, Any]) -> str:
    """How the codes of a runtime relate to those of float64 and to the definition."""
    errors: list[float] = []
    first, other, undefined = "", 0, 0
    for point in points:
        source, (codes, scale, zero) = point.input[0], point.output
        x, exact = got[source], want[source]
        same = [np.array_equal(a, got[n]) for a, n in zip(defined(x), point.output, strict=True)]
        undefined += not all(same)
        apart = got[codes] != want[codes]
        if not other:
            errors.append(float(np.sqrt(np.mean((x - exact) ** 2) / np.mean(exact**2))))
        if not apart.any():
            continue
        other += 1
        if not first:
            place = tuple(np.argwhere(apart)[0].tolist())
            ideal = exact[place] / want[scale] + float(want[zero])
            reach = float(np.abs(x - exact).max() / want[scale])
            single = float(x[place]) / float(got[scale]) + float(got[zero])
            first = (
                f"\n    first: {point.name or codes}, element {place} of {apart.sum()}: "
                f"code {got[codes][place]}, in float64 {want[codes][place]}; "
                f"before rounding {single:.7f}, in float64 {ideal:.7f}; "
                f"float32's errors there reach {reach:.1e} steps"
            )
    return (
        f"other codes than float64 at {other} of {len(points)} nodes, than ONNX's definition at "
        f"{undefined}; error before {np.median(errors):.1e} (median), {max(errors):.1e} (worst)"
        + first
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="identifier in real_models.json")
    parser.add_argument("--folder", type=Path, default=real_models.cache(), help="for models")
    options = parser.parse_args()
    facts = next((m for m in real_models.listed() if m["id"] == options.model), None)
    if facts is None:
        parser.error(f"{options.model!r}: there is no such model in real_models.json")
    proto = onnx.load(real_models.fetch(facts, options.folder))
    points = [n for n in proto.graph.node if n.op_type == "DynamicQuantizeLinear"]
    if not points:
        parser.error(f"{options.model!r}: it has no DynamicQuantizeLinear")
    outputs = [value.name for value in proto.graph.output]
    names = [name for node in points for name in (node.input[0], *node.output)]
    model = float64_oracle.with_outputs(proto, list(dict.fromkeys(names)))
    for case in facts["cases"]:
        feeds = inputs(facts, case)
        try:
            want = {**feeds, **float64_oracle.run(model, feeds)}
        except NotImplementedError as error:
            parser.error(f"{options.model!r}: onnx's reference evaluator cannot run it: {error}")
        print(f"{options.model}, {case['sizes']}, seed {case['seed']}")
        for name, made in runtimes(model, feeds).items():
            got = {**feeds, **made}
            apart = max(real_models.difference(got[n], want[n]) for n in outputs)
            print(f"  {name}: {apart:.1e} from float64; {shown(points, got, want)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
