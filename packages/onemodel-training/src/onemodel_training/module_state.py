"""State of modules by path: iteration, state dicts, casts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import onemodel_tensors as om
from onemodel_kernels.errors import DtypeError, OneModelError
from onemodel_tensors import Tensor
from onemodel_tensors.devices import require_cpu
from onemodel_tensors.dtypes import DTYPE_NAMES, dtype_of

if TYPE_CHECKING:
    from onemodel_training.module import NnModule

__all__ = ["IncompatibleKeys", "StateDictError"]


class StateDictError(OneModelError, KeyError, ValueError):
    """A state dict that does not fit the module."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class IncompatibleKeys(NamedTuple):
    """Paths of the module that the state lacked, and paths of the state that it has no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def named_members(
    module: NnModule, table: str, prefix: str, recurse: bool, remove_duplicate: bool
) -> Iterator[tuple[str, Any]]:
    """Yields (path, member) of one table of the module and, with ``recurse``, of all below it."""
    seen: set[int] = set()
    owners = module.named_modules(prefix, remove_duplicate) if recurse else iter([(prefix, module)])
    for path, owner in owners:
        for name, member in getattr(owner, table).items():
            if member is None or (remove_duplicate and id(member) in seen):
                continue
            seen.add(id(member))
            yield (f"{path}.{name}" if path else name), member


def collect(module: NnModule, prefix: str, keep_vars: bool, state: dict[str, Tensor]) -> None:
    """Adds the module's own entries and then those of its children, as PyTorch orders them."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            state[prefix + name] = parameter if keep_vars else parameter.detach()
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._transient_buffers:
            state[prefix + name] = buffer if keep_vars else buffer.detach()
    for name, child in module._modules.items():
        if child is not None:
            collect(child, f"{prefix}{name}.", keep_vars, state)


def load(
    module: NnModule, state: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Copies or assigns the values of ``state``; checks every entry before writing any."""
    kind = type(module).__name__
    targets = module.state_dict(keep_vars=True)
    missing = [path for path in targets if path not in state]
    unexpected = [path for path in state if path not in targets]
    problems = []
    if strict:
        problems += [f"missing {path} of shape {tuple(targets[path].shape)}" for path in missing]
        problems += [f"unexpected {path}" for path in unexpected]
    values: dict[str, Tensor] = {}
    for path, target in targets.items():
        if path not in state:
            continue
        try:
            value = state[path]
            values[path] = value = value if isinstance(value, Tensor) else om.as_tensor(value)
        except (TypeError, ValueError) as error:
            problems.append(f"{path}: {error}")
            continue
        if tuple(value.shape) != tuple(target.shape):
            problems.append(
                f"{path}: expected shape {tuple(target.shape)}, got {tuple(value.shape)}"
            )
        elif is_floating(value) != is_floating(target):
            problems.append(f"{path}: expected dtype {target.dtype}, got {value.dtype}")
    if problems:
        hint = (
            ""
            if any("shape (" in p and "got" in p for p in problems)
            else ("; strict=False skips missing and unexpected paths")
        )
        raise StateDictError(
            f"load_state_dict ({kind}): {len(problems)} problem(s): " + "; ".join(problems) + hint
        )
    with om.no_grad():
        for path, value in values.items():
            target = targets[path]
            value = value.detach().to(target.dtype)
            if assign:
                target.data = value
            else:
                target.copy_(value)
    return IncompatibleKeys(missing, unexpected)


def is_floating(tensor: Tensor) -> bool:
    """Whether the dtype is one of the floating-point ones."""
    return tensor.dtype in ("float16", "bfloat16", "float32", "float64")


def move(module: NnModule, wanted: tuple[Any, ...], dtype: Any) -> None:
    """Does what ``to`` is asked to do with its arguments."""
    for value in wanted:
        if isinstance(value, Tensor):
            dtype = value.dtype
        elif isinstance(value, str) and value not in DTYPE_NAMES:
            require_cpu(value, f"to ({type(module).__name__})")
        elif value is not None and not isinstance(value, bool):
            dtype = value
    if dtype is not None:
        cast(module, dtype_of(dtype))


def cast(module: NnModule, dtype: str) -> None:
    """Casts floating-point parameters, their gradients and buffers in place."""
    name = str(dtype)
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise DtypeError(
            f"to ({type(module).__name__}): expected a floating-point dtype, got {name}"
        )
    tensors = [*module.parameters(), *module.buffers()]
    with om.no_grad():
        for tensor in tensors:
            if is_floating(tensor):
                gradient = tensor.grad
                tensor.grad = None
                tensor.data = tensor.detach().to(name)
                if gradient is not None:
                    tensor.grad = gradient.detach().to(name)
