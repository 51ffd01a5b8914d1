"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """v = alpha·v + (1 − alpha)·g²; p −= lr·g / (√v + eps).

    Args:
        params: tensors or parameter groups.
        lr: step size. alpha: of the average. eps: added to the root.
        weight_decay: L2 penalty. momentum: the step is accumulated as in SGD if above 0.
        centered: the square of the average gradient is taken off v. maximize: ascend instead.

    Source: Hinton's lecture 6e, in PyTorch's form.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )

    def _check(self, group: ParameterGroup) -> None:
        super()._check(group)
        if not 0.0 <= group["alpha"] < 1.0:
            raise AttributeValueError(
                f"RMSprop: expected alpha from 0 to below 1, got {group['alpha']}"
            )

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        alpha, lr = group["alpha"], group["lr"]
        for parameter in parameters:
            gradient = self._gradient(group, parameter)
            if group["weight_decay"]:
                gradient = gradient + parameter.detach() * group["weight_decay"]
            state = self.state_of(parameter)
            zeros = om.zeros_like(parameter.detach())
            square = state.get("square_avg", zeros) * alpha + gradient * gradient * (1.0 - alpha)
            state["square_avg"] = square
            if group["centered"]:
                mean = state.get("grad_avg", zeros) * alpha + gradient * (1.0 - alpha)
                state["grad_avg"] = mean
                square = square - mean * mean
            change = gradient / (square.sqrt() + group["eps"])
            if group["momentum"]:
                change = state.get("momentum_buffer", zeros) * group["momentum"] + change
                state["momentum_buffer"] = change
            parameter.sub_(change * lr)
