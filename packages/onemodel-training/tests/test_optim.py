"""Optimisers against their formulas in f64, and their states."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import onemodel_kernels
import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_training import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    Lion,
    Optimizer,
    Parameter,
    RMSprop,
    clip_grad_norm_,
    clip_grad_value_,
    optim,
)

Vector = np.ndarray


def sgd(p: Vector, o: dict[str, float]) -> Iterator[Vector]:
    v = None
    while True:
        g = yield p
        g = g + o["weight_decay"] * p
        v = g if v is None else o["momentum"] * v + (1 - o["dampening"]) * g
        p = p - o["lr"] * (g + o["momentum"] * v if o.get("nesterov") else v)


def adam(p: Vector, o: dict[str, float]) -> Iterator[Vector]:
    m = v = largest = np.zeros_like(p)
    t = 0
    (b1, b2), decoupled = o["betas"], o["decoupled"]
    while True:
        g = yield p
        t += 1
        if decoupled:
            p = p - o["lr"] * o["weight_decay"] * p
        else:
            g = g + o["weight_decay"] * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        largest = np.maximum(largest, v) if o.get("amsgrad") else v
        p = p - o["lr"] * (m / (1 - b1**t)) / (np.sqrt(largest / (1 - b2**t)) + o["eps"])


def rmsprop(p: Vector, o: dict[str, float]) -> Iterator[Vector]:
    v = mean = buffer = np.zeros_like(p)
    while True:
        g = yield p
        g = g + o["weight_decay"] * p
        v = o["alpha"] * v + (1 - o["alpha"]) * g * g
        mean = o["alpha"] * mean + (1 - o["alpha"]) * g
        root = np.sqrt(v - mean * mean if o["centered"] else v) + o["eps"]
        buffer = o["momentum"] * buffer + g / root
        p = p - o["lr"] * buffer


def adagrad(p: Vector, o: dict[str, float]) -> Iterator[Vector]:
    s, t = np.full_like(p, o["initial_accumulator_value"]), 0
    while True:
        g = yield p
        g = g + o["weight_decay"] * p
        s = s + g * g
        p = p - o["lr"] / (1 + t * o["lr_decay"]) * g / (np.sqrt(s) + o["eps"])
        t += 1


def adadelta(p: Vector, o: dict[str, float]) -> Iterator[Vector]:
    v = u = np.zeros_like(p)
    while True:
        g = yield p
        g = g + o["weight_decay"] * p
        v = o["rho"] * v + (1 - o["rho"]) * g * g
        d = np.sqrt(u + o["eps"]) / np.sqrt(v + o["eps"]) * g
        u = o["rho"] * u + (1 - o["rho"]) * d * d
        p = p - o["lr"] * d


def lion(p: Vector, o: dict[str, float]) -> Iterator[Vector]:
    m = np.zeros_like(p)
    b1, b2 = o["betas"]
    while True:
        g = yield p
        p = p - o["lr"] * (np.sign(b1 * m + (1 - b1) * g) + o["weight_decay"] * p)
        m = b2 * m + (1 - b2) * g


CASES: list[tuple[Callable[..., Optimizer], Callable[..., Iterator[Vector]], dict[str, object]]] = [
    (SGD, sgd, {"lr": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    (Adam, adam, {"lr": 0.1, "weight_decay": 0.1}),
    (AdamW, adam, {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}),
    (Adam, adam, {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
    (AdamW, adam, {"lr": 0.1, "betas": (0.8, 0.9), "amsgrad": True}),
    (RMSprop, rmsprop, {"lr": 0.01}),
    (RMSprop, rmsprop, {"lr": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    (Adagrad, adagrad, {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    (Adagrad, adagrad, {"lr": 0.1, "weight_decay": 0.1}),
    (Adadelta, adadelta, {"lr": 1.0, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1}),
    (Lion, lion, {"lr": 0.01, "weight_decay": 0.1}),
]


def gradients(steps: int, seed: int = 0) -> list[Vector]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal((3, 5)) for _ in range(steps)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "oracle", "options"), CASES)
def test_ten_steps_follow_the_formula(
    kind: Callable[..., Optimizer],
    oracle: Callable[..., Iterator[Vector]],
    options: dict[str, object],
    dtype: str,
) -> None:
    start = np.linspace(-1.0, 1.0, 15).reshape(3, 5)
    parameter = Parameter(om.from_numpy(start).to(dtype))
    optimizer = kind([parameter], **options)
    settings = {**optimizer.defaults, "decoupled": kind is AdamW}
    expected = oracle(start, settings)
    wanted = next(expected)
    for gradient in gradients(10):
        parameter.grad = om.from_numpy(gradient).to(dtype)
        optimizer.step()
        wanted = expected.send(gradient)
    # Ten steps in f32 (f64) accumulate rounding errors of some units in the last place.
    tolerance = 3e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(parameter.detach().numpy(), wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kind", "oracle", "options"), CASES)
def test_state_goes_on_with_the_same_bits(
    kind: Callable[..., Optimizer], oracle: object, options: dict[str, object]
) -> None:
    def run(stop: int | None) -> bytes:
        parameter = Parameter(om.linspace(-1.0, 1.0, 15).reshape(3, 5))
        optimizer = kind([parameter], **options)
        for step, gradient in enumerate(gradients(6)):
            if step == stop:
                saved = optimizer.state_dict()
                parameter = Parameter(parameter.detach().clone())
                optimizer = kind([parameter], lr=123.0)
                optimizer.load_state_dict(saved)
            parameter.grad = om.from_numpy(gradient).float()
            optimizer.step()
        return parameter.detach().numpy().tobytes()

    assert run(None) == run(3)


@pytest.mark.parametrize(("kind", "oracle", "options"), CASES)
def test_bits_do_not_depend_on_threads(
    kind: Callable[..., Optimizer], oracle: object, options: dict[str, object]
) -> None:
    before = onemodel_kernels.get_num_threads()
    digests = set()
    try:
        for threads in (1, 2):
            onemodel_kernels.set_num_threads(threads)
            parameter = Parameter(om.rand(300, 301, generator=om.Generator(1)))
            optimizer = kind([parameter], **options)
            for step in range(3):
                parameter.grad = om.rand(300, 301, generator=om.Generator(step + 2)) - 0.5
                optimizer.step()
            digests.add(hashlib.sha256(parameter.detach().numpy().tobytes()).hexdigest())
    finally:
        onemodel_kernels.set_num_threads(before)
    assert len(digests) == 1


def test_groups_have_options_of_their_own() -> None:
    first, second, third = (Parameter(om.ones(1)) for _ in range(3))
    optimizer = SGD([{"params": [first], "lr": 1.0}, {"params": second}], lr=0.5)
    optimizer.add_param_group({"params": [third], "maximize": True})
    for parameter in (first, second, third):
        parameter.grad = om.ones(1)
    optimizer.step()
    assert (first.item(), second.item(), third.item()) == (0.0, 0.5, 1.5)
    first.grad = None
    optimizer.step()
    assert first.item() == 0.0
    optimizer.zero_grad()
    assert second.grad is None


def test_a_step_is_seen_by_version_checks() -> None:
    weight = Parameter(om.ones(2))
    loss = (weight * weight).sum()
    weight.grad = om.ones(2)
    SGD([weight], lr=0.1).step()
    with pytest.raises(OneModelError, match="written in place"):
        loss.backward()


def test_closures_give_the_loss() -> None:
    weight = Parameter(om.ones(1))
    optimizer = SGD([weight], lr=0.5)

    def closure() -> om.Tensor:
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    assert loss is not None
    assert loss.item() == 1.0
    assert weight.item() == 0.0


def test_bad_settings_say_what_is_allowed() -> None:
    weight = Parameter(om.ones(1))
    with pytest.raises(AttributeValueError, match="lr of 0 or more, got -1"):
        SGD([weight], lr=-1.0)
    with pytest.raises(AttributeValueError, match="nesterov needs momentum"):
        SGD([weight], lr=1.0, nesterov=True)
    with pytest.raises(AttributeValueError, match="betas from 0 to below 1"):
        Adam([weight], betas=(0.9, 1.0))
    with pytest.raises(AttributeValueError, match="expected parameters, got none"):
        SGD([], lr=1.0)
    with pytest.raises(AttributeValueError, match="more than one place"):
        SGD([weight, weight], lr=1.0)
    with pytest.raises(AttributeValueError, match="unknown option beta; the options are betas"):
        Lion([{"params": [weight], "beta": 1.0}])
    with pytest.raises(AttributeValueError, match=r"groups of \[1\] parameters, got \[2\]"):
        SGD([weight]).load_state_dict(
            SGD([Parameter(om.ones(1)), Parameter(om.ones(1))]).state_dict()
        )


def test_norm_clipping() -> None:
    first, second = Parameter(om.zeros(2)), Parameter(om.zeros(1))
    first.grad, second.grad = om.tensor([3.0, 0.0]), om.tensor([4.0])
    assert clip_grad_norm_([first, second], 10.0) == 5.0
    assert second.grad.tolist() == [4.0]
    assert clip_grad_norm_([first, second], 1.0) == 5.0
    assert first.grad.tolist() == pytest.approx([0.6, 0.0], rel=1e-6)
    assert second.grad.tolist() == pytest.approx([0.8], rel=1e-6)
    second.grad = om.tensor([-4.0])
    assert clip_grad_norm_([second], 9.0, norm_type=float("inf")) == 4.0
    assert clip_grad_norm_([second], 9.0, norm_type=1.0) == 4.0
    assert clip_grad_norm_([], 1.0) == 0.0
    second.grad = om.tensor([float("nan")])
    with pytest.raises(OneModelError, match="finite gradient norm, got nan"):
        clip_grad_norm_([second], 1.0, error_if_nonfinite=True)


def test_value_clipping() -> None:
    weight = Parameter(om.zeros(3))
    weight.grad = om.tensor([-2.0, 0.5, 2.0])
    clip_grad_value_([weight], 1.0)
    assert weight.grad.tolist() == [-1.0, 0.5, 1.0]


def test_schedules_have_the_names_of_their_peers() -> None:
    parameter = Parameter(om.ones(1))
    optimizer = SGD([parameter], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_own_optimisers_keep_their_state_by_parameter() -> None:
    class Counting(Optimizer):
        def step(self, closure: Callable[[], om.Tensor] | None = None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    state = self.state[parameter]
                    if len(state) == 0:
                        state["step"] = 0
                    state["step"] += 1

    parameter = Parameter(om.ones(1))
    optimizer = Counting([parameter], {"lr": 1.0})
    assert parameter not in optimizer.state
    optimizer.step()
    optimizer.step()
    assert optimizer.state[parameter]["step"] == 2
    assert [id(key) for key in optimizer.state] == [id(parameter)]
    assert len(optimizer.state) == 1
