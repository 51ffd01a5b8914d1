"""What a session says of the graph that it was made of, and what it keeps of it."""

import numpy as np
import pytest
from models import model, node
from onnx import helper

import onemodel_graph as og
from onemodel_kernels.errors import AttributeValueError

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((1, 256, 4, 4)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    """A convolution whose weights a normalisation is folded into, 1 MiB and a quarter of them."""
    constants = {
        name: RANDOM.uniform(0.5, 1.5, shape).astype(np.float32)
        for name, shape in {
            "w": (160, 256, 3, 3), "scale": 160, "b": 160, "mean": 160, "var": 160,
        }.items()
    }  # fmt: skip
    nodes = [
        node("Conv", ["x", "w"], ["t"]),
        node("BatchNormalization", ["t", "scale", "b", "mean", "var"], ["y"]),
    ]
    target = tmp_path / "m.onnx"
    proto = model(nodes, {"x": (np.float32, ("N", 256, 4, 4))}, ["y"], constants)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, ("N", 160, 2, 2)))
    target.write_bytes(proto.SerializeToString())
    return target


def same(graph, other):
    assert list(graph.initializers) == list(other.initializers)
    for name, array in graph.initializers.items():
        assert array.tobytes() == other.initializers[name].tobytes()


def test_weights_that_passes_replaced_are_given_back(path):
    session = og.Session(path)
    assert "w" not in session._declared.graph.initializers
    plain = og.Session(path, optimise=False)
    assert "w" in plain._declared.graph.initializers
    got, want = session.run(X)[0], plain.run(X)[0]
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


def test_the_graph_has_all_its_weights(path):
    session = og.Session(path)
    values = session._declared.graph.values
    same(session.graph, og.load(path).graph)
    assert session.graph is session.graph
    assert session.graph.values is values
    assert session.graph.inputs[0] is session.inputs[0]
    assert session.graph.outputs[0] is session.outputs[0]


def test_another_file_in_its_place_is_told(path):
    session = og.Session(path)
    data = path.read_bytes()
    path.unlink()
    with pytest.raises(AttributeValueError, match=r"Session.graph: .*m.onnx' is not the file"):
        session.graph  # noqa: B018  (reading it is the test)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(AttributeValueError, match=r"Session.graph: .*m.onnx' is not the file"):
        session.graph  # noqa: B018
    assert session.run(X)[0].shape == (1, 160, 2, 2)


@pytest.mark.parametrize("form", ["bytes", "model", "graph", "format v1", "beside"])
def test_weights_that_are_not_a_file_of_its_own_are_kept(path, form, tmp_path):
    loaded = og.load(path)
    source = {"bytes": path.read_bytes(), "model": loaded, "graph": loaded.graph}.get(form)
    if form == "format v1":
        source = tmp_path / "m.om"
        og.save(loaded, source)
    elif form == "beside":
        source = tmp_path / "beside.onnx"
        og.save_onnx(loaded, source, limit=1000)
    session = og.Session(source)
    assert "w" in session._declared.graph.initializers
    same(session.graph, loaded.graph)


def test_a_session_shows_what_goes_in_and_out():
    proto = model(
        [node("MatMul", ["x", "z"], ["y"])],
        {"x": (np.float32, ("N", 3)), "z": (np.float32, (3, "M"))},
        ["y"],
    )
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, ["N", None]))
    assert repr(og.Session(proto.SerializeToString(), "exact")) == (
        "<Session 'test', exact mode; inputs x: float32[N, 3], z: float32[3, M]; "
        "outputs y: float32[N, ?]; symbols N, M>"
    )
    constant = node("Constant", [], ["y"], value_float=1.0)
    assert repr(og.Session(model([constant], {}, ["y"]).SerializeToString())) == (
        "<Session 'test', fast mode; inputs none; outputs y: ?[?]; symbols none>"
    )
