"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

import onemodel_tensors as om
from onemodel_kernels import Kernel
from onemodel_tensors import Tensor
from onemodel_training.optim.optimizer import Optimizer, ParameterGroup, State

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """g += weight_decay·p; m, v: moving averages of g, g²; p −= lr·m̂ / (√v̂ + eps).

    m̂ = m / (1 − beta1ᵗ), v̂ = v / (1 − beta2ᵗ), t the step of the parameter.

    Args:
        params: tensors or parameter groups.
        lr: step size. betas: of the averages. eps: added to the root.
        weight_decay: L2 penalty, as in the formula. maximize: ascend instead.
        amsgrad: divide by the largest v so far (Reddi et al. 2018).

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
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
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
            if group["amsgrad"]:
                self._step_by_maximum(group, parameter, state)
                continue
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

    def _step_by_maximum(self, group: ParameterGroup, parameter: Tensor, state: State) -> None:
        first, second = group["betas"]
        gradient = self._gradient(group, parameter)
        if self.decoupled:
            parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
        elif group["weight_decay"]:
            gradient = gradient + parameter.detach() * group["weight_decay"]
        state["exp_avg"].mul_(first).add_(gradient * (1.0 - first))
        state["exp_avg_sq"].mul_(second).add_(gradient * gradient * (1.0 - second))
        largest = state["exp_avg_sq"].maximum(state.get("max_exp_avg_sq", 0.0))
        state["max_exp_avg_sq"] = largest
        scale = (1.0 - second ** state["step"]) ** 0.5
        root = largest.sqrt() / scale + group["eps"]
        parameter.sub_(state["exp_avg"] / root * (group["lr"] / (1.0 - first ** state["step"])))


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
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
