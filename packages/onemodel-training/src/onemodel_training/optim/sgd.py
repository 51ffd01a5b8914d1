"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels import Kernel
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup

__all__ = ["SGD"]


class SGD(Optimizer):
    """g += weight_decay·p; v = momentum·v + (1 − dampening)·g; p −= lr·v.

    The first v is g itself. With ``nesterov`` the step is lr·(g + momentum·v).

    Args:
        params: tensors or parameter groups.
        lr: step size. momentum, dampening, weight_decay: as in the formula.
        nesterov: needs momentum and no dampening. maximize: ascend instead.

    Source: Sutskever et al. 2013, in PyTorch's form.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _check(self, group: ParameterGroup) -> None:
        super()._check(group)
        if group["momentum"] < 0.0:
            raise AttributeValueError(
                f"SGD: expected momentum of 0 or more, got {group['momentum']}"
            )
        if group["nesterov"] and (group["momentum"] <= 0.0 or group["dampening"] != 0.0):
            raise AttributeValueError("SGD: nesterov needs momentum above 0 and dampening 0")

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        def kernel(momentum: float, dampening: float) -> Kernel:
            return Kernel(
                "SgdStep",
                lr=float(group["lr"]),
                momentum=momentum,
                dampening=dampening,
                weight_decay=float(group["weight_decay"]),
                nesterov=int(bool(group["nesterov"])),
            )

        momentum = float(group["momentum"])
        plain = kernel(0.0, 0.0) if not momentum else None
        first = kernel(momentum, 0.0)
        later = kernel(momentum, float(group["dampening"]))
        for parameter in parameters:
            values = parameter._array
            gradient = self._gradient(group, parameter).contiguous()._array
            if plain is not None:
                plain.run_into([values], [values, gradient])
                continue
            state = self.state_of(parameter)
            velocity = state.get("momentum_buffer")
            chosen = later
            if velocity is None:
                velocity = state["momentum_buffer"] = om.zeros_like(parameter.detach())
                chosen = first
            buffer = velocity._array
            chosen.run_into([values, buffer], [values, gradient, buffer])
