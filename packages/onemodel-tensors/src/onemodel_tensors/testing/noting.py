"""The smallest recorder: it notes every record, refuses every read and write, and has no symbolic sizes."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, Self

from onemodel_kernels.errors import OneModelError
from onemodel_tensors import recording
from onemodel_tensors.record import BackwardRecord
from onemodel_tensors.recording import Recorder, SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = ["NotedValue", "NotingRecorder", "Refused"]


class Refused(OneModelError):
    """The recorder was asked and said no."""


class NotedValue:
    """A traced value: its number, and the recorder while that records."""

    __slots__ = ("number", "owner")

    def __init__(self, owner: NotingRecorder, number: int) -> None:
        self.owner = owner
        self.number = number

    @property
    def recorder(self) -> Recorder | None:
        """The recorder while it records."""
        return self.owner if self.owner.recording else None


class NotingRecorder:
    """Notes ``(operator, input numbers, attributes, output numbers)`` of every record; constants are ``None``."""

    def __init__(self) -> None:
        self.notes: list[
            tuple[str, tuple[int | None, ...], dict[str, object], tuple[int, ...]]
        ] = []
        self.recording = False
        self._count = 0

    def __enter__(self) -> Self:
        recording.activate(self)
        self.recording = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        recording.deactivate(self)
        self.recording = False

    def input(self, example: Tensor) -> Tensor:
        """A traced tensor with the values of an example."""
        traced = Tensor(example._array.copy())
        traced._trace = self._value()
        return traced

    def _value(self) -> NotedValue:
        self._count += 1
        return NotedValue(self, self._count)

    def record(self, record: BackwardRecord, outputs: tuple[Tensor, ...]) -> None:
        """Note one operator; an ``Identity`` is an alias."""
        numbers = tuple([_number(t) for t in record.inputs])
        if record.operator == "Identity" and record.inputs[0] is not None:
            outputs[0]._trace = record.inputs[0]._trace
            return
        for output in outputs:
            output._trace = self._value()
        made = tuple([_number(output) or 0 for output in outputs])
        self.notes.append((record.operator, numbers, dict(record.attributes), made))

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """The shape as it is."""
        return tensor._array.shape

    def size_tensor(self, size: SymbolicSize, dtype: str) -> NoReturn:
        """There are no symbolic sizes here."""
        raise Refused(f"size_tensor({size!r}, {dtype})")

    def before_read(self, tensor: Tensor, what: str) -> None:
        """Refuse."""
        raise Refused(f"read by {what}")

    def before_write(self, tensor: Tensor, what: str) -> None:
        """Refuse."""
        raise Refused(f"write by {what}")

    def before_rebind(self, tensor: Tensor, what: str) -> None:
        """Refuse where another tensor shares the storage."""
        if tensor._array.storage_refs > 1:
            raise Refused(f"rebind by {what}")

    def before_capture(self, tensor: Tensor, source: Tensor, what: str) -> None:
        """Refuse."""
        raise Refused(f"capture by {what}")

    def before_iteration(self, tensor: Tensor) -> None:
        """Allow: every size is known."""

    def before_layout(self, tensor: Tensor, what: str) -> None:
        """Allow: every size is known."""

    def before_no_grad(self, what: str) -> None:
        """Refuse."""
        raise Refused(f"mode {what}")

    def before_random(self, what: str) -> None:
        """Refuse."""
        raise Refused(f"draw by {what}")

    def before_backward(self, what: str) -> None:
        """Refuse."""
        raise Refused(f"backward by {what}")

    def before_requires_grad(self, tensor: Tensor, value: bool) -> None:
        """Refuse to stop."""
        if not value:
            raise Refused("requires_grad_(False)")

    def refuse_operator(self, operator: str, tensor: Tensor, reason: str) -> None:
        """Refuse."""
        raise Refused(f"operator {operator}: {reason}")


def _number(tensor: Tensor | None) -> int | None:
    value = None if tensor is None else tensor._trace
    return value.number if isinstance(value, NotedValue) else None
