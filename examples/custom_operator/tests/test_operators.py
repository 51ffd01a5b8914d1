"""Both operators through every layer: eager, gradient, trace, files, sessions, another engine."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import onemodel_tensors as om
from custom_operator.huber import huber
from custom_operator.snake import snake
from onemodel_graph import ArithmeticMode, Session
from onemodel_kernels import Kernel
from onemodel_kernels.errors import OneModelError, ShapeError, UsageError
from onemodel_trace import TracedModel, TraceException, Tracer


def samples(*shape: int, dtype: type = np.float32) -> Any:
    return np.random.default_rng(5).normal(0.0, 2.0, shape).astype(dtype)


def snake_oracle(x: Any, alpha: Any) -> Any:
    rate = alpha.astype(np.float64)[:, None]
    x = x.astype(np.float64)
    return x + np.sin(rate * x) ** 2 / (rate + 1e-9)


def huber_oracle(x: Any, delta: float) -> Any:
    size = np.abs(x.astype(np.float64))
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))


def model(x: om.Tensor, alpha: om.Tensor) -> om.Tensor:
    return huber(snake(x, alpha) * 0.5, delta=1.5)


def traced() -> TracedModel:
    with Tracer.begin() as tracer:
        x = tracer.input("x", om.from_numpy(samples(2, 3, 7)), ("batch", None, "time"))
        alpha = tracer.input("alpha", om.from_numpy(abs(samples(3))))
        return tracer.finish({"y": model(x, alpha)}, model)


def test_the_eager_functions_agree_with_an_f64_oracle() -> None:
    x, alpha = samples(2, 3, 50), abs(samples(3)) + np.float32(0.1)
    y = snake(om.from_numpy(x), om.from_numpy(alpha)).numpy()
    # The angle is rounded to float32 before the sine, and the division multiplies that by 1 / alpha.
    assert np.abs(y - snake_oracle(x, alpha)).max() < 2e-5
    z = huber(om.from_numpy(x), delta=1.5).numpy()
    # Three roundings of numbers below 16.
    assert np.abs(z - huber_oracle(x, 1.5)).max() < 16 * 3 * 2.0**-24


def test_the_gradients_agree_with_finite_differences() -> None:
    x = om.from_numpy(samples(2, 3, 4, dtype=np.float64)).requires_grad_()
    alpha = om.from_numpy(abs(samples(3, dtype=np.float64)) + 0.5).requires_grad_()
    assert om.gradcheck(snake, (x, alpha))
    assert om.gradcheck(lambda x: huber(x, delta=1.5), (x,))


def test_a_gradient_is_summed_with_others() -> None:
    x = om.from_numpy(samples(1, 2, 3)).requires_grad_()
    (huber(x).sum() + x.sum()).backward()
    assert x.grad is not None
    assert x.grad.numpy().tolist() == (np.clip(x.detach().numpy(), -1, 1) + 1).tolist()


def test_the_trace_has_nodes_of_the_own_domain_and_holds_at_other_sizes() -> None:
    found = traced()
    own = [node.operator for node in found.graph.nodes if node.domain == "com.example"]
    assert own == ["Snake", "Huber"]
    assert len(found.verify(mode=ArithmeticMode.EXACT).sizes) == 2


@pytest.mark.parametrize("mode", list(ArithmeticMode))
@pytest.mark.parametrize("suffix", ["onnx", "om1"])
def test_sessions_give_the_eager_bits(mode: ArithmeticMode, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.{suffix}"
    (traced().save_onnx if suffix == "onnx" else traced().save)(path)
    session = Session(path, mode)
    x, alpha = samples(5, 3, 11), abs(samples(3))
    (y,) = session.run(x, alpha)
    wanted = model(om.from_numpy(x), om.from_numpy(alpha)).numpy()
    assert y.tobytes() == wanted.tobytes()
    labels = [label for label, _ in session.profile(x, alpha).entries]
    assert any("com.example::Snake" in label for label in labels)


def test_another_engine_runs_the_bodies(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    traced().save_onnx(path)
    x, alpha = samples(4, 3, 9), abs(samples(3)) + np.float32(0.1)
    (theirs,) = ort.InferenceSession(path).run(None, {"x": x, "alpha": alpha})
    (ours,) = Session(path).run(x, alpha)
    # Another sine, and another order of the multiplications: a few units in the last place.
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_a_process_that_does_not_know_the_operators_runs_their_bodies(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    traced().save_onnx(path)
    script = (
        "import numpy as np, sys; from onemodel_graph import Session\n"
        "x = np.full((2, 3, 4), 0.5, np.float32); a = np.ones(3, np.float32)\n"
        "print(float(Session(sys.argv[1]).run(x, a)[0][0, 0, 0]))\n"
        "assert 'custom_operator' not in sys.modules"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    )
    half = 0.5 * (0.5 + math.sin(0.5) ** 2)
    assert math.isclose(float(run.stdout), 0.5 * half**2, rel_tol=1e-5)


def test_format_v1_names_the_operators_that_a_process_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "model.om1"
    traced().save(path)
    script = "import sys; from onemodel_graph import Session; Session(sys.argv[1])"
    run = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert run.returncode != 0
    assert "com.example::Snake" in run.stderr
    assert "import the package that registers it" in run.stderr


def test_deployment_needs_no_tensors() -> None:
    script = (
        "import sys, custom_operator.huber_kernel, custom_operator.snake_kernel as s\n"
        "assert s.SNAKE.kernel == 'com.example::Snake'\n"
        "assert not any(name.startswith('onemodel_tensors') for name in sys.modules)\n"
        "assert 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_does_not_fit_is_refused_by_name() -> None:
    x = om.from_numpy(samples(2, 3, 4))
    with pytest.raises(ShapeError, match=r"Snake.*alpha \(C,\)"):
        snake(x, om.ones(4))
    with pytest.raises(OneModelError, match=r"Huber.*float32 or float64"):
        huber(x.long())
    with pytest.raises(UsageError, match="delta must be above 0"):
        huber(x, delta=-1.0)
    with pytest.raises(OneModelError, match="unknown attribute 'gamma'"):
        huber(x, gamma=1.0)
    with pytest.raises(UsageError, match="expected a tensor as input 'alpha'"):
        snake(x)


def test_a_size_of_the_run_is_not_frozen_into_an_attribute() -> None:
    with Tracer.begin() as tracer:
        x = tracer.input("x", om.from_numpy(samples(2, 3)), ("batch", None))
        with pytest.raises(TraceException, match="the attribute 'delta' would be frozen"):
            huber(x, delta=x.shape[0])


def test_kernels_run_by_themselves() -> None:
    (row,) = (Kernel("com.example::Huber", delta=2.0)(om.from_numpy(samples(4))._array),)
    assert row.dtype == "float32"
    assert row.shape == (4,)
