"""Datasets and loaders whose order is a function of a seed."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Any, Protocol, runtime_checkable

import onemodel_tensors as om
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, BoundsError, ShapeError
from onemodel_tensors import Generator, Tensor

__all__ = [
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomizedDataset",
    "Subset",
    "TensorDataset",
    "default_collate",
    "permutation",
    "random_split",
    "sample_seed",
]


@runtime_checkable
class Dataset(Protocol):
    """Anything with a length and samples by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@runtime_checkable
class RandomizedDataset(Protocol):
    """A dataset whose samples are drawn: the loader calls ``sample`` instead of indexing.

    The generator is seeded by loader seed, epoch and index, so a sample does not depend on
    which worker draws it, or when.
    """

    def __len__(self) -> int: ...

    def sample(self, index: int, generator: Generator) -> Any:
        """The sample at ``index``; random choices come from ``generator``."""
        ...


class IterableDataset:
    """A dataset that is only iterated over: a subclass defines ``__iter__``.

    A loader takes its samples in order, in the caller.
    """

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{type(self).__name__}: a subclass defines __iter__")


class TensorDataset:
    """Samples are the rows of tensors of equal first extent."""

    def __init__(self, *tensors: Tensor) -> None:
        lengths = {tensor.shape[0] for tensor in tensors}
        if len(lengths) != 1:
            raise ShapeError(
                f"TensorDataset: expected tensors of one first extent, got {sorted(lengths)}"
            )
        self.tensors = tensors

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)


class Subset:
    """The samples of a dataset at some indices."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = list(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]


class ConcatDataset:
    """The samples of several datasets, one after another."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = list(datasets)

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        for dataset in self.datasets:
            if 0 <= place < len(dataset):
                return dataset[place]
            place -= len(dataset)
        raise BoundsError(f"ConcatDataset: expected an index below {len(self)}, got {index}")


def permutation(count: int, seed: int, counter: int = 0) -> list[int]:
    """The numbers 0 … count − 1 in an order that is a function of seed and counter."""
    if count == 0:
        return []
    shuffled: list[int] = Kernel(
        "RandomPermutation", n=count, seed=seed, counter=counter
    )().tolist()
    return shuffled


def random_split(
    dataset: Dataset,
    lengths: Sequence[float],
    seed: int = 0,
    generator: Generator | None = None,
) -> list[Subset]:
    """Disjoint random parts of a dataset.

    Args:
        dataset: what is split.
        lengths: of the parts, or fractions that add up to 1; what rounding leaves over goes to the first parts.
        seed: of the order.
        generator: its seed is used instead.

    Raises:
        AttributeValueError: when the lengths do not add up to the dataset's.
    """
    if generator is not None:
        seed = generator.initial_seed()
    if all(isinstance(length, float) for length in lengths) and abs(sum(lengths) - 1) < 1e-6:
        counts = [int(len(dataset) * part) for part in lengths]
        spare = len(dataset) - sum(counts)
        lengths = [count + (at < spare) for at, count in enumerate(counts)]
    if sum(lengths) != len(dataset):
        raise AttributeValueError(
            f"random_split: expected lengths that add up to {len(dataset)}, got {list(lengths)}"
        )
    order = iter(permutation(len(dataset), seed))
    return [Subset(dataset, list(islice(order, int(length)))) for length in lengths]


def sample_seed(seed: int, epoch: int, index: int) -> int:
    """A 63-bit seed for one sample: SplitMix64 over the three numbers."""
    value = seed & 0xFFFFFFFFFFFFFFFF
    for part in (epoch, index):
        value = (value + 0x9E3779B97F4A7C15 * (part + 1)) & 0xFFFFFFFFFFFFFFFF
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        value ^= value >> 31
    return value >> 1


def default_collate(samples: Sequence[Any]) -> Any:
    """Stacks samples: tensors, arrays and numbers along a new first axis, containers by member."""
    first = samples[0]
    if isinstance(first, Tensor):
        return om.stack(list(samples), 0)
    if isinstance(first, (bool, int, float)):
        return om.tensor(list(samples))
    if isinstance(first, str):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        members = [default_collate(list(column)) for column in zip(*samples, strict=True)]
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*members)
        return tuple(members) if isinstance(first, tuple) else members
    if isinstance(first, Array) or hasattr(first, "__array__"):
        return om.stack([om.as_tensor(sample) for sample in samples], 0)
    raise TypeError(
        f"default_collate: expected tensors, arrays, numbers, text or containers of them, got "
        f"{type(first).__name__}; give collate_fn"
    )


def _fetch(dataset: Any, indices: Sequence[int], seed: int, epoch: int) -> list[Any]:
    if isinstance(dataset, RandomizedDataset):
        return [
            dataset.sample(index, Generator(sample_seed(seed, epoch, index))) for index in indices
        ]
    return [dataset[index] for index in indices]


_WITHOUT_EFFECT = frozenset(
    ("pin_memory", "timeout", "persistent_workers", "multiprocessing_context", "pin_memory_device")
)
_worker_dataset: Any = None


def _start_worker(dataset: Any, start: Callable[[int], object] | None, counter: Any) -> None:
    global _worker_dataset
    _worker_dataset = dataset
    with counter.get_lock():
        number = counter.value
        counter.value += 1
    if start is not None:
        start(number)


def _number_worker(start: Callable[[int], object] | None, numbers: Iterator[int]) -> None:
    if start is not None:
        start(next(numbers))


def _fetch_in_worker(indices: Sequence[int], seed: int, epoch: int) -> list[Any]:
    return _fetch(_worker_dataset, indices, seed, epoch)


class DataLoader:
    """Batches of a dataset, in an order that depends on the seed and the epoch alone.

    Args:
        dataset: with a length and samples by index (or drawn: RandomizedDataset).
        batch_size: samples in a batch. shuffle: whether the order is a new permutation each epoch.
        batches: instead of these two: ``batches(epoch) -> sequence of lists of indices``.
        num_workers: samples are fetched ahead by so many workers; 0 fetches in the caller.
        worker_kind: ``"thread"``, or ``"process"`` for datasets whose Python code is slow; then
            dataset and samples must be picklable.
        prefetch: batches that each worker fetches ahead.
        collate_fn: turns a list of samples into a batch; runs in the caller.
        drop_last: whether a last batch that is smaller is left out.
        seed: of the order and of drawn samples.
        sampler: instead of ``shuffle``: gives the positions of an epoch.
        batch_sampler: instead of ``batch_size``: gives the positions of each batch.
        generator: its seed is taken for ``seed``.
        worker_init_fn: called with its number in each worker before it fetches.
        prefetch_factor: another name of ``prefetch``.
        ignored: arguments of PyTorch's loader that have no effect here: ``pin_memory``, ``timeout``,
            ``persistent_workers``, ``multiprocessing_context``, ``pin_memory_device``.

    Each ``for`` loop is one epoch; a loop that is broken off is begun again by the next one.
    ``state_dict``, between or inside epochs, says where the loader is; after ``load_state_dict``
    the next loop goes on with the next batch.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        batches: Callable[[int], Sequence[Sequence[int]]] | None = None,
        num_workers: int = 0,
        worker_kind: str = "thread",
        prefetch: int = 2,
        collate_fn: Callable[[Sequence[Any]], Any] | None = None,
        drop_last: bool = False,
        seed: int = 0,
        sampler: Any = None,
        batch_sampler: Any = None,
        generator: Generator | None = None,
        worker_init_fn: Callable[[int], object] | None = None,
        prefetch_factor: int | None = None,
        **ignored: Any,
    ) -> None:
        unknown = sorted(set(ignored) - _WITHOUT_EFFECT)
        if unknown:
            raise TypeError(f"DataLoader: unknown argument {', '.join(unknown)}")
        if prefetch_factor is not None:
            prefetch = prefetch_factor
        if generator is not None:
            seed = generator.initial_seed()
        orders = {"batches": batches, "batch_sampler": batch_sampler, "sampler": sampler}
        chosen = [name for name, value in orders.items() if value is not None]
        iterated = not hasattr(dataset, "__getitem__") and hasattr(dataset, "__iter__")
        if len(chosen) + bool(shuffle) > 1:
            raise AttributeValueError(
                f"DataLoader: expected one order, got {', '.join([*chosen, *['shuffle'] * shuffle])}"
            )
        if iterated and (chosen or shuffle or num_workers):
            raise AttributeValueError(
                "DataLoader: expected neither an order nor workers for a dataset that is only "
                "iterated over"
            )
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("num_workers", num_workers, 0),
            ("prefetch", prefetch, 1),
        ):
            if value < least:
                raise AttributeValueError(
                    f"DataLoader: expected {name} of {least} or more, got {value}"
                )
        if worker_kind not in ("thread", "process"):
            raise AttributeValueError(
                f"DataLoader: expected worker_kind thread or process, got {worker_kind!r}"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.batches = batches
        self.num_workers = num_workers
        self.worker_kind = worker_kind
        self.prefetch = prefetch
        self.collate_fn = default_collate if collate_fn is None else collate_fn
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.worker_init_fn = worker_init_fn
        self._iterated = iterated
        self.drop_last = drop_last
        self.seed = seed
        self.epoch = 0
        self.position = 0
        self._resuming = False

    def _indices(self) -> Sequence[Sequence[int]]:
        if self.batches is not None:
            return self.batches(self.epoch)
        if self.batch_sampler is not None:
            return [list(part) for part in self.batch_sampler]
        count = len(self.dataset)
        if self.sampler is not None:
            order = list(self.sampler)
        elif self.shuffle:
            order = permutation(count, self.seed, self.epoch)
        else:
            order = list(range(count))
        parts = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        if self.drop_last and parts and len(parts[-1]) < self.batch_size:
            parts.pop()
        return parts

    def __len__(self) -> int:
        if hasattr(self.batch_sampler, "__len__"):
            return len(self.batch_sampler)
        if hasattr(self.sampler, "__len__"):
            count = len(self.sampler)
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self._indices())

    def _streamed(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        while part := list(islice(samples, self.batch_size)):
            if len(part) == self.batch_size or not self.drop_last:
                yield self.collate_fn(part)
        self.epoch += 1

    def __iter__(self) -> Iterator[Any]:
        if self._iterated:
            yield from self._streamed()
            return
        if not self._resuming:
            self.position = 0
        self._resuming = False
        parts = self._indices()[self.position :]
        fetched = (
            self._ahead(parts)
            if self.num_workers
            else (_fetch(self.dataset, part, self.seed, self.epoch) for part in parts)
        )
        for samples in fetched:
            batch = self.collate_fn(samples)
            self.position += 1
            yield batch
        self.epoch += 1
        self.position = 0

    def _executor(self) -> Executor:
        if self.worker_kind == "thread":
            start = functools.partial(_number_worker, self.worker_init_fn, itertools.count())
            return ThreadPoolExecutor(self.num_workers, initializer=start)
        context = get_context("spawn")
        return ProcessPoolExecutor(
            self.num_workers,
            mp_context=context,
            initializer=_start_worker,
            initargs=(self.dataset, self.worker_init_fn, context.Value("i", 0)),
        )

    def _ahead(self, parts: Sequence[Sequence[int]]) -> Iterator[list[Any]]:
        executor = self._executor()
        waiting: list[Future[list[Any]]] = []
        try:
            for part in parts:
                if self.worker_kind == "thread":
                    task = executor.submit(_fetch, self.dataset, part, self.seed, self.epoch)
                else:
                    task = executor.submit(_fetch_in_worker, part, self.seed, self.epoch)
                waiting.append(task)
                if len(waiting) >= self.num_workers * self.prefetch:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            executor.shutdown(wait=True, cancel_futures=True)

    def state_dict(self) -> dict[str, int]:
        """The epoch, and the number of batches of it that have been given out."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes on where another loader over the same dataset was."""
        self.epoch = int(state["epoch"])
        self.position = int(state["position"])
        self._resuming = True
