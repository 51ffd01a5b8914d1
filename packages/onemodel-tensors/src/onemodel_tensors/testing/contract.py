"""The contract of the recording seam, as a class of tests to derive from."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import functional, recording
from onemodel_tensors.tensor import Tensor

__all__ = ["RecorderContract"]

READS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "__array__": np.asarray,
    "__dlpack__": lambda x: x.__dlpack__(),
    "bool": lambda x: bool(x.sum() > 0),
    "int": lambda x: int(x.sum()),
    "float": lambda x: float(x.sum()),
    "complex": lambda x: complex(x.sum()),
    "index": lambda x: [1, 2][x.sum().long() * 0],
    "contains": lambda x: 1.0 in x,
    "if": lambda x: 1 if x.any() else 2,
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: om.where(x > 0),
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": om.unique,
    "one_hot": lambda x: functional.one_hot(x.long()),
    "repeat_interleave": lambda x: om.ones(6).repeat_interleave(x.reshape(-1).long()),
    "allclose": lambda x: om.allclose(x, x),
    "equal": lambda x: om.equal(x, x),
    "data": lambda x: x.data,
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "format": lambda x: f"{x.sum():.2f}",
    "range": lambda x: range(x.sum().long()),
    "tensor": om.tensor,
}
"""Every way in which Python can come to see a value."""

WRITES: dict[str, Callable[[Tensor], Any]] = {
    "fill_": lambda x: x.fill_(1.0),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(om.zeros(2, 3)),
    "setitem": lambda x: x.__setitem__(0, 1.0),
    "setitem mask": lambda x: x.__setitem__(om.ones(2, 3, dtype="bool"), 1.0),
    "uniform_": lambda x: x.uniform_(),
    "add_ on a view": lambda x: x[:, 1:].add_(1),
    "add_ with a view": lambda x: (x[0], x.add_(1)),
    "relu inplace with a view": lambda x: (x[0], functional.relu(x, inplace=True)),
}
"""Every kind of write that is no plain rebinding."""


class RecorderContract(ABC):
    """Tests that hold for every recorder; derive, and say how to begin one."""

    @abstractmethod
    def begin(self) -> contextlib.AbstractContextManager[Callable[[Tensor], Tensor]]:
        """A recording; its value makes a traced tensor, without symbolic axes, of an example."""

    @contextlib.contextmanager
    def traced(self) -> Iterator[Tensor]:
        """A traced tensor of shape (2, 3)."""
        with self.begin() as make:
            yield make(om.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3)))

    @pytest.mark.parametrize("read", READS)
    def test_read_is_refused(self, read: str) -> None:
        """A read raises an error of the recorder and nothing else."""
        with self.traced() as x, pytest.raises(OneModelError):
            READS[read](x)

    @pytest.mark.parametrize("write", WRITES)
    def test_write_is_refused_before_it_happens(self, write: str) -> None:
        """A write raises, and has changed nothing."""
        with self.traced() as x:
            array, version = x._array, x._array.version
            with pytest.raises(OneModelError):
                WRITES[write](x)
            assert x._array is array
            assert array.version == version

    def test_augmented_assignment_rebinds_the_object(self) -> None:
        """``x += 1`` on a result that nobody shares keeps the object and stays traced."""
        with self.traced() as x:
            y = x * 2
            same, array = y, y._array
            y += 1
            assert same is y
            assert y._trace is not None
            assert y._array is not array

    def test_values_may_be_read_afterwards(self) -> None:
        """Once it has finished, the values are the example run's."""
        with self.traced() as x:
            y = x + 1
        assert y.tolist() == [[1, 2, 3], [4, 5, 6]]

    def test_results_are_traced_and_report_a_gradient(self) -> None:
        """Every result of a traced operand is traced, integers and bools included."""
        with self.traced() as x:
            for y in (x + 1, x.long() + 1, x > 1, x.argmax(1), x[0], x.sum(), x.reshape(3, 2)):
                assert y._trace is not None
                assert y.requires_grad

    def test_constants_stay_ordinary(self) -> None:
        """Operators on constants alone are not recorded."""
        with self.traced():
            y = om.ones(2) * 3
            assert y._trace is None
            assert y.tolist() == [3, 3]

    def test_detach_returns_the_tensor_itself(self) -> None:
        """There is no history to leave."""
        with self.traced() as x:
            y = x * 2
            assert y.detach() is y

    def test_no_grad_is_refused(self) -> None:
        """Results computed inside would not be recorded."""
        with self.traced():
            for mode in (om.no_grad(), om.inference_mode()):
                with pytest.raises(OneModelError), mode:
                    pass
            with pytest.raises(OneModelError):
                om.set_grad_enabled(False)
            with om.enable_grad():
                pass
        assert om.is_grad_enabled()

    def test_random_draws_are_refused(self) -> None:
        """A sample would be frozen."""
        state = om.get_rng_state()
        with self.traced() as x:
            draws: list[Callable[[], Tensor]] = [
                lambda: om.rand(2),
                lambda: functional.dropout(x, 0.5),
                lambda: om.randperm(3),
            ]
            for draw in draws:
                with pytest.raises(OneModelError):
                    draw()
        assert om.get_rng_state() == state

    def test_backward_and_hooks_are_refused(self) -> None:
        """There is no autograd graph of traced tensors."""
        with self.traced() as x:
            for use in (lambda: x.sum().backward(), lambda: x.register_hook(print)):
                with pytest.raises(OneModelError):
                    use()

    def test_text_shows_no_values(self) -> None:
        """``repr`` is allowed, as debuggers call it."""
        with self.traced() as x:
            assert "5" not in repr(x)

    def test_one_recorder_on_a_thread(self) -> None:
        """A second one is refused; other threads have their own."""
        seen: list[Any] = []
        with self.traced():
            with pytest.raises(OneModelError), self.begin():
                pass
            thread = threading.Thread(target=lambda: seen.append(recording.active_recorder()))
            thread.start()
            thread.join()
        assert seen == [None]
        assert recording.active_recorder() is None

    def test_an_exception_leaves_the_thread_as_it_was(self) -> None:
        """Nothing stays active."""
        with contextlib.suppress(ZeroDivisionError), self.traced():
            _ = 1 / 0
        assert recording.active_recorder() is None
        with om.no_grad():
            pass
