"""Batches over a local cluster: order, bits, lost workers, errors at their batch."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from batch_inference.__main__ import killing
from onemodel_graph import GraphBuilder, Session, cluster, save_onnx
from onemodel_graph.cluster import map_batches
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, OneModelError, ShapeError

# Dask itself warns when a worker that was killed leaves open connections.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local as started, Client(started) as found:
        yield found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    builder = GraphBuilder()
    x = builder.add_input("x", "float32", ("batch", 300))
    rows = ("float32", ("batch", 50))
    weights = np.random.default_rng(1).standard_normal((300, 50)).astype(np.float32)
    w = builder.add_initializer("w", Array.from_numpy(weights))
    (product,) = builder.add_node("MatMul", [x, w], types=[rows])
    (y,) = builder.add_node("Softmax", [product], ["y"], types=[rows])
    builder.add_output(y)
    save_onnx(builder.build(), path)
    return path


def batches(count: int) -> list[list[np.ndarray]]:
    random = np.random.default_rng(2)
    return [
        [random.standard_normal((1 + number % 7, 300)).astype(np.float32)]
        for number in range(count)
    ]


def alone(model: Path, parts: list[list[np.ndarray]]) -> list[bytes]:
    session = Session(model, "exact")
    return [session.run(part)[0].tobytes() for part in parts]


def bits(results: Iterator[list[Any]]) -> list[bytes]:
    return [output.tobytes() for (output,) in results]


def test_order_and_bits_are_those_of_one_machine(client: Client, model: Path) -> None:
    parts = batches(40)
    assert bits(map_batches(client, model, parts)) == alone(model, parts)
    named = [{"x": part[0]} for part in parts]
    assert bits(map_batches(client, model.read_bytes(), named, window=1)) == alone(model, parts)


def test_a_killed_worker_loses_nothing(client: Client, model: Path) -> None:
    parts = batches(40)
    results = map_batches(client, model, (part for part in killing(client, [p[0] for p in parts])))
    assert bits(results) == alone(model, parts)


def kill_all(client: Client) -> None:
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)


def test_all_workers_lost_at_once(client: Client, model: Path) -> None:
    parts = batches(30)

    def source() -> Iterator[list[np.ndarray]]:
        for number, part in enumerate(parts):
            if number == 12:
                kill_all(client)
                client.wait_for_workers(2)
            yield part

    assert bits(map_batches(client, model, source())) == alone(model, parts)


def test_an_error_comes_at_its_batch_and_the_cluster_works_on(client: Client, model: Path) -> None:
    parts = batches(6)
    parts[3] = [np.ones((2, 7), np.float32)]
    results = map_batches(client, model, parts)
    done = [next(results)[0].tobytes() for _ in range(3)]
    assert done == alone(model, parts[:3])
    with pytest.raises(ShapeError) as caught:
        next(results)
    assert "in batch 3 of map_batches" in caught.value.__notes__
    assert bits(map_batches(client, model, parts[:3])) == done


def read(number: int) -> list[np.ndarray]:
    return batches(number + 1)[number]


def test_batches_made_on_the_worker(client: Client, model: Path) -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    functions = [partial(read, number) for number in range(5)]
    assert bits(map_batches(client, model, functions)) == alone(model, batches(5))


def test_batches_are_taken_as_results_are_consumed(client: Client, model: Path) -> None:
    taken = 0

    def source() -> Iterator[list[np.ndarray]]:
        nonlocal taken
        for part in batches(100):
            taken += 1
            yield part

    results = map_batches(client, model, source(), window=3)
    next(results)
    next(results)
    results.close()
    assert taken == 4


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_batch_that_brings_down_every_worker(
    client: Client, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    monkeypatch.setattr(cluster, "LOSSES", 1)
    with pytest.raises(OneModelError, match="batch 0: worker after worker was lost at it"):
        list(map_batches(client, model, [die]))


def test_a_window_of_nothing(client: Client, model: Path) -> None:
    with pytest.raises(AttributeValueError, match="a window of at least 1, got 0"):
        map_batches(client, model, [], window=0)
