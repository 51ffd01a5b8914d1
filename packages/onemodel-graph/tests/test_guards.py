import pytest

from onemodel_graph.guards import Guard, bind, guards_of
from onemodel_graph.ir import Graph, Value
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError


@pytest.mark.parametrize(
    ("text", "symbols", "holds"),
    [
        ("T > 4", {"T": 5}, True),
        ("T > 4", {"T": 4}, False),
        ("2*(H//2) == H", {"H": 6}, True),
        ("2*(H//2) == H", {"H": 7}, False),
        ("0 < N <= 8", {"N": 8}, True),
        ("max(N, 3) - -1 == 4", {"N": 2}, True),
        ('symbol("time step") % 3 == 0', {"time step": 9}, True),
    ],
)
def test_comparisons(text, symbols, holds):
    assert Guard(text).holds(symbols) is holds


@pytest.mark.parametrize(
    "text", ["T", "T +", "__import__('os')", "T.x == 1", "[T] == 1", "T == 1.5", "T and T"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(AttributeValueError, match="guard"):
        Guard(text).holds({"T": 1})


def test_unknown_symbols_are_named():
    with pytest.raises(AttributeValueError, match="no symbol 'U'"):
        Guard("U == 1").holds({"T": 1})


def test_metadata_must_be_a_list_of_texts():
    graph = Graph("g", metadata={"onemodel.guards": '["T > 1"]'})
    assert [guard.text for guard in guards_of(graph)] == ["T > 1"]
    for wrong in ("{}", "[1]", "nonsense"):
        graph.metadata["onemodel.guards"] = wrong
        with pytest.raises(AttributeValueError, match=r"onemodel\.guards"):
            guards_of(graph)


def test_symbols_are_bound_once():
    inputs = [Value("x", "float32", ("N", 3)), Value("y", "float32", (None, "N"))]
    x, y = Array.full((2, 3), 0, "float32"), Array.full((7, 2), 0, "float32")
    assert bind(inputs, [x, y]) == {"N": 2}
    with pytest.raises(ShapeError, match=r"'y'.*'N' is 2 at axis 0 of 'x', but 5 at axis 1 of 'y'"):
        bind(inputs, [x, Array.full((7, 5), 0, "float32")])
    with pytest.raises(ShapeError, match=r"expected 3 at axis 1"):
        bind(inputs, [Array.full((2, 4), 0, "float32"), y])
    with pytest.raises(ShapeError, match="expected 2 axes"):
        bind(inputs, [Array.full((2,), 0, "float32"), y])
