"""What the tests share: tracing a function, and comparing all that can run it at several sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import settings

import onemodel_tensors as om
from onemodel_graph import ArithmeticMode, Session
from onemodel_kernels.errors import OneModelError
from onemodel_trace import TracedModel, Tracer

settings.register_profile("few", max_examples=80)
settings.register_profile("thousands", max_examples=5000)
settings.load_profile("few")

SCALED = 2e-5
"""Difference allowed to ONNX Runtime, which orders sums in its own way and rounds functions elsewhere."""

FAST = 1e-5
"""Difference that fast mode promises."""

SIZES = (1, 2, 3, 7)


def _trace(
    function: Callable[..., Any],
    *examples: om.Tensor,
    axes: Mapping[str, Any] | None = None,
    parameters: Mapping[str, om.Tensor] | None = None,
) -> TracedModel:
    names = list(inspect.signature(function).parameters)[: len(examples)]
    with Tracer.begin() as tracer:
        inputs = [
            tracer.input(name, example, axis_names=(axes or {}).get(name))
            for name, example in zip(names, examples, strict=True)
        ]
        for name, tensor in (parameters or {}).items():
            tracer.parameter(name, tensor)
        outputs = function(*inputs)
        return tracer.finish(_named(outputs), function=function)


def _named(outputs: Any) -> dict[str, om.Tensor]:
    if isinstance(outputs, om.Tensor):
        return {"out": outputs}
    if isinstance(outputs, Mapping):
        return dict(outputs)
    return {f"out{position}": tensor for position, tensor in enumerate(outputs)}


def _values(outputs: Any) -> list[np.ndarray]:
    return [np.asarray(tensor.numpy()) for tensor in _named(outputs).values()]


def close(expected: np.ndarray, found: np.ndarray, scaled: float) -> bool:
    if expected.dtype.kind != "f":
        return np.array_equal(expected, found)
    finite = expected[np.isfinite(expected)]
    magnitude = np.abs(finite).max() if finite.size else 1.0
    return np.allclose(
        found, expected, rtol=scaled, atol=scaled * max(magnitude, 1.0), equal_nan=True
    )


class Agreement:
    """Compares eager, session (fast and exact) and ONNX Runtime (optimiser off and on)."""

    def __init__(
        self, function: Callable[..., Any], traced: TracedModel, peer: bool = True
    ) -> None:
        self.function = function
        self.traced = traced
        proto = traced.to_onnx()
        onnx.checker.check_model(proto, full_check=True)
        self.exact = Session(traced.graph, mode=ArithmeticMode.EXACT)
        self.fast = Session(traced.graph)
        self.peers = []
        levels = onnxruntime.GraphOptimizationLevel
        for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL) if peer else ():
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = level
            options.log_severity_level = 4
            options.intra_op_num_threads = 1
            self.peers.append(
                onnxruntime.InferenceSession(
                    proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
            )

    def at(self, inputs: Sequence[np.ndarray], sizes: Mapping[str, int]) -> str:
        """Run everything on one set of inputs; "agree", "refused" by all, or "guarded"."""
        names = self.traced.input_names
        feed = dict(zip(names, inputs, strict=True))
        guarded = not all(guard.holds(dict(sizes)) for guard in self.traced.guards)
        if guarded:
            with pytest.raises(OneModelError, match="holds only where"):
                self.exact.run(feed)
            return "guarded"
        try:
            with om.no_grad():
                expected = _values(self.function(*[om.from_numpy(array) for array in inputs]))
        except OneModelError:
            with pytest.raises(OneModelError):
                self.exact.run(feed)
            return "refused"
        self._compare("exact session", expected, self.exact.run(feed), None, sizes)
        self._compare("fast session", expected, self.fast.run(feed), FAST, sizes)
        for peer in self.peers:
            self._compare("ONNX Runtime", expected, peer.run(None, feed), SCALED, sizes)
        return "agree"

    def _compare(self, who, expected, found, scaled, sizes) -> None:
        assert len(expected) == len(found), who
        for position, (left, right) in enumerate(zip(expected, found, strict=True)):
            where = f"{who}, output {position} at {dict(sizes)}"
            assert left.shape == right.shape, f"{where}: {left.shape} {right.shape}"
            assert left.dtype == right.dtype, f"{where}: {left.dtype} {right.dtype}"
            if scaled is None:
                same = left.tobytes() == right.tobytes()
                assert same, f"{where}: bits differ\n{left}\n{right}\n{left - right}"
            else:
                assert close(left, right, scaled), f"{where}\n{left}\n{right}"


def sizes_to_try(traced: TracedModel) -> list[dict[str, int]]:
    """Every symbol at 1, 2, 3, 7 and the example's size, in combinations that tell them apart."""
    names = list(traced.axes)
    if not names:
        return [{}]
    tried = [dict(traced.example_sizes), dict.fromkeys(names, 1)]
    tried += [
        {name: SIZES[(shift + i) % len(SIZES)] for i, name in enumerate(names)}
        for shift in range(len(SIZES))
    ]
    for entry in tried:
        for name in names:
            axis = traced.axes[name]
            entry[name] = -(-max(entry[name], axis.minimum or 1) // axis.multiple) * axis.multiple
    return tried


def inputs_at(traced: TracedModel, sizes: Mapping[str, int], seed: int) -> list[np.ndarray]:
    """Fresh inputs within the range of the examples."""
    generator = np.random.Generator(np.random.PCG64(seed))
    made = []
    for axes, example in zip(traced.input_axes, traced.examples, strict=True):
        shape = tuple(e if type(e) is int else e.evaluate(sizes) for e in axes)
        values = np.asarray(example.numpy())
        if values.dtype == bool:
            made.append(generator.integers(0, 2, shape).astype(bool))
        elif values.dtype.kind in "iu":
            low, high = (int(values.min()), int(values.max())) if values.size else (0, 1)
            made.append(generator.integers(low, high + 1, shape).astype(values.dtype))
        else:
            made.append(generator.uniform(values.min(), values.max(), shape).astype(values.dtype))
    return made


def _agree(
    function: Callable[..., Any],
    *examples: om.Tensor,
    axes: Mapping[str, Any] | None = None,
    parameters: Mapping[str, om.Tensor] | None = None,
    peer: bool = True,
    sizes: Sequence[Mapping[str, int]] | None = None,
) -> TracedModel:
    traced = _trace(function, *examples, axes=axes, parameters=parameters)
    agreement = Agreement(function, traced, peer)
    outcomes = []
    for number, entry in enumerate(sizes or sizes_to_try(traced)):
        outcomes.append(agreement.at(inputs_at(traced, entry, number), entry))
    assert "agree" in outcomes, outcomes
    return traced


@pytest.fixture
def trace():
    """Trace a function of tensors; its parameters name the inputs."""
    return _trace


@pytest.fixture
def agree():
    """Trace a function and compare eager, sessions and ONNX Runtime at many sizes."""
    return _agree


@pytest.fixture
def example():
    """A tensor of a shape and dtype with the same values in every call."""

    def example(*shape: int, dtype: str = "float32", low: int = 0, high: int = 4) -> om.Tensor:
        generator = np.random.Generator(np.random.PCG64(sum(shape) + len(shape)))
        if dtype == "bool":
            return om.from_numpy(generator.integers(0, 2, shape).astype(bool))
        if dtype.startswith("int"):
            return om.from_numpy(generator.integers(low, high, shape).astype(dtype))
        return om.from_numpy(generator.uniform(-2, 2, shape).astype(dtype))

    return example
