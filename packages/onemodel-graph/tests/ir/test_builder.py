import pytest

from onemodel_graph.ir import GraphBuilder, Node, Value, validate
from onemodel_graph.planning.numbers import tensor
from onemodel_kernels.errors import AttributeValueError


def test_builds_in_order_with_unique_names():
    builder = GraphBuilder("g")
    x = builder.add_input("x", "float32", ("N", 3))
    (a,) = builder.add_node("Relu", [x])
    (b,) = builder.add_node("Relu", [a])
    (c,) = builder.add_node("Neg", [b], ["y"])
    builder.add_output(c)
    graph = builder.build()
    assert [node.operator for node in graph.nodes] == ["Relu", "Relu", "Neg"]
    names = {value.name for node in graph.nodes for value in node.outputs}
    assert len(names) == 3 and "y" in names
    assert graph.symbols == ("N",)


def test_requested_names_are_kept_and_twice_is_refused():
    builder = GraphBuilder()
    builder.add_input("x", "float32", (1,))
    with pytest.raises(AttributeValueError, match="'x' is used twice"):
        builder.add_input("x", "float32", (1,))
    with pytest.raises(AttributeValueError, match="not empty"):
        builder.add_input("", "float32", (1,))


def test_several_outputs_and_absent_ones():
    builder = GraphBuilder()
    x = builder.add_input("x", "float32", (4,))
    first, second = builder.add_node("Split", [x], 2, {"num_outputs": 2, "axis": None})
    (only,) = builder.add_node("TopK", [x], ["v", None])
    for value in (first, second, only):
        builder.add_output(value)
    graph = builder.build()
    assert graph.nodes[0].attributes == {"num_outputs": 2}
    assert graph.nodes[1].outputs[1] is None


def test_initializers_and_renaming():
    builder = GraphBuilder()
    w = builder.add_initializer("w", tensor([1.0, 2.0], "float32"))
    assert (w.dtype, w.shape) == ("float32", (2,))
    builder.rename(w, "weight")
    (y,) = builder.add_node("Neg", [w])
    builder.add_output(y)
    graph = builder.build()
    assert list(graph.initializers) == ["weight"]
    assert graph.initializer_value("weight") is w


def test_a_value_that_nothing_writes_is_named():
    builder = GraphBuilder()
    builder.add_output(Value("lost", "float32", (1,)))
    with pytest.raises(AttributeValueError, match="'lost'"):
        builder.build()


def test_a_value_read_before_it_is_written_is_named():
    builder = GraphBuilder()
    x = builder.add_input("x", "float32", (1,))
    builder.add_node("Add", [x, Value("later")], name="sum")
    with pytest.raises(AttributeValueError, match=r"node 'sum'.*'later'"):
        builder.build()


def test_a_value_written_twice_is_named():
    builder = GraphBuilder()
    x = builder.add_input("x", "float32", (1,))
    (y,) = builder.add_node("Relu", [x])
    graph = builder.build()
    graph.nodes.append(Node("", "Neg", [x], [y]))
    with pytest.raises(AttributeValueError, match="written twice"):
        validate(graph)
