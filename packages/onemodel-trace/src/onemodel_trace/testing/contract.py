"""What a consumer of the tracer may rely on, as a class of tests to derive from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import Axis, TracedModel, TraceErrorKind, TraceException, Tracer

__all__ = ["TraceContract"]


class TraceContract:
    """Tests of the surface: recording, naming, refusing, running, saving, verifying."""

    def traced(self) -> TracedModel:
        """A product with a named weight over a symbolic batch."""
        weight = om.ones(2, 3)

        def run(x: om.Tensor) -> om.Tensor:
            return F.relu(F.linear(x, weight))

        with Tracer.begin() as tracer:
            x = tracer.input("x", om.ones(4, 3), axis_names={0: Axis("batch", maximum=64)})
            tracer.parameter("weight", weight)
            return tracer.finish({"y": run(x)}, run)

    def test_names(self) -> None:
        """Inputs, outputs, weights and axes have the names that were asked for."""
        traced = self.traced()
        assert traced.input_names == ["x"]
        assert traced.output_names == ["y"]
        assert list(traced.graph.initializers) == ["weight"]
        assert traced.graph.inputs[0].shape == ("batch", 3)
        assert [guard.text for guard in traced.guards] == ["batch <= 64"]

    def test_it_runs_at_other_sizes(self) -> None:
        """A session runs the graph at sizes that the example did not have."""
        (y,) = self.traced().session().run({"x": np.ones((7, 3), np.float32)})
        assert y.tolist() == [[3.0, 3.0]] * 7

    def test_it_is_saved(self, tmp_path: Path) -> None:
        """Both file formats are written."""
        traced = self.traced()
        traced.save_onnx(tmp_path / "model.onnx")
        traced.save(tmp_path / "model.om")
        assert (tmp_path / "model.onnx").read_bytes() == traced.to_onnx().SerializeToString(
            deterministic=True
        )
        assert (tmp_path / "model.om").stat().st_size > 0

    def test_it_is_verified(self) -> None:
        """verify runs the function that was given to finish."""
        assert self.traced().verify(3).difference == 0.0

    def test_refusals_have_kind_and_place(self) -> None:
        """A refusal says what, why and where."""
        with Tracer.begin() as tracer:
            x = tracer.input("x", om.ones(4, 3))
            with pytest.raises(TraceException) as caught:
                x.sum().item()
        assert caught.value.kind is TraceErrorKind.DATA_DEPENDENT
        assert caught.value.location is not None
        assert caught.value.location in str(caught.value)

    def test_an_aborted_trace_leaves_nothing(self) -> None:
        """The thread can trace again, and tensors are ordinary ones."""
        tracer = Tracer.begin()
        x = tracer.input("x", om.ones(4, 3))
        tracer.abort()
        assert (x * 2).tolist() == [[2.0] * 3] * 4
        assert self.traced().output_names == ["y"]
