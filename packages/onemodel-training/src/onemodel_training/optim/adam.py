"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels import Kernel
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """g += weight_decay·p; m, v: moving averages of g, g²; p −= lr·m̂ / (√v̂ + eps).

    m̂ = m / (1 − beta1ᵗ), v̂ = v / (1 − beta2ᵗ), t the step of the parameter.

    Args:
        params: tensors or parameter groups.
        lr: step size. betas: of the averages. eps: added to the root.
        weight_decay: L2 penalty, as in the formula. maximize: ascend instead.

    Source: Kingma & Ba 2014.
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        kernels: dict[int, Kernel] = {}
        for parameter in parameters:
            state = self.state_of(parameter)
            if not state:
                state["step"] = 0
                state["exp_avg"] = om.zeros_like(parameter.detach())
                state["exp_avg_sq"] = om.zeros_like(parameter.detach())
            state["step"] += 1
            step = state["step"]
            kernel = kernels.get(step)
            if kernel is None:
                kernel = kernels[step] = Kernel(
                    "AdamWStep",
                    lr=float(group["lr"]),
                    beta1=float(group["betas"][0]),
                    beta2=float(group["betas"][1]),
                    eps=float(group["eps"]),
                    weight_decay=float(group["weight_decay"]),
                    step=step,
                    decoupled=int(self.decoupled),
                )
            gradient = self._gradient(group, parameter).contiguous()._array
            values = parameter._array
            first, second = state["exp_avg"]._array, state["exp_avg_sq"]._array
            kernel.run_into([values, first, second], [values, gradient, first, second])


class AdamW(Adam):
    """Adam with p −= lr·weight_decay·p instead of a penalty in the gradient.

    Source: Loshchilov & Hutter 2017.
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[ParameterGroup],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, maximize=maximize)
