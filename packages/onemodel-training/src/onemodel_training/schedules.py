"""Learning-rate schedules. Each is a function of the number of steps taken, so that resuming
after k steps gives the very numbers of a run that was never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError
from onemodel_training.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmupCosineLR",
]


def _positive(kind: str, **values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise AttributeValueError(f"{kind}: expected {name} above 0, got {value}")


class LRScheduler:
    """Sets ``lr`` of every parameter group from its initial value and the steps taken.

    A subclass defines ``rate(base, step)``. The rate for step 0 is set at once.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lrs = [float(group["lr"]) for group in optimizer.param_groups]
        self.steps = 0
        self._apply()

    def rate(self, base: float, step: int) -> float:
        """The learning rate after ``step`` steps of a group that began with ``base``."""
        raise TypeError(f"{type(self).__name__}: a subclass defines rate(base, step={step})")

    def _apply(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = self.rate(base, self.steps)

    def step(self) -> None:
        """Counts one step and sets the rates that hold for the next."""
        self.steps += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rates in force, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return {"steps": self.steps, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the other schedule was."""
        self.steps = int(state["steps"])
        self.base_lrs = [float(base) for base in state["base_lrs"]]
        self._apply()


class LambdaLR(LRScheduler):
    """base·function(step)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·function(step)."""
        return base * self.lr_lambda(step)


class StepLR(LRScheduler):
    """base·gamma^⌊step / step_size⌋."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        _positive("StepLR", step_size=step_size)
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·gamma^⌊step / step_size⌋."""
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """base·gamma^(milestones reached)."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·gamma^(milestones reached)."""
        return base * self.gamma ** sum(step >= milestone for milestone in self.milestones)


class ExponentialLR(LRScheduler):
    """base·gamma^step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·gamma^step."""
        return base * self.gamma**step


class ConstantLR(LRScheduler):
    """base·factor for total_iters steps, then base."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3.0, total_iters: int = 5
    ) -> None:
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·factor, then base."""
        return base * self.factor if step < self.total_iters else base


class LinearLR(LRScheduler):
    """From base·start_factor to base·end_factor in total_iters steps: the usual warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        _positive("LinearLR", total_iters=total_iters)
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·(start + (end − start)·min(step, total_iters) / total_iters)."""
        share = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class PolynomialLR(LRScheduler):
    """base·(1 − step / total_iters)^power, then 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
        _positive("PolynomialLR", total_iters=total_iters)
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """base·(1 − step / total_iters)^power."""
        return float(base * (1.0 - min(step, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """eta_min + (base − eta_min)·(1 + cos(π·step / T_max)) / 2. Source: Loshchilov 2016."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        _positive("CosineAnnealingLR", T_max=T_max)
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """A cosine of period 2·T_max."""
        return self.eta_min + (base - self.eta_min) * (
            (1.0 + math.cos(math.pi * step / self.T_max)) / 2.0
        )


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines of length T_0, T_0·T_mult, T_0·T_mult² …, each from base to eta_min."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0
    ) -> None:
        _positive("CosineAnnealingWarmRestarts", T_0=T_0, T_mult=T_mult)
        self.T_0 = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """The cosine of the cycle that the step falls into."""
        length = self.T_0
        if self.T_mult == 1:
            step %= length
        else:
            while step >= length:
                step -= length
                length *= self.T_mult
        return self.eta_min + (base - self.eta_min) * (
            (1.0 + math.cos(math.pi * step / length)) / 2.0
        )


class WarmupCosineLR(LRScheduler):
    """Linear from base / warmup_steps to base, then a cosine to base·final at total_steps."""

    def __init__(
        self, optimizer: Optimizer, warmup_steps: int, total_steps: int, final: float = 0.0
    ) -> None:
        _positive("WarmupCosineLR", total_steps=total_steps)
        if not 0 <= warmup_steps < total_steps:
            raise AttributeValueError(
                f"WarmupCosineLR: expected warmup_steps from 0 to below {total_steps}, got "
                f"{warmup_steps}"
            )
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.final = final
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Warm-up, then half a cosine."""
        if step < self.warmup_steps:
            return base * (step + 1) / self.warmup_steps
        share = min(1.0, (step - self.warmup_steps) / (self.total_steps - self.warmup_steps))
        return base * (self.final + (1.0 - self.final) * (1.0 + math.cos(math.pi * share)) / 2.0)


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to that / final_div_factor.

    Args:
        optimizer: whose ``momentum`` (or first beta) runs the other way if ``cycle_momentum``.
        max_lr: the peak, one number or one for each group.
        total_steps: the length of the whole cycle.
        epochs: instead of it, with ``steps_per_epoch``: their product.
        steps_per_epoch: see ``epochs``.
        pct_start: the share of it that goes up.
        anneal_strategy: cos or linear.
        cycle_momentum: whether momentum runs from max_momentum to base_momentum and back.
        base_momentum: its lowest value. max_momentum: its highest.
        div_factor: peak over start. final_div_factor: start over end.

    Source: Smith & Topin 2017, in PyTorch's two-phase form.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise AttributeValueError(
                    "OneCycleLR: expected total_steps, or epochs and steps_per_epoch"
                )
            total_steps = epochs * steps_per_epoch
        _positive("OneCycleLR", total_steps=total_steps)
        if not 0.0 <= pct_start <= 1.0:
            raise AttributeValueError(
                f"OneCycleLR: expected pct_start from 0 to 1, got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise AttributeValueError(
                f"OneCycleLR: expected anneal_strategy cos or linear, got {anneal_strategy!r}"
            )
        count = len(optimizer.param_groups)
        peaks = [float(max_lr)] * count if isinstance(max_lr, (int, float)) else list(max_lr)
        if len(peaks) != count:
            raise AttributeValueError(f"OneCycleLR: expected {count} max_lr, got {len(peaks)}")
        self.total_steps = total_steps
        self.pct_start = pct_start
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.base_momentum = base_momentum
        self.max_momentum = max_momentum
        self.div_factor = div_factor
        self.final_div_factor = final_div_factor
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak
        super().__init__(optimizer)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2.0 * (1.0 + math.cos(math.pi * share))

    def _at(self, step: int, low: float, high: float, last: float) -> float:
        top = self.pct_start * self.total_steps - 1.0
        end = self.total_steps - 1.0
        step = min(step, self.total_steps - 1)
        if step <= top:
            return self._between(low, high, step / top if top > 0 else 1.0)
        return self._between(high, last, (step - top) / (end - top) if end > top else 1.0)

    def rate(self, base: float, step: int) -> float:
        """Two half cosines (or lines); ``base`` is the peak."""
        low = base / self.div_factor
        return self._at(step, low, base, low / self.final_div_factor)

    def _apply(self) -> None:
        super()._apply()
        if self.cycle_momentum:
            momentum = self._at(
                self.steps, self.max_momentum, self.base_momentum, self.max_momentum
            )
            for group in self.optimizer.param_groups:
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                elif "momentum" in group:
                    group["momentum"] = momentum


class SequentialLR:
    """One schedule after another: ``schedulers[i + 1]`` takes over at ``milestones[i]``."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
    ) -> None:
        if len(milestones) != len(schedulers) - 1 or list(milestones) != sorted(milestones):
            raise AttributeValueError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones in order, got "
                f"{list(milestones)}"
            )
        self.optimizer = optimizer
        self.schedulers = list(schedulers)
        self.milestones = list(milestones)
        for scheduler in self.schedulers[1:]:
            scheduler.base_lrs = list(self.schedulers[0].base_lrs)
        self.steps = 0
        self._apply()

    def _apply(self) -> None:
        position = sum(self.steps >= milestone for milestone in self.milestones)
        start = self.milestones[position - 1] if position else 0
        current = self.schedulers[position]
        current.steps = self.steps - start
        current._apply()

    def step(self) -> None:
        """Counts one step and sets the rates that hold for the next."""
        self.steps += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rates in force, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return {"steps": self.steps, "base_lrs": list(self.schedulers[0].base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the other schedule was."""
        self.steps = int(state["steps"])
        for scheduler in self.schedulers:
            scheduler.base_lrs = [float(base) for base in state["base_lrs"]]
        self._apply()


class ReduceLROnPlateau:
    """Multiplies lr by factor when a figure has not improved for more than patience steps.

    Args:
        optimizer: whose rates it sets.
        mode: min or max, which way is better.
        factor: below 1. patience: steps without improvement that are let pass.
        threshold: the improvement that counts, as a share (rel) or a difference (abs).
        threshold_mode: rel or abs. cooldown: steps to wait after a reduction.
        min_lr: the lowest rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise AttributeValueError(
                "ReduceLROnPlateau: expected mode min or max and threshold_mode rel or abs, got "
                f"{mode!r} and {threshold_mode!r}"
            )
        if not 0.0 < factor < 1.0:
            raise AttributeValueError(
                f"ReduceLROnPlateau: expected factor between 0 and 1, got {factor}"
            )
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.best: float | None = None
        self.bad_steps = 0
        self.waiting = 0

    def _better(self, value: float) -> bool:
        if self.best is None:
            return value == value
        sign = 1.0 if self.mode == "max" else -1.0
        margin = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return sign * (value - self.best) > margin

    def step(self, metrics: float) -> None:
        """Looks at the newest figure and lowers the rates if it is time."""
        value = float(metrics)
        if self._better(value):
            self.best = value
            self.bad_steps = 0
        else:
            self.bad_steps += 1
        if self.waiting > 0:
            self.waiting -= 1
            self.bad_steps = 0
        if self.bad_steps > self.patience:
            for group in self.optimizer.param_groups:
                group["lr"] = max(group["lr"] * self.factor, self.min_lr)
            self.waiting = self.cooldown
            self.bad_steps = 0

    def get_last_lr(self) -> list[float]:
        """The rates in force, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return {
            "best": self.best,
            "bad_steps": self.bad_steps,
            "waiting": self.waiting,
            "lrs": self.get_last_lr(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the other schedule was."""
        self.best = state["best"]
        self.bad_steps = int(state["bad_steps"])
        self.waiting = int(state["waiting"])
        for group, rate in zip(self.optimizer.param_groups, state["lrs"], strict=True):
            group["lr"] = float(rate)
