"""Learning-rate schedules against their closed forms, and their states."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError
from onemodel_training import (
    SGD,
    AdamW,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    Parameter,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
    WarmupCosineLR,
)


def sgd(lr: float = 1.0) -> SGD:
    return SGD([Parameter(om.ones(1))], lr=lr, momentum=0.9)


def rates(scheduler: LRScheduler | SequentialLR, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        found += scheduler.get_last_lr()
        scheduler.step()
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
        (lambda o: MultiStepLR(o, [3, 1], 0.1), [1, 0.1, 0.1, 0.01, 0.01]),
        (lambda o: ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125]),
        (lambda o: ConstantLR(o, 0.25, 2), [0.25, 0.25, 1, 1]),
        (lambda o: LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1]),
        (lambda o: PolynomialLR(o, 4, 2.0), [1, 0.5625, 0.25, 0.0625, 0, 0]),
        (lambda o: CosineAnnealingLR(o, 4, 0.2), [1, 0.8828427124746191, 0.6, 0.3171572875, 0.2]),
        (lambda o: CosineAnnealingWarmRestarts(o, 2, 2), [1, 0.5, 1, 0.8535533905932737, 0.5]),
        (lambda o: LambdaLR(o, lambda step: 1 / (1 + step)), [1, 0.5, 1 / 3]),
        (lambda o: WarmupCosineLR(o, 2, 6), [0.5, 1, 1, 0.8535533905932737, 0.5]),
    ],
)
def test_closed_forms(make: Callable[[SGD], LRScheduler], expected: list[float]) -> None:
    assert rates(make(sgd()), len(expected)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_one_cycle_goes_up_and_down_and_momentum_the_other_way() -> None:
    optimizer = sgd()
    schedule = OneCycleLR(optimizer, max_lr=2.0, total_steps=10)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(2.0 / 25.0)
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.95)
    seen, momenta = [], []
    for _ in range(10):
        seen += schedule.get_last_lr()
        momenta.append(optimizer.param_groups[0]["momentum"])
        schedule.step()
    # The peak of PyTorch's form is at pct_start * total_steps - 1 = step 2.
    assert seen[2] == pytest.approx(2.0)
    assert momenta[2] == pytest.approx(0.85)
    assert seen[1] == pytest.approx(2.0 / 25 + (2 - 2.0 / 25) / 2)
    assert seen[-1] == pytest.approx(2.0 / 25 / 1e4)
    assert seen[3] == pytest.approx(2e-6 * 4 + (2 - 8e-6) / 2 * (1 + math.cos(math.pi / 7)))
    adam = AdamW([Parameter(om.ones(1))], lr=1.0)
    OneCycleLR(adam, max_lr=2.0, total_steps=10)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)


def test_one_schedule_after_another() -> None:
    optimizer = sgd()
    warm = LinearLR(optimizer, 0.5, 1.0, 2)
    later = ExponentialLR(optimizer, 0.1)
    schedule = SequentialLR(optimizer, [warm, later], [3])
    assert rates(schedule, 5) == pytest.approx([0.5, 0.75, 1.0, 1.0, 0.1])


def test_plateau_waits_reduces_and_cools_down() -> None:
    optimizer = sgd()
    schedule = ReduceLROnPlateau(optimizer, factor=0.1, patience=1, cooldown=1, min_lr=0.005)
    for value in (1.0, 0.5, 0.5, 0.5):
        schedule.step(value)
    assert schedule.get_last_lr() == pytest.approx([0.1])
    for _ in range(10):
        schedule.step(0.5)
    assert schedule.get_last_lr() == pytest.approx([0.005])
    with pytest.raises(AttributeValueError, match="mode min or max"):
        ReduceLROnPlateau(optimizer, mode="least")


def test_state_survives_json_and_gives_the_very_numbers() -> None:
    straight = CosineAnnealingLR(sgd(0.3), 7)
    expected = rates(straight, 10)
    first = CosineAnnealingLR(sgd(0.3), 7)
    seen = rates(first, 4)
    second = CosineAnnealingLR(sgd(99.0), 7)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert seen + rates(second, 6) == expected


def test_bad_settings_say_what_is_allowed() -> None:
    with pytest.raises(AttributeValueError, match="step_size above 0, got 0"):
        StepLR(sgd(), 0)
    with pytest.raises(AttributeValueError, match="pct_start from 0 to 1, got 2"):
        OneCycleLR(sgd(), 1.0, 10, pct_start=2)
    with pytest.raises(AttributeValueError, match="expected 1 milestones"):
        SequentialLR(sgd(), [StepLR(sgd(), 1), StepLR(sgd(), 1)], [])
