"""1. A read is never frozen: it raises DATA_DEPENDENT at that line, and no file is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_trace import TraceErrorKind, Tracer

READS: dict[str, Callable[[om.Tensor], object]] = {
    "bool": lambda x: x if x.sum() > 0 else -x,
    "not": lambda x: x * (not x.sum()),
    "while": lambda x: [x for _ in iter(lambda: bool(x.sum() > 1), False)],
    "int": lambda x: x * int(x.sum()),
    "float": lambda x: x * float(x.sum()),
    "complex": lambda x: x * complex(x.sum()).real,
    "index": lambda x: x[: x.sum().long()],
    "item": lambda x: x * x.sum().item(),
    "tolist": lambda x: x * x.tolist()[0][0],
    "numpy": lambda x: x * om.from_numpy(x.numpy()),
    "asarray": lambda x: x * om.from_numpy(np.asarray(x)),
    "dlpack": lambda x: x * om.from_numpy(np.from_dlpack(x)),
    "contains": lambda x: x * (0.0 in x),
    "max of the elements": lambda x: x * max(float(value) for value in x.flatten()),
    "mask index": lambda x: x[x > 0],
    "all": lambda x: x if (x > 0).all() else -x,
    "format": lambda x: x * float(f"{x.sum():.3f}"),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_refused_at_its_line(name, refused, example) -> None:
    refused(TraceErrorKind.DATA_DEPENDENT, READS[name], example(3, 4))


@pytest.mark.parametrize("name", READS)
def test_a_read_of_what_depends_on_an_input_is_refused(name, refused, example) -> None:
    read = READS[name]

    def model(x: om.Tensor) -> object:
        return read(om.relu(x) + 1.0)

    with Tracer.begin() as tracer:
        x = tracer.input("x", example(3, 4))
        with pytest.raises(Exception) as caught:
            model(x)
        assert caught.value.kind is TraceErrorKind.DATA_DEPENDENT


def test_no_file_is_written(example, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"

    def model(x: om.Tensor) -> om.Tensor:
        return x * x.sum().item()

    with pytest.raises(Exception, match="DATA_DEPENDENT"), Tracer.begin() as tracer:
        y = model(tracer.input("x", example(3, 4)))
        tracer.finish({"y": y}).save_onnx(file)
    assert not file.exists()


def test_the_thread_is_as_before_after_a_refusal(example) -> None:
    x = example(3, 4)
    with pytest.raises(Exception, match="DATA_DEPENDENT"), Tracer.begin() as tracer:
        bool(tracer.input("x", x).sum() > 0)
    assert isinstance(x.sum().item(), float)
    assert (x.sum() > 0).item() in (True, False)


def test_values_of_constants_may_be_read(trace, example) -> None:
    constant = example(4)

    def model(x: om.Tensor) -> om.Tensor:
        scale = constant.sum().item()
        return x * scale if constant.numpy()[0] < 10 else x

    session = Session(trace(model, example(3, 4)).graph)
    x = np.ones((3, 4), np.float32)
    (y,) = session.run({"x": x})
    np.testing.assert_array_equal(y, x * np.float32(constant.sum().item()))
