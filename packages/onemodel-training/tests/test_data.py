"""Datasets and loaders."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_training import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    permutation,
    random_split,
    sample_seed,
)


class Numbers:
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index


class Drawn:
    def __len__(self) -> int:
        return 10

    def sample(self, index: int, generator: om.Generator) -> om.Tensor:
        return om.rand(2, generator=generator) + float(index)


def seen(loader: DataLoader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def test_batches_in_order_and_the_rest() -> None:
    assert seen(DataLoader(Numbers(5), 2)) == [[0, 1], [2, 3], [4]]
    assert seen(DataLoader(Numbers(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(DataLoader(Numbers(5), 2, drop_last=True)) == 2
    assert seen(DataLoader(Numbers(0), 2)) == []


def test_shuffling_is_a_function_of_seed_and_epoch() -> None:
    first, second = (
        DataLoader(Numbers(50), 8, True, seed=3),
        DataLoader(Numbers(50), 8, True, seed=3),
    )
    one, two = seen(first), seen(first)
    assert one == seen(second)
    assert two == seen(second)
    assert one != two
    assert sorted(functools.reduce(operator.iadd, one, [])) == list(range(50))
    assert one != seen(DataLoader(Numbers(50), 8, True, seed=4))


def test_the_permutation_is_the_same_everywhere() -> None:
    assert sorted(permutation(100, 1)) == list(range(100))
    assert permutation(100, 1, 0) != permutation(100, 1, 1)
    assert permutation(0, 1) == []


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dataset", [Numbers(23), Drawn()])
def test_workers_change_nothing(workers: int, dataset: object) -> None:
    alone = DataLoader(dataset, 4, True, seed=1)
    helped = DataLoader(dataset, 4, True, seed=1, num_workers=workers)
    for _ in range(2):
        assert seen(alone) == seen(helped)


def test_processes_as_workers_change_nothing() -> None:
    alone = DataLoader(range(9), 4, True, seed=1)
    helped = DataLoader(range(9), 4, True, seed=1, num_workers=2, worker_kind="process")
    assert seen(alone) == seen(helped)


def test_drawn_samples_differ_by_epoch_and_index() -> None:
    loader = DataLoader(Drawn(), 10, seed=1)
    first = next(iter(loader)).tolist()
    loader.epoch = 1
    second = next(iter(loader)).tolist()
    assert first != second
    assert len({sample_seed(s, e, i) for s in range(3) for e in range(5) for i in range(9)}) == 135


def test_an_error_in_a_worker_reaches_the_caller_and_ends_the_threads() -> None:
    class Broken(Numbers):
        def __getitem__(self, index: int) -> int:
            if index == 5:
                raise ValueError("sample 5 is broken")
            return index

    before = threading.active_count()
    with pytest.raises(ValueError, match="sample 5 is broken"):
        seen(DataLoader(Broken(9), 2, num_workers=2))
    assert threading.active_count() == before


def test_state_goes_on_in_the_middle_of_an_epoch() -> None:
    whole = DataLoader(Numbers(20), 3, True, seed=5)
    expected = seen(whole) + seen(whole)
    part = DataLoader(Numbers(20), 3, True, seed=5)
    walked: Iterator[om.Tensor] = iter(part)
    got = [next(walked).tolist() for _ in range(3)]
    rest = DataLoader(Numbers(20), 3, True, seed=5)
    rest.load_state_dict(part.state_dict())
    got += seen(rest) + seen(rest)
    assert got == expected


def test_own_batches() -> None:
    loader = DataLoader(Numbers(6), batches=lambda epoch: [[0, 5], [1 + epoch]])
    assert seen(loader) == [[0, 5], [1]]
    assert seen(loader) == [[0, 5], [2]]


def test_collate_follows_containers() -> None:
    class Pair(NamedTuple):
        image: np.ndarray
        label: int

    batch = default_collate(
        [Pair(np.ones((2, 2), np.float32), 1), Pair(np.zeros((2, 2), np.float32), 2)]
    )
    assert isinstance(batch, Pair)
    assert batch.image.shape == (2, 2, 2)
    assert batch.label.tolist() == [1, 2]
    assert batch.label.dtype == "int64"
    mixed = default_collate([{"name": "a", "x": 0.5}, {"name": "b", "x": 1.5}])
    assert mixed["name"] == ["a", "b"]
    assert mixed["x"].tolist() == [0.5, 1.5]
    with pytest.raises(TypeError, match="give collate_fn"):
        default_collate([object()])


def test_datasets_of_datasets() -> None:
    table = TensorDataset(om.arange(4), om.arange(4) * 10)
    assert [value.item() for value in table[2]] == [2, 20]
    with pytest.raises(ShapeError, match="one first extent"):
        TensorDataset(om.ones(2), om.ones(3))
    joined = ConcatDataset([Numbers(2), Subset(Numbers(9), [7, 8])])
    assert [joined[i] for i in range(len(joined))] == [0, 1, 7, 8]
    assert joined[-1] == 8
    with pytest.raises(IndexError, match="expected an index below 4"):
        joined[4]
    parts = random_split(Numbers(10), [7, 3], seed=2)
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    with pytest.raises(AttributeValueError, match="add up to 10"):
        random_split(Numbers(10), [5])


def test_bad_settings_say_what_is_allowed() -> None:
    with pytest.raises(AttributeValueError, match="batch_size of 1 or more, got 0"):
        DataLoader(Numbers(1), 0)
    with pytest.raises(AttributeValueError, match="thread or process, got 'fork'"):
        DataLoader(Numbers(1), worker_kind="fork")


def numbers(count: int) -> TensorDataset:
    return TensorDataset(om.arange(count))


def test_samplers_give_the_order() -> None:
    def order(**options: Any) -> list[list[int]]:
        return [batch[0].tolist() for batch in DataLoader(numbers(6), **options)]

    assert order(batch_size=4, sampler=SequentialSampler(numbers(6))) == [[0, 1, 2, 3], [4, 5]]
    assert order(batch_sampler=BatchSampler([5, 3, 1], 2, drop_last=False)) == [[5, 3], [1]]
    loader = DataLoader(numbers(6), 2, sampler=RandomSampler(numbers(6), num_samples=4))
    assert len(loader) == 2
    assert len({index for batch in loader for index in batch[0].tolist()}) == 4
    seen = order(batch_size=9, sampler=SubsetRandomSampler([1, 2, 4], om.Generator(1)))
    assert sorted(seen[0]) == [1, 2, 4]
    weighted = WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 40, generator=om.Generator(2))
    assert set(order(batch_size=40, sampler=weighted)[0]) == {1, 3}
    replaced = RandomSampler(numbers(2), replacement=True, num_samples=9)
    assert len(list(replaced)) == len(replaced) == 9
    with pytest.raises(AttributeValueError, match="num_samples from 0 to 2"):
        RandomSampler(numbers(2), num_samples=3)
    with pytest.raises(AttributeValueError, match="one order, got sampler, shuffle"):
        DataLoader(numbers(3), shuffle=True, sampler=[0])


def test_arguments_of_other_loaders_are_taken() -> None:
    started: list[int] = []
    loader = DataLoader(
        numbers(8), 2, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True,
        prefetch_factor=3, generator=om.Generator(9), worker_init_fn=started.append,
    )  # fmt: skip
    first = [batch[0].tolist() for batch in loader]
    assert started
    assert set(started) <= {0, 1}
    assert (loader.prefetch, loader.seed) == (3, 9)
    assert first == [batch[0].tolist() for batch in DataLoader(numbers(8), 2, shuffle=True, seed=9)]
    with pytest.raises(TypeError, match="unknown argument workers"):
        DataLoader(numbers(8), workers=2)


def test_a_stream_is_taken_in_order() -> None:
    class Lines(IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    assert [batch.tolist() for batch in DataLoader(Lines(), 2)] == [[0, 1], [2, 3], [4]]
    assert len(list(DataLoader(Lines(), 2, drop_last=True))) == 2
    with pytest.raises(AttributeValueError, match="only iterated over"):
        DataLoader(Lines(), 2, shuffle=True)


def test_fractions_split_everything() -> None:
    parts = random_split(numbers(10), [0.55, 0.25, 0.2], generator=om.Generator(4))
    assert [len(part) for part in parts] == [6, 2, 2]
    assert len({index for part in parts for index in part.indices}) == 10
