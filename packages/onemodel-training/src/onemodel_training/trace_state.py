"""The state of a module around a trace: what forward changed in it, and how it was before."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import onemodel_tensors as om
from onemodel_tensors import Tensor

if TYPE_CHECKING:
    from onemodel_kernels import Array
    from onemodel_training.module import NnModule

__all__ = ["TraceState"]

_KINDS = ("parameter", "buffer")


class _Before(NamedTuple):
    """One module; ``tables`` are its parameters and its buffers."""

    path: str
    module: NnModule
    training: bool
    transient: set[str]
    tables: tuple[dict[str, Any], ...]


def _tables(module: NnModule) -> tuple[dict[str, Any], ...]:
    """Parameters and buffers, in the order of ``_KINDS``."""
    return module._parameters, module._buffers


class TraceState:
    """Parameters, buffers and modes of a module at one moment.

    Args:
        module: the module; those below it are included.

    Attributes:
        paths: the path of each module by its ``id``.
        members: path and tensor of the parameters and then of the buffers; a tied one comes once.
    """

    def __init__(self, module: NnModule) -> None:
        self._modules = [
            _Before(
                path,
                member,
                member._training,
                set(member._transient_buffers),
                (member._parameters.copy(), member._buffers.copy()),
            )
            for path, member in module.named_modules()
        ]
        self._held: dict[int, tuple[Tensor, Array, int]] = {}
        self._copies: dict[int, Array] = {}
        self.paths = {id(before.module): before.path for before in self._modules}
        self.members: list[tuple[str, Tensor]] = []
        for kind in range(len(_KINDS)):
            self._hold(kind)

    def _hold(self, kind: int) -> None:
        seen: set[int] = set()
        for before in self._modules:
            for name, tensor in before.tables[kind].items():
                if tensor is None or id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                array = tensor._array
                self._held[id(tensor)] = (tensor, array, array.version)
                if _KINDS[kind] == "buffer":
                    self._copies[id(tensor)] = array.late_copy()
                self.members.append((f"{before.path}.{name}" if before.path else name, tensor))

    def changed(self) -> list[str]:
        """Kind and path of every parameter and buffer that was written, exchanged, added or removed."""
        found: list[str] = []
        if self._is_unchanged():
            return found
        for path, module, _, _, tables in self._modules:
            for kind, before, now in zip(_KINDS, tables, _tables(module), strict=True):
                for name in {**before, **now}:
                    tensor = now.get(name)
                    if (
                        name not in before
                        or name not in now
                        or tensor is not before[name]
                        or (tensor is not None and self._is_written(tensor))
                    ):
                        found.append(f"{kind} {f'{path}.{name}' if path else name}")
        return found

    def _is_unchanged(self) -> bool:
        """Whether every table and tensor is as it was: what nearly every forward leaves."""
        return all(
            tensor._array is array and array.version == version
            for tensor, array, version in self._held.values()
        ) and all(
            all(map(_same_table, tables, _tables(module)))
            for _, module, _, _, tables in self._modules
        )

    def _is_written(self, tensor: Tensor) -> bool:
        _, array, version = self._held[id(tensor)]
        return tensor._array is not array or array.version != version

    def restore(self) -> None:
        """Puts everything back but the elements of parameters that were written in place."""
        for _, module, mode, transient, tables in self._modules:
            # What is as it was is not touched: another thread may be running the module.
            if module._training is not mode:
                module.training = mode
            if module._transient_buffers != transient:
                module._transient_buffers.clear()
                module._transient_buffers.update(transient)
            for before, now in zip(tables, _tables(module), strict=True):
                if not _same_table(before, now):
                    now.clear()
                    now.update(before)
        for tensor, array, version in self._held.values():
            if tensor._array is not array:
                tensor._array = array
            if array.version != version and id(tensor) in self._copies:
                with om.no_grad():
                    tensor.copy_(Tensor(self._copies[id(tensor)]))


def _same_table(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether both have the same tensors under the same names in the same order."""
    if not before and not now:
        return True
    return list(now) == list(before) and all(map(is_, now.values(), before.values()))
