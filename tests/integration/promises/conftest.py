"""What the promises share: one way to trace a function, and one to expect a refusal."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_trace import TracedModel, TraceErrorKind, TraceException, Tracer

Axes = Mapping[int, Any] | Sequence[Any] | None


class TraceFunction(Protocol):
    def __call__(
        self, function: Callable[..., Any], *examples: om.Tensor, axes: Mapping[str, Axes] = ...
    ) -> TracedModel: ...


class ExpectRefusal(Protocol):
    def __call__(
        self,
        kind: TraceErrorKind,
        function: Callable[..., Any],
        *examples: om.Tensor,
        axes: Mapping[str, Axes] = ...,
    ) -> str: ...


def _trace(
    function: Callable[..., Any], *examples: om.Tensor, axes: Mapping[str, Axes] | None = None
) -> TracedModel:
    names = list(inspect.signature(function).parameters)
    with Tracer.begin() as tracer:
        inputs = [
            tracer.input(name, example, axis_names=(axes or {}).get(name))
            for name, example in zip(names, examples, strict=True)
        ]
        outputs = function(*inputs)
        if isinstance(outputs, om.Tensor):
            outputs = {"y": outputs}
        return tracer.finish(outputs)


def _expect_refusal(
    kind: TraceErrorKind,
    function: Callable[..., Any],
    *examples: om.Tensor,
    axes: Mapping[str, Axes] | None = None,
) -> str:
    with pytest.raises(TraceException) as caught:
        _trace(function, *examples, axes=axes)
    error = caught.value
    assert error.kind is kind, error
    lines, first = inspect.getsourcelines(function)
    assert error.location is not None
    file, _, line = error.location.rpartition(":")
    assert file == inspect.getsourcefile(function)
    assert first <= int(line) < first + len(lines), f"{error.location}: outside the function"
    assert error.location in str(error)
    return str(error)


@pytest.fixture
def trace() -> TraceFunction:
    """Trace a function of tensors; its parameters name the inputs, its result is ``y``."""
    return _trace


@pytest.fixture
def refused() -> ExpectRefusal:
    """The message with which tracing a function is refused, at a line of the function itself."""
    return _expect_refusal


@pytest.fixture
def example() -> Callable[..., om.Tensor]:
    """A float32 tensor of a shape, with the same values in every call."""

    def example(*shape: int) -> om.Tensor:
        generator = np.random.Generator(np.random.PCG64(7))
        return om.from_numpy(generator.standard_normal(shape, np.float32))

    return example
