"""The state of a module around a trace: what forward changed in it, and how it was before."""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import onemodel_tensors as om
from onemodel_tensors import Tensor

if TYPE_CHECKING:
    from onemodel_kernels import Array
    from onemodel_training.module import NnModule

__all__ = ["TraceState"]

_NO_ENTRIES: dict[str, Any] = {}
_NO_NAMES: frozenset[str] = frozenset()


class _Before(NamedTuple):
    """One module, and copies of its tables."""

    path: str
    module: NnModule
    training: bool
    transient: set[str] | frozenset[str]
    parameters: dict[str, Any]
    buffers: dict[str, Any]


class TraceState:
    """Parameters, buffers and modes of a module at one moment.

    Args:
        module: the module; those below it are included.

    Attributes:
        paths: the path of each module by its ``id``.
    """

    def __init__(self, module: NnModule) -> None:
        # Most modules have no tensors of their own: nothing is made for what is empty.
        self._modules = [
            _Before(
                path,
                member,
                member._training,
                set(member._transient_buffers) if member._transient_buffers else _NO_NAMES,
                member._parameters.copy() if member._parameters else _NO_ENTRIES,
                member._buffers.copy() if member._buffers else _NO_ENTRIES,
            )
            for path, member in module.named_modules()
        ]
        self.paths = {id(before.module): before.path for before in self._modules}
        # One entry for each tensor; a tied one comes once.
        self._names: list[str] = []
        self._tensors: list[Tensor] = []
        self._arrays: list[Array] = []
        self._versions: list[int] = []
        self._copies: dict[int, Array] = {}
        for table in ("parameters", "buffers"):
            self._hold(table)

    def _hold(self, table: str) -> None:
        seen: set[int] = set()
        for before in self._modules:
            for name, tensor in getattr(before, table).items():
                if tensor is None or id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                array = tensor._array
                self._names.append(f"{before.path}.{name}" if before.path else name)
                self._tensors.append(tensor)
                self._arrays.append(array)
                self._versions.append(array.version)
                if table == "buffers":
                    self._copies[id(tensor)] = array.late_copy()

    def members(self) -> Iterator[tuple[str, Tensor]]:
        """Path and tensor of the parameters and then of the buffers; a tied one comes once."""
        return zip(self._names, self._tensors, strict=True)

    def changed(self) -> list[str]:
        """Kind and path of every parameter and buffer that was written, exchanged, added or removed."""
        found: list[str] = []
        if self._is_unchanged():
            return found
        held = {id(tensor): (array, version) for tensor, array, version in self._held()}
        for path, module, _, _, parameters, buffers in self._modules:
            for kind, before, now in (
                ("parameter", parameters, module._parameters),
                ("buffer", buffers, module._buffers),
            ):
                for name in {**before, **now}:
                    tensor: Tensor | None = now.get(name)
                    if (
                        name not in before
                        or name not in now
                        or tensor is not before[name]
                        or (tensor is not None and _is_written(tensor, *held[id(tensor)]))
                    ):
                        found.append(f"{kind} {f'{path}.{name}' if path else name}")
        return found

    def _held(self) -> Iterator[tuple[Tensor, Array, int]]:
        return zip(self._tensors, self._arrays, self._versions, strict=True)

    def _is_unchanged(self) -> bool:
        """Whether every table and tensor is as it was: what nearly every forward leaves."""
        for tensor, array, version in self._held():
            if tensor._array is not array or array.version != version:
                return False
        return all(
            _same_table(before.parameters, before.module._parameters)
            and _same_table(before.buffers, before.module._buffers)
            for before in self._modules
        )

    def restore(self) -> None:
        """Puts everything back but the elements of parameters that were written in place."""
        for _, module, mode, transient, parameters, buffers in self._modules:
            # What is as it was is not touched: another thread may be running the module.
            if module._training is not mode:
                module.training = mode
            if module._transient_buffers != transient:
                module._transient_buffers.clear()
                module._transient_buffers.update(transient)
            _put_back(parameters, module._parameters)
            _put_back(buffers, module._buffers)
        for tensor, array, version in self._held():
            if tensor._array is not array:
                tensor._array = array
            if array.version != version and id(tensor) in self._copies:
                with om.no_grad():
                    tensor.copy_(Tensor(self._copies[id(tensor)]))


def _is_written(tensor: Tensor, array: Array, version: int) -> bool:
    return tensor._array is not array or array.version != version


def _put_back(before: dict[str, Any], now: dict[str, Any]) -> None:
    if not _same_table(before, now):
        now.clear()
        now.update(before)


def _same_table(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether both have the same tensors under the same names in the same order."""
    if not before and not now:
        return True
    return list(now) == list(before) and all(map(is_, now.values(), before.values()))
