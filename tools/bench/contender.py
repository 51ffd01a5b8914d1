"""One engine on one file in a process of its own: ``python contender.py ENGINE MODEL INPUTS THREADS``.

Answers each line ``n`` on standard input with the seconds that a run took on average over n runs.
Engines share no process, so that the spinning workers of one never hold a core that another needs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

Run = Callable[[], object]


def onnxruntime_run(file: str, inputs: dict[str, np.ndarray], threads: int) -> Run:
    """ONNX Runtime with its default options but the number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def session_run(file: str, inputs: dict[str, np.ndarray], threads: int, mode: str) -> Run:
    """The session in one mode."""
    from onemodel_graph import Session

    session = Session(file, mode=mode, threads=threads)
    return lambda: session.run(inputs)


def main() -> None:
    """Load, run once, then serve turns until standard input ends."""
    engine, file, archive, threads = sys.argv[1:]
    with np.load(archive) as stored:
        inputs = {name: stored[name] for name in stored.files}
    if engine == "onnxruntime":
        run = onnxruntime_run(file, inputs, int(threads))
    else:
        run = session_run(file, inputs, int(threads), engine)
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        start = time.perf_counter()
        for _ in range(count):
            run()
        print((time.perf_counter() - start) / count, flush=True)


if __name__ == "__main__":
    main()
