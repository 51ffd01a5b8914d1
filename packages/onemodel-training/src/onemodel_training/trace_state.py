"""The state of a module around a trace: what forward changed in it, and how it was before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onemodel_tensors as om
from onemodel_tensors import Tensor

if TYPE_CHECKING:
    from onemodel_training.module import NnModule

__all__ = ["TraceState"]

_KINDS = {"_parameters": "parameter", "_buffers": "buffer"}


class TraceState:
    """Parameters, buffers and modes of a module at one moment.

    Args:
        module: the module; those below it are included.
    """

    def __init__(self, module: NnModule) -> None:
        self._modules = list(module.named_modules())
        self._modes = [member._training for _, member in self._modules]
        self._transient = [set(member._transient_buffers) for _, member in self._modules]
        self._tables = [
            {table: dict(getattr(member, table)) for table in _KINDS} for _, member in self._modules
        ]
        self._held = {
            id(tensor): (tensor, tensor._array, tensor._version)
            for tables in self._tables
            for table in tables.values()
            for tensor in table.values()
            if tensor is not None
        }
        self._copies = {
            id(buffer): buffer.detach().clone()
            for tables in self._tables
            for buffer in tables["_buffers"].values()
            if buffer is not None
        }

    def changed(self) -> list[str]:
        """Kind and path of every parameter and buffer that was written, exchanged, added or removed."""
        found = []
        for (path, module), tables in zip(self._modules, self._tables, strict=True):
            for table, kind in _KINDS.items():
                before, now = tables[table], getattr(module, table)
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

    def _is_written(self, tensor: Tensor) -> bool:
        _, array, version = self._held[id(tensor)]
        return tensor._array is not array or tensor._version != version

    def restore(self) -> None:
        """Puts everything back but the elements of parameters that were written in place."""
        for (_, module), mode, transient, tables in zip(
            self._modules, self._modes, self._transient, self._tables, strict=True
        ):
            # What is as it was is not touched: another thread may be running the module.
            if module._training is not mode:
                module.training = mode
            if module._transient_buffers != transient:
                module._transient_buffers.clear()
                module._transient_buffers.update(transient)
            for table, before in tables.items():
                now = getattr(module, table)
                if list(now) != list(before) or any(now[n] is not t for n, t in before.items()):
                    now.clear()
                    now.update(before)
        with om.no_grad():
            for tensor, array, version in self._held.values():
                if tensor._array is not array:
                    tensor._array = array
                if tensor._version != version and id(tensor) in self._copies:
                    tensor.copy_(self._copies[id(tensor)])
