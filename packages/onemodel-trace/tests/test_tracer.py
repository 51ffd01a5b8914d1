"""Recording: constants, names, aliases, pruning, outputs and the file."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_kernels.errors import MemoryLimitError
from onemodel_tensors import functional as F
from onemodel_trace import Tracer


def operators(traced):
    return [node.operator for node in traced.graph.nodes]


def initializers(traced):
    return {name: array.numpy() for name, array in traced.graph.initializers.items()}


def test_constants_are_captured_once(trace, example):
    weight = example(4, 4)

    def model(x):
        return (x @ weight) + (x @ weight) * 2 + 2 + x * 2.0

    held = initializers(trace(model, example(3, 4)))
    assert sorted(array.shape for array in held.values()) == [(), (4, 4)]


def test_operators_on_constants_are_not_recorded(trace, example):
    a, b = example(4), example(1, 4)
    traced = trace(lambda x: x * (a + b).sqrt().abs(), example(3, 4))
    assert operators(traced) == ["Mul"]


def test_unused_work_is_pruned_and_unused_inputs_stay(example):
    with Tracer.begin() as tracer:
        x, unused = tracer.input("x", example(3, 4)), tracer.input("unused", example(2))
        (x @ x.T).sum()
        unused * 2
        traced = tracer.finish({"y": x + 1})
    assert operators(traced) == ["Add"]
    assert traced.input_names == ["x", "unused"]


ALIASES = {
    "reshape": lambda x: x.reshape(3, 4),
    "view": lambda x: x.view(*x.shape),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.T.T.contiguous(),
    "detach": lambda x: x.detach(),
    "full slice": lambda x: x[:, :],
    "full slice by size": lambda x: x[: x.shape[0]],
    "ellipsis": lambda x: x[...],
    "same dtype": lambda x: x.to("float32").float(),
    "identity permutation": lambda x: x.permute(0, 1),
    "expand": lambda x: x.expand(3, 4),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "pad by nothing": lambda x: F.pad(x, (0, 0)),
}


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_write_no_node(alias, trace, example):
    traced = trace(lambda x: ALIASES[alias](x) * 2, example(3, 4))
    assert operators(traced) in (["Mul"], ["Transpose", "Transpose", "Mul"])


def test_names_of_parameters_and_their_views(trace, example):
    weight, other = example(5, 4), example(6, 4)

    def model(x):
        return (x @ weight.T).sum(1, keepdim=True) + F.linear(x, other) + (x @ other[:4]).sum()

    traced = trace(model, example(3, 4), parameters={"weight": weight, "other": other})
    held = initializers(traced)
    assert held["weight"].tobytes() == weight.numpy().tobytes()
    assert held["other"].tobytes() == other.numpy().tobytes()
    names = set(held) | {output.name for node in traced.graph.nodes for output in node.outputs}
    assert "weight.view_1" in names
    assert "other.view_1" in names


VIEWS = {
    "transpose": lambda w: w.T,
    "first rows": lambda w: w[:2],
    "last rows": lambda w: w[-1:],
    "one row": lambda w: w[2],
    "one element": lambda w: w[1, 2],
    "other shape": lambda w: w.view(3, 4),
    "transposed rows": lambda w: w[1:].T,
    "new axes": lambda w: w[None, :, None],
    "repeated": lambda w: w[0].expand(3, 3),
    "columns": lambda w: w[:, 1:],
    "steps": lambda w: w[::2],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_weight_leaves_the_weight_as_it_is(view, agree, example):
    weight = example(4, 3)
    function = VIEWS[view]
    shape = {"new axes": (2, 4, 2, 3)}.get(view, tuple(function(weight).shape) or (2,))
    traced = agree(
        lambda x: x * function(weight) + F.linear(x.flatten()[:1] * om.ones(3), weight)[0],
        example(*shape),
        parameters={"w": weight},
    )
    held = initializers(traced)
    assert held["w"].tobytes() == weight.numpy().tobytes()
    names = {out.name for node in traced.graph.nodes for out in node.outputs} | set(held)
    assert "w.view_1" in names
    assert [name for name in held if name.startswith("w.view")] == (
        ["w.view_1"] if view in ("columns", "steps") else []
    )


def test_tied_weights_are_stored_once_under_the_first_name(trace, example):
    weight = example(4, 4)
    traced = trace(
        lambda x: F.linear(F.linear(x, weight), weight),
        example(3, 4),
        parameters={"encoder.weight": weight, "decoder.weight": weight},
    )
    assert list(traced.graph.initializers) == ["encoder.weight"]


def test_a_parameter_yields_to_a_requested_name(trace, example):
    weight = example(4)
    traced = trace(lambda x: {"weight": x * weight}, example(3, 4), parameters={"weight": weight})
    assert traced.output_names == ["weight"]
    onnx.checker.check_model(traced.to_onnx(), full_check=True)


def test_internal_names_yield_to_requested_ones(agree, example):
    def model(mul_0):
        return {"add_0": mul_0 * 2, "constant_0": mul_0 + 1, "relu_0": F.relu(mul_0 * 3) - 1}

    traced = agree(model, example(3, 4))
    assert traced.output_names == ["add_0", "constant_0", "relu_0"]


def test_outputs_that_are_inputs_or_repeated_get_a_node(agree, example):
    def model(x):
        y = x * 2
        return {"same": x, "again": x, "first": y, "second": y, "view": y.view(3, 4)}

    traced = agree(model, example(3, 4))
    assert traced.output_names == ["same", "again", "first", "second", "view"]
    assert operators(traced).count("Identity") == 4


def test_inputs_are_positions(example):
    x = example(3, 4)

    def graph(a, b):
        with Tracer.begin() as tracer:
            first, second = tracer.input("a", a), tracer.input("b", b)
            return tracer.finish({"y": first - second}).to_onnx()

    assert graph(x, x) == graph(x, x.clone())


def test_integer_and_boolean_results_are_recorded(agree, example):
    def model(x):
        positive = x > 0
        index = x.argmax(1)
        return {
            "mask": positive & ~(x > 1),
            "index": index * 2 + positive.long().sum(1),
            "picked": x.gather(1, index[:, None]),
        }

    agree(model, example(3, 4), axes={"x": {0: "B"}})


def test_sizes_as_values_are_recorded(agree, example):
    agree(
        lambda x: x / x.shape[1] + (x.shape[0] + 1) - x.shape[1] * x.sum(),
        example(3, 5),
        axes={"x": ("B", "T")},
    )


def test_graph_inputs_and_outputs_name_their_axes(trace, example):
    traced = trace(lambda x: om.cat([x, x], 1), example(3, 5), axes={"x": ("batch of rows", "T")})
    assert traced.graph.inputs[0].shape == ("batch of rows", "T")
    assert traced.graph.outputs[0].shape == ("batch of rows", "2*T")


def test_versions_and_contents_of_the_file(trace, example):
    proto = trace(lambda x: F.gelu(x) * 2, example(3, 4)).to_onnx()
    assert proto.ir_version == 9
    assert [(entry.domain, entry.version) for entry in proto.opset_import] == [("", 20)]


def test_files_are_read_back(trace, example, tmp_path):
    weight = example(6, 4)
    traced = trace(
        lambda x: F.linear(x, weight).softmax(-1),
        example(3, 4),
        axes={"x": {0: "B"}},
        parameters={"w": weight},
    )
    x = np.ones((5, 4), np.float32)
    (expected,) = traced.session().run(x)
    for name, save in (("m.onnx", traced.save_onnx), ("m.om1", traced.save)):
        save(tmp_path / name)
        (found,) = Session(tmp_path / name).run(x)
        assert found.tobytes() == expected.tobytes()
    proto = onnx.load(tmp_path / "m.onnx")
    (held,) = [t for t in proto.graph.initializer if t.name == "w"]
    assert numpy_helper.to_array(held).tobytes() == weight.numpy().tobytes()


def test_large_models_keep_their_weights_beside_them(trace, example, tmp_path):
    """The limit of 2 GiB is lowered: nothing of that size fits a test."""
    weight, other = example(6, 4), example(5, 6)
    traced = trace(
        lambda x: F.linear(F.linear(x, weight), other),
        example(3, 4),
        axes={"x": {0: "B"}},
        parameters={"w": weight, "other": other},
    )
    size = weight.nbytes + other.nbytes
    with pytest.raises(MemoryLimitError, match=f"at most {size - 1} bytes together.*got {size}"):
        traced.to_onnx(limit=size - 1)
    assert len(traced.to_onnx(limit=size).graph.initializer) == 2
    x = np.ones((2, 4), np.float32)
    (expected,) = traced.session().run(x)
    saved = []
    for name in ("one", "another folder"):
        folder = tmp_path / name
        folder.mkdir()
        traced.save_onnx(folder / "m.onnx", limit=size - 1)
        model, data = sorted(folder.iterdir(), key=lambda file: file.name)
        assert data.stat().st_size >= size
        assert weight.numpy().tobytes() in data.read_bytes()
        assert weight.numpy().tobytes() not in model.read_bytes()
        saved.append((model.read_bytes(), data.name, data.read_bytes()))
        onnx.checker.check_model(str(model), full_check=True)
        (found,) = Session(model).run(x)
        assert found.tobytes() == expected.tobytes()
        peer = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(peer.run(None, {"x": x})[0], expected, rtol=1e-5)
    assert saved[0] == saved[1]
    traced.save_onnx(tmp_path / "one" / "m.onnx", limit=size)
    assert [file.name for file in (tmp_path / "one").iterdir()] == ["m.onnx"]


PROGRAM = """
import numpy as np
import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_trace import Tracer
w = om.from_numpy(np.arange(24, dtype=np.float32).reshape(6, 4))
with Tracer.begin() as tracer:
    tracer.parameter("w", w)
    x = tracer.input("x", om.ones(3, 5, 4), axis_names=("B", "T", None))
    y = F.linear(x, w).view(x.shape[0], x.shape[1], 2, 3).flatten(0, 1) * 0.5
    traced = tracer.finish({"y": y})
traced.save_onnx("m.onnx")
traced.save("m.om1")
"""


def test_equal_graphs_give_equal_bytes_everywhere(tmp_path):
    hashes = set()
    for name, seed in (("a", "0"), ("another one", "77")):
        folder = tmp_path / name
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, env=environment, check=True)
        hashes.add(
            tuple(
                hashlib.sha256((folder / file).read_bytes()).hexdigest()
                for file in ("m.onnx", "m.om1")
            )
        )
    assert len(hashes) == 1


def test_a_finished_trace_keeps_no_weights_alive(example):
    weight = example(40, 4)
    seen = weight._array.reshape((160,))
    with Tracer.begin() as tracer:
        y = F.linear(tracer.input("x", example(3, 4)), weight)
        tracer.finish({"y": y})
    del weight
    assert seen.storage_refs == 1
    assert y.shape == (3, 40)
