"""Pictures, sizes, other runtimes and missing parts on the command line."""

import json
import sys
import types

import numpy as np
import pytest
from models import model, node
from PIL import Image
from typer.testing import CliRunner

import onemodel_graph as og
from onemodel_graph.cli.app import app, main


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def saved(tmp_path, channels, dtype=np.float32, extents=("H", "W")):
    proto = model(
        [node("Identity", ["image"], ["y"])], {"image": (dtype, (1, channels, *extents))}, ["y"]
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture
def photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png", pixels


def result(tmp_path, path, picture):
    call("run", path, "-i", picture, "-o", tmp_path / "out.npz")
    return np.load(tmp_path / "out.npz")["y"]


def test_a_picture_becomes_channels_first_and_0_to_1(tmp_path, photo):
    picture, pixels = photo
    got = result(tmp_path, saved(tmp_path, 3), picture)
    np.testing.assert_array_equal(got[0], pixels.transpose(2, 0, 1) / np.float32(255))


def test_a_picture_for_whole_numbers_keeps_its_values(tmp_path, photo):
    picture, pixels = photo
    got = result(tmp_path, saved(tmp_path, 3, np.uint8), picture)
    np.testing.assert_array_equal(got[0], pixels.transpose(2, 0, 1))


def test_a_picture_for_one_channel_is_grey_and_has_the_size_that_is_asked_for(tmp_path, photo):
    picture, _ = photo
    assert result(tmp_path, saved(tmp_path, 1), picture).shape == (1, 1, 5, 7)
    assert result(tmp_path, saved(tmp_path, 1, extents=(8, 6)), picture).shape == (1, 1, 8, 6)


def test_inspect_as_json_says_all_that_the_page_says(tmp_path):
    proto = model(
        [node("Relu", ["x"], ["a"]), node("Frobnicate", ["a"], ["y"], name="odd")],
        {"x": (np.float32, ("N", None, 3))},
        ["y"],
        {"unused": np.ones((2, 3), np.float32)},
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    report = json.loads(call("inspect", path, "--json"))
    assert report["inputs"] == [["x", "float32", ["N", None, 3]]]
    assert report["parameters"] == 6 and report["weight_bytes"] == 24
    assert not report["exact"] and "'odd'" in report["warnings"][0]
    page = call("inspect", path)
    assert "Frobnicate" in page and "exact mode: no" in page and "warning" in page


def test_bench_takes_turns_with_onnx_runtime_or_goes_alone(tmp_path):
    path = saved(tmp_path, 3)
    both = call("bench", path, "--seconds", "0.1", "--size", "H=4", "--size", "W=4")
    assert "ONNX Runtime" in both and "time over ONNX Runtime's" in both
    alone = call("bench", path, "--seconds", "0.1", "--no-peer")
    assert "onemodel" in alone and "ONNX Runtime" not in alone


def test_a_chrome_trace_is_written(tmp_path):
    proto = model([node("Relu", ["x"], ["y"])], {"x": (np.float32, (2,))}, ["y"])
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    call("run", path, "--trace", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"].split()[0] for event in events] == ["Relu"]


def test_view_needs_netron_and_then_opens_it(tmp_path, monkeypatch, capsys):
    path = saved(tmp_path, 3)
    monkeypatch.setitem(sys.modules, "netron", None)
    monkeypatch.setattr("sys.argv", ["onemodel-graph", "view", str(path)])
    with pytest.raises(SystemExit):
        main()
    assert "pip install netron" in capsys.readouterr().err
    opened = []
    monkeypatch.setitem(sys.modules, "netron", types.SimpleNamespace(start=opened.append))
    call("view", path)
    assert opened == [str(path)]


def test_a_model_survives_both_forms_with_equal_bits(tmp_path):
    proto = model(
        [node("MatMul", ["x", "w"], ["t"]), node("Relu", ["t"], ["y"])],
        {"x": (np.float32, ("N", 3))},
        ["y"],
        {"w": np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)},
    )
    proto.graph.output[0].type.tensor_type.elem_type = 1
    source, there, back = (tmp_path / name for name in ("a.onnx", "b.om", "c.onnx"))
    source.write_bytes(proto.SerializeToString())
    call("convert", source, there)
    call("convert", there, back)
    x = np.random.default_rng(2).standard_normal((5, 3)).astype(np.float32)
    wanted = og.Session(source, "exact").run(x)[0].tobytes()
    for path in (there, back):
        session = og.Session(path, "exact")
        assert session.inputs[0].shape == ("N", 3)
        assert session.run(x)[0].tobytes() == wanted
    assert "equal bits" in call("compare", source, back)
