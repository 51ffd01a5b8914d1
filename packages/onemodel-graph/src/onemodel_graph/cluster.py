"""Batch inference over a Dask cluster (extra ``dask``): results in order, workers may be lost.

>>> from distributed import Client                                      # doctest: +SKIP
>>> with Client("scheduler:8786") as client:                            # doctest: +SKIP
...     for (logits,) in map_batches(client, "model.onnx", batches):
...         ...
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    from distributed import CancelledError, KilledWorker
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "onemodel_graph.cluster: expected the package distributed, which is not installed; "
        "pip install 'onemodel-graph[dask]'",
        name=missing.name,
    ) from missing

from onemodel_graph.format.v1 import to_bytes
from onemodel_graph.loading import load
from onemodel_graph.session import ArithmeticMode, Session
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_kernels.forking import new_in_child

if TYPE_CHECKING:
    import os

    from distributed import Client, Future

    from onemodel_graph.ir import Graph, Model

__all__ = ["map_batches"]

Batch = Mapping[str, Any] | Sequence[Any] | Callable[[], Any]
"""Inputs of one run as :meth:`Session.run` takes them, or a function that makes them on the worker."""

SESSIONS = 4
"""Models that a worker keeps ready."""
LOSSES = 3
"""How often the model is sent again because every worker that held it was lost."""

_sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()
_lock = new_in_child(threading.Lock())


def map_batches(
    client: Client,
    model: str | os.PathLike[str] | bytes | Model | Graph,
    batches: Iterable[Batch],
    *,
    mode: ArithmeticMode | str = ArithmeticMode.EXACT,
    threads: int | None = 1,
    window: int | None = None,
) -> Iterator[list[Any]]:
    """Runs a model on each batch somewhere in a cluster and yields the results in order.

    The model is sent once to each worker and prepared once in each. A worker that is lost, with what
    it had computed, is replaced by the others: its batches run again. Batches are taken from the
    iterable only as results are consumed, so neither of the two has to fit into memory.

    Args:
        client: A client of the cluster; its workers have ``onemodel-graph`` installed.
        model: As for :class:`Session`.
        batches: Inputs of one run each. Inputs travel through the scheduler: where they are large
            (above some 10 MB), give functions without arguments that read them on the worker.
        mode: In exact mode the results have the bits of one machine, whatever the workers are. In
            fast mode they have where all workers have the same instruction set.
        threads: Kernel threads in each worker process; by default Dask alone runs things in parallel.
        window: Batches in flight; by default two for each thread of the workers.

    Yields:
        The outputs of one batch, as :meth:`Session.run` returns them.

    Raises:
        OneModelError: what the model raises on a batch, at that batch's turn; a note says which. Also
            when a batch brings down every worker that runs it.
    """
    if window is not None and window < 1:
        raise AttributeValueError(f"map_batches: expected a window of at least 1, got {window}")
    name = ArithmeticMode(mode).value
    return _Run(client, to_bytes(load(model)), name, threads, window).results(iter(batches))


class _Run:
    def __init__(
        self, client: Client, data: bytes, mode: str, threads: int | None, window: int | None
    ) -> None:
        self._client = client
        self._data = data
        self._key = (hashlib.sha256(data).hexdigest(), mode)
        self._threads = threads
        self._window = window
        self._losses = 0
        self._model = self._send()

    def _send(self) -> Future:
        return self._client.scatter(self._data, broadcast=True, hash=False)

    def _submit(self, batch: Batch) -> Future:
        return self._client.submit(
            run_batch, self._model, self._key, batch, self._threads, pure=False
        )

    def _room(self) -> int:
        return self._window or max(2 * sum(self._client.nthreads().values()), 2)

    def results(self, batches: Iterator[Batch]) -> Iterator[list[Any]]:
        flying: deque[tuple[int, Batch, Future]] = deque()
        number = 0
        try:
            while True:
                room = self._room()
                while len(flying) < room:
                    try:
                        batch = next(batches)
                    except StopIteration:
                        break
                    flying.append((number, batch, self._submit(batch)))
                    number += 1
                if not flying:
                    return
                yield self._first(flying)
        finally:
            self._client.cancel([future for _, _, future in flying])

    def _first(self, flying: deque[tuple[int, Batch, Future]]) -> list[Any]:
        """The result of the first batch; what was lost with the model is submitted again."""
        while True:
            number, _, future = flying[0]
            try:
                result: list[Any] = future.result()
            except CancelledError:
                # The scheduler drops what depends on data that no worker holds any more.
                if self._losses == LOSSES:
                    raise _workers_lost(number) from None
                self._losses += 1
                self._model = self._send()
                for place, (index, batch, lost) in enumerate(flying):
                    if lost.status in ("cancelled", "lost"):
                        flying[place] = (index, batch, self._submit(batch))
                continue
            except KilledWorker as error:
                raise _workers_lost(number) from error
            except OneModelError as error:
                error.add_note(f"in batch {number} of map_batches")
                raise
            flying.popleft()
            return result


def _workers_lost(number: int) -> OneModelError:
    return OneModelError(
        f"map_batches, batch {number}: worker after worker was lost at it, most often for want of "
        "memory; make batches smaller, give the workers more, and see their logs"
    )


def run_batch(data: bytes, key: tuple[str, str], batch: Batch, threads: int | None) -> list[Any]:
    """Runs one batch on a worker; its session is made at the first batch of a model.

    Args:
        data: The model in format v1.
        key: The model's hash, and the arithmetic mode.
        batch: Inputs, or the function that makes them.
        threads: Kernel threads of the worker's process.
    """
    with _lock:
        session = _sessions.get(key)
        if session is None:
            session = _sessions[key] = Session(data, key[1], threads)
            while len(_sessions) > SESSIONS:
                _sessions.popitem(last=False)
        _sessions.move_to_end(key)
    return session.run(batch() if callable(batch) else batch)
