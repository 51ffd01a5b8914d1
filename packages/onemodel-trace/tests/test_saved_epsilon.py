"""A model that was saved as ONNX, which holds epsilon in single precision, keeps every bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import onemodel_tensors as om
import onemodel_tensors.functional as F
from onemodel_graph import Session
from onemodel_trace import Tracer

# Rows whose variance is near epsilon show its last bits.
ROWS = (om.rand(64, 6, 2, generator=om.Generator().manual_seed(1)) * 0.01).detach()

NORMALISATIONS: dict[str, Callable[[om.Tensor], om.Tensor]] = {
    "layer": lambda x: F.layer_norm(x, (6, 2)),
    "rms": lambda x: F.rms_norm(x, (6, 2), eps=1e-5),
    "group": lambda x: F.group_norm(x, 3),
    "instance": lambda x: F.instance_norm(x),
    "batch": lambda x: F.batch_norm(x, om.zeros(6), om.full((6,), 1e-5)),
}


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_the_saved_model_has_the_bits_of_the_eager_one(tmp_path: Path, name: str) -> None:
    function = NORMALISATIONS[name]
    with Tracer.begin() as tracer:
        x = tracer.input("x", ROWS[:2], axis_names={0: "n"})
        traced = tracer.finish({"y": function(x)})
    traced.save_onnx(tmp_path / "model.onnx")
    expected = function(ROWS).numpy().tobytes()
    assert Session(tmp_path / "model.onnx", "exact").run(ROWS.numpy())[0].tobytes() == expected
