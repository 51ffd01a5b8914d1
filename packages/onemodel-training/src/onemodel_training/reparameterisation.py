"""Weights as functions of other parameters: weight norm and spectral norm."""

from __future__ import annotations

from typing import Any, TypeVar

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_training import init
from onemodel_training.module import NnModule, RemovableHandle
from onemodel_training.parameter import Parameter

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

Module = TypeVar("Module", bound=NnModule)


def _take(module: NnModule, name: str, what: str) -> Parameter:
    parameter = module._parameters.get(name)
    if parameter is None:
        raise AttributeValueError(
            f"{what} ({type(module).__name__}): expected a parameter {name!r}; it has "
            f"{', '.join(module._parameters) or 'none'}"
        )
    del module._parameters[name]
    return parameter


def _hooks(module: NnModule) -> dict[tuple[str, str], RemovableHandle]:
    known: dict[tuple[str, str], RemovableHandle] = module.__dict__.setdefault(
        "_reparameterised", {}
    )
    return known


def _remove(module: NnModule, what: str, name: str, parts: tuple[str, ...]) -> None:
    handle = _hooks(module).pop((what, name), None)
    if handle is None:
        raise AttributeValueError(
            f"remove_{what} ({type(module).__name__}): {name!r} has no {what}"
        )
    handle.remove()
    weight = module.__dict__.pop(name)
    for part in parts:
        delattr(module, f"{name}_{part}")
    module.register_parameter(name, Parameter(weight.detach().clone()))


def _length(v: Tensor, dim: int | None) -> Tensor:
    axes = None if dim is None else tuple(axis for axis in range(v.ndim) if axis != dim)
    return (v * v).sum(axes, keepdim=True).sqrt()


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Makes a weight g·v / ‖v‖ with g and v as parameters.

    Args:
        module: whose parameter it is; returned.
        name: of the parameter; ``name_g`` and ``name_v`` take its place in the state dict.
        dim: the axis along which there is one g for each slice; None: one g in all.

    A trace holds the weight itself. Source: Salimans & Kingma 2016.
    """
    weight = _take(module, name, "weight_norm")
    if dim is not None:
        dim %= weight.ndim
    with om.no_grad():
        lengths = _length(weight.detach(), dim)
    module.register_parameter(
        f"{name}_g", Parameter(lengths if dim is not None else lengths.reshape(()))
    )
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))

    def compute(owner: NnModule, _arguments: Any = None) -> None:
        v = getattr(owner, f"{name}_v")
        owner.__dict__[name] = v * (getattr(owner, f"{name}_g") / _length(v, dim))

    compute(module)
    _hooks(module)["weight_norm", name] = module.register_forward_pre_hook(compute)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again, with its present value."""
    _remove(module, "weight_norm", name, ("g", "v"))
    return module


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int = 0,
) -> Module:
    """Divides a weight by its largest singular value, found by power iteration in training mode.

    Args:
        module: whose parameter it is; returned.
        name: of the parameter; ``name_orig``, ``name_u`` and ``name_v`` stand for it in the state.
        n_power_iterations: iterations in each forward pass.
        eps: added to norms.
        dim: the axis that becomes the rows of the matrix; 1 for transposed convolutions.

    A trace holds the weight itself. Source: Miyato et al. 2018.
    """
    if n_power_iterations < 1:
        raise AttributeValueError(
            f"spectral_norm: expected n_power_iterations of 1 or more, got {n_power_iterations}"
        )
    weight = _take(module, name, "spectral_norm")
    dim %= weight.ndim

    def matrix(w: Tensor) -> Tensor:
        return w.movedim(dim, 0).flatten(1)

    rows, columns = matrix(weight.detach()).shape
    module.register_parameter(f"{name}_orig", Parameter(weight.detach()))
    for part, size in (("u", rows), ("v", columns)):
        vector = init.normal_(om.empty(size, dtype=weight.dtype))
        module.register_buffer(f"{name}_{part}", F.normalize(vector, dim=0, eps=eps))

    def compute(owner: NnModule, _arguments: Any = None, start: bool = False) -> None:
        w = getattr(owner, f"{name}_orig")
        u, v = getattr(owner, f"{name}_u"), getattr(owner, f"{name}_v")
        if start or owner.training:
            with om.no_grad():
                flat = matrix(w.detach())
                for _ in range(15 if start else n_power_iterations):
                    v.copy_(F.normalize(flat.T @ u, dim=0, eps=eps))
                    u.copy_(F.normalize(flat @ v, dim=0, eps=eps))
        largest = u.clone() @ (matrix(w) @ v.clone())
        owner.__dict__[name] = w / largest

    compute(module, start=True)
    _hooks(module)["spectral_norm", name] = module.register_forward_pre_hook(compute)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again, with its present value."""
    _remove(module, "spectral_norm", name, ("orig", "u", "v"))
    return module
