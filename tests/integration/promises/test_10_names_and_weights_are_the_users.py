"""10. Every used parameter once, under its name, with its own bytes; any name gives a valid file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_training import LSTM, BatchNorm2d, Conv2d, Flatten, Linear, NnModule, Sequential


def run_everywhere(model: onnx.ModelProto, inputs: dict[str, np.ndarray], tmp_path: Path) -> None:
    onnx.checker.check_model(model, full_check=True)
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    peer = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for ours, theirs in zip(Session(file).run(inputs), peer.run(None, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_parameters_are_under_their_paths_with_their_bytes(example) -> None:
    om.manual_seed(0)
    model = Sequential(Conv2d(1, 3, 3), BatchNorm2d(3), Flatten(), Linear(12, 2)).eval()
    graph = model.trace(example(3, 1, 4, 4), axis_names={"input": {0: "batch"}}).to_onnx().graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for path, tensor in model.state_dict().items():
        if path.endswith("num_batches_tracked"):
            continue
        assert stored[path].tobytes() == tensor.numpy().tobytes(), path
        assert stored[path].shape == tuple(tensor.shape), path


def test_a_tied_weight_is_stored_once(example) -> None:
    class Tied(NnModule):
        def __init__(self) -> None:
            super().__init__()
            self.first = Linear(4, 4, bias=False)
            self.second = Linear(4, 4, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x: om.Tensor) -> om.Tensor:
            return self.second(self.first(x))

    graph = Tied().eval().trace(example(3, 4)).to_onnx().graph
    large = [tensor.name for tensor in graph.initializer if np.prod(tensor.dims) == 16]
    assert large == ["first.weight"]


@pytest.mark.parametrize(
    "name", ["softmax", "Add_0", "fc.weight", "0.weight", "x y", "größe", "input", "/a/b:0"]
)
def test_any_output_name_gives_a_valid_file(name: str, example, tmp_path: Path) -> None:
    om.manual_seed(0)
    model = Sequential(Linear(4, 4)).eval()
    traced = model.trace(example(3, 4), input_names=["x"], output_names=[name])
    proto = traced.to_onnx()
    assert [value.name for value in proto.graph.output] == [name]
    run_everywhere(proto, {"x": example(3, 4).numpy()}, tmp_path)


def test_input_names_are_verbatim(trace, example, tmp_path: Path) -> None:
    def model(softmax: om.Tensor, weight: om.Tensor) -> om.Tensor:
        return om.functional.softmax(softmax, -1) + weight

    proto = trace(model, example(3, 4), example(4)).to_onnx()
    assert [value.name for value in proto.graph.input] == ["softmax", "weight"]
    inputs = {"softmax": example(3, 4).numpy(), "weight": example(4).numpy()}
    run_everywhere(proto, inputs, tmp_path)


def test_an_unused_input_stays(trace, example, tmp_path: Path) -> None:
    def model(x: om.Tensor, unused: om.Tensor) -> om.Tensor:
        return x * 2.0

    proto = trace(model, example(3, 4), example(2)).to_onnx()
    assert [value.name for value in proto.graph.input] == ["x", "unused"]
    run_everywhere(proto, {"x": example(3, 4).numpy(), "unused": example(2).numpy()}, tmp_path)


def test_a_model_that_passes_its_input_through(trace, example, tmp_path: Path) -> None:
    def model(x: om.Tensor) -> dict[str, om.Tensor]:
        return {"same": x, "again": x, "twice": x * 2.0}

    proto = trace(model, example(3, 4)).to_onnx()
    assert [value.name for value in proto.graph.output] == ["same", "again", "twice"]
    run_everywhere(proto, {"x": example(3, 4).numpy()}, tmp_path)


def test_recurrent_weights_are_named_after_their_paths(example) -> None:
    om.manual_seed(0)
    graph = (
        LSTM(4, 3, bidirectional=True)
        .eval()
        .trace(example(5, 2, 4), input_names=["x"])
        .to_onnx()
        .graph
    )
    assert all("onnx::" not in tensor.name for tensor in graph.initializer)
    assert any("weight_ih_l0" in tensor.name for tensor in graph.initializer)
