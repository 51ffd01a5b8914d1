import json

import numpy as np
import pytest
from models import model, node
from typer.testing import CliRunner

import onemodel_graph as og
from onemodel_graph.cli.app import app, main

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def path(tmp_path):
    proto = model(
        [node("Mul", ["x", "w"], ["t"], name="scale"), node("Add", ["t", "t"], ["y"])],
        {"x": (np.float32, ("N", 3))},
        ["y"],
        {"w": np.array([1, 2, 4], np.float32)},
    )
    target = tmp_path / "model.onnx"
    target.write_bytes(proto.SerializeToString())
    return target


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_inspect(path):
    text = call("inspect", path)
    for word in ("Mul", "Add", "float32", "N", "3 parameters", "exact mode: yes"):
        assert word in text
    report = json.loads(call("inspect", path, "--json"))
    assert report["symbols"] == ["N"] and report["operators"] == {"Add": 1, "Mul": 1}


def test_run_with_files(path, tmp_path):
    np.save(tmp_path / "x.npy", X)
    call("run", path, "-i", tmp_path / "x.npy", "-o", tmp_path / "out.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], X * [1, 2, 4] * 2)
    np.savez(tmp_path / "x.npz", x=X)
    assert "Mul" in call("run", path, "-i", tmp_path / "x.npz", "--profile")


def test_run_draws_what_no_file_gives(path):
    first = call("run", path, "--size", "N=5", "--seed", "3")
    assert "(5, 3)" in first
    assert first == call("run", path, "--size", "N=5", "--seed", "3")


def test_sizes_that_nobody_stated_are_told(path, tmp_path):
    np.save(tmp_path / "x.npy", X)
    told = "drawn inputs have N=2; --size NAME=NUMBER sets another size\n"
    for arguments, text in (([], told), (["--size", "N=5"], ""), (["-i", tmp_path / "x.npy"], "")):
        line = [str(argument) for argument in ("run", path, *arguments)]
        assert CliRunner().invoke(app, line).stderr == text


def test_bench_and_compare(path):
    assert "median ms" in call("bench", path, "--seconds", "0.1", "--threads", "1")
    assert "yes" in call("compare", path)


def test_compare_finds_the_first_difference(path, tmp_path):
    other = og.load(path)
    other.graph.nodes[1].operator = "Sub"
    og.save(other, tmp_path / "other.om")
    text = call("compare", path, tmp_path / "other.om", code=1)
    assert "(0, 0)" in text


def test_convert_and_optimize(path, tmp_path):
    call("convert", path, tmp_path / "model.om")
    call("convert", path, tmp_path / "model.om1")
    call("optimize", tmp_path / "model.om", tmp_path / "small.safetensors")
    want = og.Session(path).run(X)[0]
    for name in ("model.om", "model.om1", "small.safetensors"):
        np.testing.assert_array_equal(og.Session(tmp_path / name).run(X)[0], want)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", "nothing.onnx"], "cannot read 'nothing.onnx'"),
        (["convert", "MODEL", "model.txt"], ".onnx, .om1, .om or .safetensors"),
        (["run", "MODEL", "--size", "N"], "NAME=NUMBER"),
        (["run", "MODEL", "--size", "n=4"], "--size n: the model's inputs have N"),
        (["run", "MODEL", "--mode", "quick"], "'fast', 'exact'"),
        (["run", "MODEL", "-i", "gone.npy"], "no such file"),
    ],
)
def test_errors_are_one_line(path, capsys, monkeypatch, arguments, words):
    words_given = [str(path) if word == "MODEL" else word for word in arguments]
    monkeypatch.setattr("sys.argv", ["onemodel-graph", *words_given])
    with pytest.raises(SystemExit) as stop:
        main()
    text = capsys.readouterr().err
    assert stop.value.code == 1
    assert text.startswith("error: ") and words in text and text.count("\n") == 1


def test_outputs_that_are_lists_dicts_and_texts(tmp_path):
    """Of a sequence each array has a row, of scores by label each number, texts are written as such."""
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
             coefficients=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], classlabels_strings=["no", "yes"]),
        node("ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": (np.float32, ("N", 3))}, ["s", "label", "map"])
    proto.opset_import.add(domain="ai.onnx.ml", version=1)
    path, other = tmp_path / "lists.onnx", tmp_path / "other.onnx"
    path.write_bytes(proto.SerializeToString())
    assert "exact mode: yes" in call("inspect", path)
    np.save(tmp_path / "x.npy", X)
    text = call("run", path, "-i", tmp_path / "x.npy", "-o", tmp_path / "out.npz")
    assert "s[1]" in text and "map[0]['yes']" in text
    written = np.load(tmp_path / "out.npz", allow_pickle=False)
    np.testing.assert_array_equal(written["s[1]"], X)
    assert written["label"].tolist() == ["yes", "yes"]
    assert written["map[1]['no']"] == 3.0
    assert " no " not in call("compare", path, path)
    (labels,) = (a for a in proto.graph.node[1].attribute if a.name == "classlabels_strings")
    labels.strings[:] = [b"no", b"no more"]
    other.write_bytes(proto.SerializeToString())
    assert "yes and no more" in call("compare", path, other, code=1)
