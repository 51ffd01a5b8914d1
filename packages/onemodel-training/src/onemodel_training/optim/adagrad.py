"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """s += g²; p −= lr / (1 + (t − 1)·lr_decay)·g / (√s + eps).

    Args:
        params: tensors or parameter groups.
        lr: step size. lr_decay: as in the formula. weight_decay: L2 penalty.
        initial_accumulator_value: the first s. eps: added to the root. maximize: ascend instead.

    Source: Duchi et al. 2011.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "eps": eps,
                "maximize": maximize,
            },
        )

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        for parameter in parameters:
            gradient = self._gradient(group, parameter)
            if group["weight_decay"]:
                gradient = gradient + parameter.detach() * group["weight_decay"]
            state = self.state_of(parameter)
            if not state:
                state["step"] = 0
                start = group["initial_accumulator_value"]
                state["sum"] = om.full_like(parameter.detach(), start)
            state["step"] += 1
            state["sum"] = state["sum"] + gradient * gradient
            rate = group["lr"] / (1.0 + (state["step"] - 1) * group["lr_decay"])
            parameter.sub_(gradient / (state["sum"].sqrt() + group["eps"]) * rate)
