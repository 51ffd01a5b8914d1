"""What passes may take for certain of shapes."""

import numpy as np
import pytest
from models import model, node

from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes.axis_steps import ranks
from onemodel_graph.passes.base import Matcher
from onemodel_graph.passes.shape_facts import LARGEST, ShapeFacts

CONSTANTS = {
    "zero": np.array(0), "0": np.array([0]), "1": np.array([1]), "2": np.array([2]),
    "-1": np.array([-1]), "-2": np.array([-2]), "end": np.array([2**63 - 1]),
    "three": np.array([2, 0, -1]), "half": np.array(0.5, np.float32),
}  # fmt: skip


def facts(*nodes):
    """The facts of a graph, and its values by name."""
    read = {name for n in nodes for name in n.input}
    constants = {name: array for name, array in CONSTANTS.items() if name in read}
    inputs = {"x": (np.float32, ("B", 4, None)), "s": (np.float32, ()), "v": (np.float32, ("B",))}
    graph = import_model(model(list(nodes), inputs, [nodes[-1].output[0]], constants)).graph
    matcher = Matcher(graph)
    values = {v.name: v for n in graph.nodes for v in (*n.inputs, *n.outputs) if v is not None}
    values.update((value.name, value) for value in graph.inputs)
    return ShapeFacts(matcher, ranks(matcher)), values


def test_shapes_follow_from_inputs():
    known, at = facts(
        node("Relu", ["x"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[2, 0, 1]),
        node("Slice", ["t", "0", "2", "1"], ["c"]),
        node("Unsqueeze", ["c", "0"], ["u"]),
        node("Squeeze", ["u", "0"], ["q"]),
        node("Gather", ["q", "zero"], ["g"], axis=2),
    )
    x = at["x"]
    assert known.extents(at["r"]) == ("B", 4, (x, 2))
    assert known.extents(at["t"]) == ((x, 2), "B", 4)
    assert known.extents(at["c"]) == ((x, 2), (at["c"], 1), 4)
    # An axis that is added is looked at no further.
    assert known.extents(at["u"]) == tuple((at["u"], axis) for axis in range(4))
    assert known.extents(at["q"]) == tuple((at["u"], axis) for axis in (1, 2, 3))
    assert known.extents(at["g"]) == ((at["u"], 1), (at["u"], 2))


def test_numbers_follow_from_shapes():
    known, at = facts(
        node("Shape", ["x"], ["all"]),
        node("Shape", ["x"], ["tail"], start=-2),
        node("Slice", ["all", "-1", "end"], ["last"]),
        node("Slice", ["all", "0", "-1", "0", "1"], ["lead"]),
        node("Gather", ["all", "zero"], ["scalar"]),
        node("Unsqueeze", ["scalar", "0"], ["batch"]),
        node("Concat", ["batch", "-1", "last"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
        node("Reshape", ["x", "three"], ["z"]),
        node("Add", ["y", "z"], ["end_"]),
    )
    x = at["x"]
    assert known.numbers(at["tail"]) == (4, (x, 2))
    assert known.numbers(at["last"]) == ((x, 2),)
    assert known.numbers(at["lead"]) == ("B", 4)
    assert known.numbers(at["target"]) == ("B", -1, (x, 2))
    assert known.extents(at["z"]) == (2, (at["z"], 1), (at["z"], 2))


def test_numbers_that_no_shape_gives_are_not_certain():
    known, at = facts(
        node("Shape", ["x"], ["all"]),
        node("Slice", ["all", "2", "0", "0", "-1"], ["backwards"]),
        node("Cast", ["v"], ["given"], to=7),
        node("Slice", ["all", "given", "end"], ["from"]),
        node("Concat", ["from", "given", "backwards"], ["j"], axis=0),
    )
    for name in ("backwards", "given", "from", "j"):
        assert known.numbers(at[name]) is None


@pytest.mark.parametrize(
    ("made", "axes"),
    [
        ([node("Mul", ["s", "half"], ["y"])], 0),
        ([node("Shape", ["x"], ["a"], start=1, end=2), node("Cast", ["a"], ["c"], to=1),
          node("Sqrt", ["c"], ["r"]), node("Div", ["s", "r"], ["y"])], 1),
        ([node("Mul", ["v", "half"], ["y"])], None),
        ([node("Shape", ["x"], ["a"]), node("Cast", ["a"], ["y"], to=1)], None),
    ],
    ids=["scalars", "one extent", "an axis", "all extents"],
)  # fmt: skip
def test_values_of_one_element(made, axes):
    known, at = facts(*made)
    assert known.single(at["y"]) == axes


def test_values_that_double_are_looked_at_once():
    nodes = [node("Shape", ["x"], ["n0"])]
    nodes += [node("Concat", [f"n{i}", f"n{i}"], [f"n{i + 1}"], axis=0) for i in range(30)]
    known, at = facts(*nodes)
    found = [known.numbers(at[f"n{i}"]) for i in range(31)]
    assert len(found[5]) == 3 * 32
    assert found[30] is None
    assert max(len(part) for part in found if part is not None) <= LARGEST
    products = [node("Mul", [f"m{i}" if i else "s"] * 2, [f"m{i + 1}"]) for i in range(40)]
    known, at = facts(*products)
    assert known.single(at["m40"]) in (0, None)
