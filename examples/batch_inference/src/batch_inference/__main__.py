"""Train, read all scans over a local cluster while a worker is killed, and compare."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from distributed import Client, LocalCluster

from batch_inference.model import scans, train
from onemodel_graph import ArithmeticMode, Session
from onemodel_graph.cluster import map_batches

BATCH = 32
KILLED_AT = 10
"""The batch at whose submission one worker is killed."""


def main() -> None:
    """Print the accuracy, what was killed, and whether the bits are those of one machine."""
    images, digits = scans()
    parts = [images[start : start + BATCH] for start in range(0, len(images), BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.onnx"
        train(path)
        local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with local as cluster, Client(cluster) as client:
            results = [logits for (logits,) in map_batches(client, path, killing(client, parts))]
        alone = Session(path, ArithmeticMode.EXACT)
        equal = sum(
            got.tobytes() == alone.run(part)[0].tobytes()
            for got, part in zip(results, parts, strict=True)
        )
        peer = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (expected,) = peer.run(None, {"input": images})
    logits = np.concatenate(results)
    held_out = np.arange(len(images)) % 4 == 0
    right = (logits.argmax(1) == digits)[held_out].mean()
    difference = float(np.abs(logits - expected).max() / np.abs(expected).max())
    print(
        f"{len(images)} scans in {len(parts)} batches; {right:.1%} of the scans held out are right"
    )
    print(f"batches with the bits of one machine, in order: {equal} of {len(parts)}")
    print(f"ONNX Runtime on the same file: largest scaled difference {difference:.1e}")
    if equal != len(parts) or difference > 1e-5:
        raise SystemExit("the results differ")


def killing(client: Client, parts: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """The batches; one worker process is killed on the way."""
    for number, part in enumerate(parts):
        if number == KILLED_AT:
            processes = client.run(os.getpid)
            address, process = min(processes.items())
            print(f"killing the worker {address} (process {process}) at batch {number}")
            os.kill(process, signal.SIGKILL)
        yield [part]


if __name__ == "__main__":
    main()
