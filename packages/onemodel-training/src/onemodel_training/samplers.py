"""Orders of samples for a DataLoader: each loop over a sampler is one epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class SequentialSampler:
    """All positions of a dataset in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler:
    """All positions of a dataset in a random order, or drawn with replacement.

    Args:
        data_source: with a length.
        replacement: whether a position may come twice.
        num_samples: how many; the dataset's length if None.
        generator: the default one if None.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples
        self.generator = generator
        if self.num_samples < 0 or (not replacement and self.num_samples > len(data_source)):
            raise AttributeValueError(
                f"RandomSampler: expected num_samples from 0 to {len(data_source)} without replacement, "
                f"got {self.num_samples}"
            )

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source)
        if self.replacement:
            drawn = om.randint(0, count, (self.num_samples,), generator=self.generator)
        else:
            drawn = om.randperm(count, generator=self.generator)[: self.num_samples]
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler:
    """Given positions in a random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = om.randperm(len(self.indices), generator=self.generator).tolist()
        return iter([self.indices[at] for at in order])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler:
    """Positions drawn with probabilities in proportion to weights.

    Args:
        weights: one for each position, not negative.
        num_samples: how many are drawn in an epoch.
        replacement: whether a position may come twice.
        generator: the default one if None.
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.weights = om.as_tensor(weights, dtype="float64")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = om.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler:
    """The positions of another sampler, so many at a time."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if batch_size < 1:
            raise AttributeValueError(
                f"BatchSampler: expected batch_size of 1 or more, got {batch_size}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
