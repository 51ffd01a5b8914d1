"""What a deployment starts with: time to the first result, peak memory, and the size of an install.

    nox -s bench-startup        python tools/bench/startup.py [--turns 7] [--mode fast]

ResNet-18 and a transformer encoder of six layers are built from the project's own layers with seeded
weights, traced and saved. Processes of ONNX Runtime and of a session then take turns: each loads the
file and runs it once, on one thread. The table has the median time of both steps, and the most
memory that a process had. The second table has what ``pip install onemodel-graph`` brings beside
numpy, in megabytes of files.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

WORKLOADS = ("resnet18", "encoder6")
RUNTIMES = ("ONNX Runtime", "onemodel")
GIVEN = frozenset({"numpy"})
"""Distributions that are not counted: whoever runs models has them."""


def once(runtime: str, model: str, inputs: str, mode: str) -> dict[str, float]:
    """Loads a model and runs it once in this process: seconds, and the peak in megabytes."""
    import numpy as np

    with np.load(inputs) as archive:
        feeds = dict(archive)
    if runtime == "onemodel":
        from onemodel_graph import Session

        start = time.perf_counter()
        session = Session(model, mode, threads=1)
        loaded = time.perf_counter()
        session.run(feeds)
    else:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        start = time.perf_counter()
        theirs = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        loaded = time.perf_counter()
        theirs.run(None, feeds)
    end = time.perf_counter()
    return {"load": loaded - start, "run": end - loaded, "peak": peak()}


def peak() -> float:
    """The most memory that this process had, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Of this program alone: getrusage counts what the process was before it became this one.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found is not None:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(runtime: str, model: Path, inputs: Path, mode: str) -> dict[str, float]:
    """:func:`once` in a process of its own."""
    command = [sys.executable, __file__, "--once", runtime, str(model), str(inputs), mode]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def saved(name: str, folder: Path) -> tuple[Path, Path]:
    """The ONNX file of a workload, and the file of its inputs."""
    import numpy as np

    import onemodel_tensors as om
    import workloads

    (workload,) = (entry for entry in workloads.WORKLOADS if entry.name == name)
    om.manual_seed(0)
    given = workload.inputs()
    arrays = (om.from_numpy(array) for array in given.values())
    traced = workload.build().eval().trace(*arrays, input_names=list(given), verify=False)
    model, inputs = folder / f"{name}.onnx", folder / f"{name}.npz"
    traced.save_onnx(model)
    np.savez(inputs, **given)
    return model, inputs


def sizes(name: str) -> dict[str, float]:
    """Megabytes of files of each distribution that installing ``name`` brings."""
    found: dict[str, float] = {}
    waiting = [name]
    while waiting:
        distribution = metadata.distribution(waiting.pop())
        title = distribution.metadata["Name"]
        if title in found or title in GIVEN:
            continue
        files = [distribution.locate_file(entry) for entry in distribution.files or ()]
        paths = [Path(str(file)) for file in files]
        found[title] = sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
        needed = (text for text in distribution.requires or () if "extra ==" not in text)
        waiting.extend(re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in needed)
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=7, help="processes of each runtime")
    parser.add_argument("--mode", default="fast", choices=["fast", "exact"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(
            f"{'model':10s} {'runtime':14s} {'load ms':>9s} {'run ms':>9s} {'both ms':>9s} {'peak MB':>9s}"
        )
        for name in WORKLOADS:
            model, inputs = saved(name, Path(folder))
            rows: dict[str, list[dict[str, float]]] = {runtime: [] for runtime in RUNTIMES}
            for _ in range(options.turns):
                for runtime in RUNTIMES:
                    rows[runtime].append(child(runtime, model, inputs, options.mode))
            for runtime, found in rows.items():
                load, run, peak = (
                    statistics.median(r[k] for r in found) for k in ("load", "run", "peak")
                )
                both = statistics.median(r["load"] + r["run"] for r in found)
                print(
                    f"{name:10s} {runtime:14s} {load * 1e3:9.1f} {run * 1e3:9.1f} {both * 1e3:9.1f} {peak:9.0f}"
                )
    print(f"\n{'distribution':24s} {'MB':>8s}")
    brought = sizes("onemodel-graph")
    for title, size in sorted(brought.items(), key=lambda entry: -entry[1]):
        print(f"{title:24s} {size:8.1f}")
    print(f"{'beside numpy':24s} {sum(brought.values()):8.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(once(*sys.argv[2:6])))
    else:
        main()
