"""Loads, prepares and runs changed models, in a process with limits; one line for each."""

from __future__ import annotations

import pickle
import random
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import onnx_mutations
import v1_mutations

import onemodel_graph as og
from onemodel_graph.cli.inputs import drawn
from onemodel_graph.format import is_v1
from onemodel_kernels.errors import OneModelError

ELEMENTS = 1 << 22
"""Inputs of more elements than this are not made."""


def changed(corpus: list[bytes], seed: int) -> bytes:
    """The input of a seed: the same on every machine."""
    rng = random.Random(seed)
    data = rng.choice(corpus)
    return (v1_mutations if is_v1(data[:16]) else onnx_mutations).mutate(data, rng)


def _has_loop(graph: Any) -> bool:
    """Whether a run may take as many steps as the model likes."""
    return any(node.operator in ("Loop", "Scan", "BatchedScan") for node in graph.walk())


def _fits(inputs: Any) -> bool:
    for value in inputs:
        elements = 1
        for extent in value.shape or ():
            elements *= max(extent if isinstance(extent, int) else 2, 1)
        if elements > ELEMENTS or value.dtype in ("sequence", "optional"):
            return False
    return True


def attempt(data: bytes, mode: str) -> str:
    """What became of a model: ``ran``, ``loaded``, or ``refused`` by an error of the library.

    Every other error escapes.
    """
    try:
        session = og.Session(data, mode=mode)
        if _has_loop(session.graph) or not _fits(session.inputs):
            return "loaded"
        session.run(drawn(session.inputs, {}, 0))
    except OneModelError as error:
        return "refused" if str(error).strip() else "refused without a word"
    return "ran"


def main() -> None:
    """Reads ``first last`` from standard input, again and again; writes ``seed outcome``."""
    corpus_path, memory, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    corpus = pickle.loads(Path(corpus_path).read_bytes())
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        first, last = (int(word) for word in line.split())
        for seed in range(first, last):
            print(f"at {seed}", flush=True)
            # Ends the process, also in native code.
            signal.setitimer(signal.ITIMER_PROF, seconds)
            try:
                data = changed(corpus, seed)
                outcome = attempt(data, "exact" if seed % 5 == 0 else "fast")
            except BaseException:
                outcome = "escaped " + traceback.format_exc().replace("\n", "\\n")
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(f"done {seed} {outcome}", flush=True)


if __name__ == "__main__":
    main()
