"""The seam between eager tensors and whoever records a run of them.

A recorder (the tracer of ``onemodel_trace`` is one) is activated on a thread. Tensors that depend on its inputs carry
a value of its own in the slot ``Tensor._trace``; everybody else's slot is ``None``. Then:

* every operator with at least one traced input, or with a symbolic size among its attributes, hands the recorder a
  :class:`~onemodel_tensors.record.BackwardRecord` and its output tensors, and the recorder sets the outputs' slots;
* everything that lets Python see a value or an extent of a traced tensor, and everything that writes into one, asks
  the recorder first. The recorder answers by raising, or by returning.

Nobody recording costs one comparison with ``None`` per operator. This module knows no recorder.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from onemodel_kernels.errors import OneModelError

if TYPE_CHECKING:
    from onemodel_tensors.record import BackwardRecord
    from onemodel_tensors.tensor import Tensor

__all__ = [
    "INTERFACE_VERSION",
    "Recorder",
    "SymbolicSize",
    "TracedValue",
    "activate",
    "active_recorder",
    "deactivate",
]

#: The version of this interface: ``(major, minor)``, as :mod:`onemodel_kernels.interfaces` compares it.
INTERFACE_VERSION = (1, 0)


class SymbolicSize:
    """A size that differs from run to run: what ``x.shape[i]`` of a traced tensor may give.

    A recorder derives its class from this one. Wherever an operator takes a size (view, reshape, expand, zeros, arange,
    slicing, repeat …) it takes such an object: the kernel gets :attr:`example`, the record keeps the object. Everything
    else that would turn it into a number is the deriving class's to allow or to refuse.
    """

    __slots__ = ()

    @property
    def example(self) -> int:
        """The size in the run that is being recorded."""
        raise AttributeError(f"{type(self).__name__} must define example")

    @property
    def recorder(self) -> Recorder | None:
        """The recorder that made it while it records, else ``None``: then only :attr:`example` counts."""
        raise AttributeError(f"{type(self).__name__} must define recorder")

    def rely_on(self, relation: str, number: int, reason: str) -> None:
        """Note that the run relies on ``size relation number``, which holds now and must hold in every run.

        For operators that are right only then, as a roll by 3 along an axis of at least 3.

        Args:
            relation: ``"=="``, ``"!="``, ``"<"``, ``"<="``, ``">"`` or ``">="``.
            number: the right side.
            reason: what relies on it, for messages.
        """
        raise AttributeError(f"{type(self).__name__} must define rely_on")


@runtime_checkable
class TracedValue(Protocol):
    """What a recorder puts into ``Tensor._trace``."""

    @property
    def recorder(self) -> Recorder | None:
        """The recorder while it records; ``None`` once it has finished: the tensor is then an ordinary one."""


class Recorder(Protocol):
    """What the tensors ask while someone records.

    ``what`` names the user's call as the user knows it: ``"item()"``, ``"__bool__"``, ``"fill_()"``. A method that
    refuses raises; one that returns allows the call.
    """

    def record(self, record: BackwardRecord, outputs: tuple[Tensor, ...]) -> None:
        """One operator ran: set the ``_trace`` slot of each output, or raise when it cannot be recorded.

        ``record.inputs`` are the operands in order, ``None`` for an absent optional one; an input whose ``_trace`` is
        ``None`` is a constant. ``record.attributes`` may hold symbolic sizes. ``Identity`` is an alias.
        """

    def before_read(self, tensor: Tensor, what: str) -> None:
        """Python is about to see values of a traced tensor."""

    def before_write(self, tensor: Tensor, what: str) -> None:
        """A traced tensor, or a view of one, is about to be written into."""

    def before_rebind(self, tensor: Tensor, what: str) -> None:
        """``x += y`` or an ``inplace=True`` activation on a traced tensor.

        Returning allows it: the result is computed out of place and *this tensor object* becomes the result. Raise
        when that would differ from a write: another live tensor shares the storage, or the tensor is an input.
        """

    def before_capture(self, tensor: Tensor, source: Tensor, what: str) -> None:
        """Values of the traced ``source`` are about to be written into ``tensor``, which is not traced."""

    def before_iteration(self, tensor: Tensor) -> None:
        """A traced tensor is about to be iterated over or unpacked along its first axis."""

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """The shape of a traced tensor as Python sees it: ints, and symbolic sizes where the axis is symbolic."""

    def size_tensor(self, size: SymbolicSize, dtype: str) -> Tensor:
        """A traced 0-d tensor of ``dtype`` that holds a size: for ``x / x.shape[1]``."""

    def before_layout(self, tensor: Tensor, what: str) -> None:
        """``stride()`` or ``storage_offset()`` of a traced tensor is about to be read."""

    def before_no_grad(self, what: str) -> None:
        """``no_grad``, ``inference_mode`` or ``set_grad_enabled(False)`` is about to be entered on this thread."""

    def before_random(self, what: str) -> None:
        """A random generator is about to draw on this thread."""

    def before_backward(self, what: str) -> None:
        """``backward``, ``grad`` or a hook is about to be used on this thread."""

    def before_requires_grad(self, tensor: Tensor, value: bool) -> None:
        """``requires_grad`` of a traced tensor is about to be set."""

    def refuse_operator(self, operator: str, tensor: Tensor, reason: str) -> None:
        """An operator is about to do, with a traced tensor, what no graph can express; ``reason`` says what."""


active: dict[int, Recorder] = {}
"""The recorders by thread identifier. Empty almost always: test its truth before anything dearer."""


def activate(recorder: Recorder) -> None:
    """Make a recorder the calling thread's active one.

    Raises:
        OneModelError: the thread has one already.
    """
    thread = get_ident()
    if thread in active:
        raise OneModelError(
            "activate: expected a thread on which nobody records, but a recorder is active on this one; "
            "finish or abort it first"
        )
    active[thread] = recorder


def deactivate(recorder: Recorder) -> None:
    """Make the recorder inactive, on whichever thread it is active. Nothing happens when it is on none."""
    for thread, other in list(active.items()):
        if other is recorder:
            del active[thread]


def active_recorder() -> Recorder | None:
    """The calling thread's recorder, or ``None``."""
    return active.get(get_ident()) if active else None
