"""Modules that hold modules or parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from onemodel_kernels.errors import BoundsError
from onemodel_tensors import Tensor
from onemodel_training.module import NnModule
from onemodel_training.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(owner: object, index: int, count: int) -> int:
    if not -count <= index < count:
        raise BoundsError(
            f"{type(owner).__name__}: expected an index from {-count} to {count - 1}, got {index}"
        )
    return index % count


class _ModuleSequence(NnModule):
    """Modules under the names 0, 1, 2 …"""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[NnModule]:
        return iter([module for module in self._modules.values() if module is not None])

    @overload
    def __getitem__(self, index: int) -> NnModule: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> NnModule | Self:
        if isinstance(index, slice):
            part = type(self)()
            for name, module in list(self._modules.items())[index]:
                key = name if isinstance(self, Sequential) else str(len(part))
                part.add_module(key, module)
            return part
        return list(self)[_position(self, index, len(self))]

    def __setitem__(self, index: int, module: NnModule) -> None:
        name = list(self._modules)[_position(self, index, len(self))]
        setattr(self, name, module)

    def _set_all(self, modules: Iterable[NnModule]) -> None:
        self._modules.clear()
        for position, module in enumerate(modules):
            self.add_module(str(position), module)

    def __delitem__(self, index: int | slice) -> None:
        kept = list(self)
        del kept[index]
        self._set_all(kept)

    def append(self, module: NnModule) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[NnModule]) -> Self:
        """Adds modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: NnModule) -> None:
        """Puts a module before ``index``; later ones get the next names."""
        kept = list(self)
        kept.insert(index, module)
        self._set_all(kept)


class Sequential(_ModuleSequence):
    """Calls modules one after another, each on the result of the one before.

    Takes the modules, or one mapping from names to modules.
    """

    def __init__(self, *modules: NnModule | Mapping[str, NnModule]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
            return
        for position, entry in enumerate(modules):
            if isinstance(entry, Mapping):
                raise TypeError("Sequential: expected modules or one mapping, got both")
            self.add_module(str(position), entry)

    def forward(self, input: Any) -> Any:
        """Whatever the first module takes; what the last returns."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_ModuleSequence):
    """A list of modules; it is not callable itself."""

    def __init__(self, modules: Iterable[NnModule] = ()) -> None:
        super().__init__()
        self.extend(modules)


class ModuleDict(NnModule):
    """A dict of modules in the order of insertion; it is not callable itself."""

    def __init__(self, modules: Mapping[str, NnModule] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> NnModule:
        module = self._modules[key]
        if module is None:
            raise KeyError(key)
        return module

    def __setitem__(self, key: str, module: NnModule) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[NnModule]:
        """The modules."""
        return [self[key] for key in self._modules]

    def items(self) -> Iterable[tuple[str, NnModule]]:
        """(name, module) pairs."""
        return [(key, self[key]) for key in self._modules]

    def update(self, modules: Mapping[str, NnModule]) -> None:
        """Adds or replaces modules."""
        for key, module in modules.items():
            self.add_module(key, module)

    def pop(self, key: str) -> NnModule:
        """Removes a module and returns it."""
        module = self[key]
        del self._modules[key]
        return module


def _as_parameter(value: Tensor) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(NnModule):
    """A list of parameters under the names 0, 1, 2 …; tensors are wrapped."""

    def __init__(self, parameters: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.extend(parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter([entry for entry in self._parameters.values() if entry is not None])

    def __getitem__(self, index: int) -> Parameter:
        return list(self)[_position(self, index, len(self))]

    def __setitem__(self, index: int, value: Tensor) -> None:
        name = str(_position(self, index, len(self)))
        self.register_parameter(name, _as_parameter(value))

    def append(self, value: Tensor) -> Self:
        """Adds a parameter at the end."""
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> Self:
        """Adds parameters at the end."""
        for value in list(values):
            self.append(value)
        return self


class ParameterDict(NnModule):
    """A dict of parameters in the order of insertion; tensors are wrapped."""

    def __init__(self, parameters: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        for key, value in (parameters or {}).items():
            self[key] = value

    def __getitem__(self, key: str) -> Parameter:
        parameter = self._parameters[key]
        if parameter is None:
            raise KeyError(key)
        return parameter

    def __setitem__(self, key: str, value: Tensor) -> None:
        self.register_parameter(key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Parameter]:
        """The parameters."""
        return [self[key] for key in self._parameters]

    def items(self) -> Iterable[tuple[str, Parameter]]:
        """(name, parameter) pairs."""
        return [(key, self[key]) for key in self._parameters]
