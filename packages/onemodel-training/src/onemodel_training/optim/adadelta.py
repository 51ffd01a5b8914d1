"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """v = rho·v + (1 − rho)·g²; d = √(u + eps) / √(v + eps)·g; u = rho·u + (1 − rho)·d²; p −= lr·d.

    Args:
        params: tensors or parameter groups.
        lr: factor of the step. rho: of the averages. eps: added below the roots.
        weight_decay: L2 penalty. maximize: ascend instead.

    Source: Zeiler 2012.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize},
        )

    def _check(self, group: ParameterGroup) -> None:
        super()._check(group)
        if not 0.0 <= group["rho"] <= 1.0:
            raise AttributeValueError(f"Adadelta: expected rho from 0 to 1, got {group['rho']}")

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        rho, eps = group["rho"], group["eps"]
        for parameter in parameters:
            gradient = self._gradient(group, parameter)
            if group["weight_decay"]:
                gradient = gradient + parameter.detach() * group["weight_decay"]
            state = self.state_of(parameter)
            if not state:
                state["square_avg"] = om.zeros_like(parameter.detach())
                state["acc_delta"] = om.zeros_like(parameter.detach())
            square = state["square_avg"] * rho + gradient * gradient * (1.0 - rho)
            step = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * gradient
            state["square_avg"] = square
            state["acc_delta"] = state["acc_delta"] * rho + step * step * (1.0 - rho)
            parameter.sub_(step * group["lr"])
