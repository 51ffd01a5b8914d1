"""Lion."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup

__all__ = ["Lion"]


class Lion(Optimizer):
    """p −= lr·(sign(beta1·m + (1 − beta1)·g) + weight_decay·p); m = beta2·m + (1 − beta2)·g.

    Args:
        params: tensors or parameter groups.
        lr: step size. betas: as in the formula. weight_decay: decoupled, as in the formula.
        maximize: ascend instead.

    Source: Chen et al. 2023.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay, "maximize": maximize},
        )

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        first, second = group["betas"]
        for parameter in parameters:
            gradient = self._gradient(group, parameter)
            state = self.state_of(parameter)
            average = state.get("exp_avg")
            if average is None:
                average = om.zeros_like(parameter.detach())
            direction = (average * first + gradient * (1.0 - first)).sign()
            if group["weight_decay"]:
                direction = direction + parameter.detach() * group["weight_decay"]
            parameter.sub_(direction * group["lr"])
            state["exp_avg"] = average * second + gradient * (1.0 - second)
