"""Changes of an ONNX model that keep it a protobuf, and changes of its bytes that may not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

NUMBERS = (
    0, 1, -1, 2, 3, -2, 7, 127, 128, 255, 256, 65535, 2**20, 2**31 - 1, 2**31, -(2**31), 2**32,
    2**33 + 1, 2**53, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1,
)  # fmt: skip
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-38, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "", "x", "reflect", "wrap", "linear", "cubic", "SAME_UPPER", "VALID", "reverse", "Relu", "\0",
    "é" * 40, "../../etc/passwd", "/etc/passwd", "a" * 5000, "bidirectional", "max", "add",
)  # fmt: skip
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "onemodel", "nowhere")


def graphs(model: ModelProto) -> list[GraphProto]:
    """The main graph and every body."""
    found: list[GraphProto] = []

    def visit(graph: GraphProto) -> None:
        found.append(graph)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(model.graph)
    return found


def _nodes(model: ModelProto) -> list[NodeProto]:
    nodes = [node for graph in graphs(model) for node in graph.node]
    return nodes + [node for function in model.functions for node in function.node]


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    for graph in graphs(model):
        yield from graph.initializer
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t


def _names(model: ModelProto) -> list[str]:
    names = [name for node in _nodes(model) for name in (*node.input, *node.output)]
    names += [value.name for graph in graphs(model) for value in (*graph.input, *graph.output)]
    return [*names, "", "nothing"]


def _number(rng: random.Random, near: int = 1) -> int:
    return rng.choice((rng.choice(NUMBERS), near + rng.randint(-2, 2), rng.randint(-9, 9)))


def _shape(model: ModelProto, rng: random.Random) -> None:
    tensors = list(_tensors(model))
    if not tensors:
        return
    tensor = rng.choice(tensors)
    choice = rng.randrange(8)
    if choice == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = _number(rng)
    elif choice == 1:
        tensor.dims.append(_number(rng))
    elif choice == 2 and tensor.dims:
        del tensor.dims[rng.randrange(len(tensor.dims)) :]
    elif choice == 3:
        tensor.data_type = rng.randint(0, 30)
    elif choice == 4 and tensor.HasField("raw_data"):
        data = bytearray(tensor.raw_data)
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
        tensor.raw_data = bytes(data[: rng.randint(0, len(data))] if rng.random() < 0.5 else data)
    elif choice == 5:
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (
            ("location", rng.choice(TEXTS)),
            ("offset", str(rng.choice(NUMBERS))),
            ("length", rng.choice(("1", "x", "-1", "99999999999999999999"))),
        ):
            tensor.external_data.add(key=key, value=value)
    elif choice == 6:
        tensor.name = rng.choice(_names(model))
    elif tensor.int64_data:
        tensor.int64_data[rng.randrange(len(tensor.int64_data))] = rng.choice(NUMBERS)


def _values(model: ModelProto, rng: random.Random) -> None:
    """Other numbers in a tensor of integers: shapes, axes, sizes."""
    inside = [t for t in _tensors(model) if t.data_location != TensorProto.EXTERNAL]
    tensors = [t for t in inside if t.data_type in (6, 7)]
    if not tensors:
        return
    tensor = rng.choice(tensors)
    array = onnx.numpy_helper.to_array(tensor).copy().reshape(-1)
    if array.size:
        number = _number(rng, int(array[0]))
        limits = (-(2**31), 2**31 - 1) if tensor.data_type == 6 else (-(2**63), 2**63 - 1)
        array[rng.randrange(array.size)] = min(max(number, limits[0]), limits[1])
        dims = list(tensor.dims)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        del tensor.dims[:]
        tensor.dims.extend(dims)


def _attribute(model: ModelProto, rng: random.Random) -> None:
    nodes = [node for node in _nodes(model) if node.attribute]
    if not nodes:
        return
    node = rng.choice(nodes)
    attribute = rng.choice(list(node.attribute))
    kind = attribute.type
    choice = rng.randrange(10)
    if choice == 0:
        node.attribute.remove(attribute)
    elif choice == 1:
        attribute.name = rng.choice(("axis", "axes", "perm", "to", "kernel_shape", "value", "x"))
    elif choice == 2:
        attribute.type = rng.randint(0, 14)  # type: ignore[assignment]
    elif kind == AttributeProto.INT:
        attribute.i = _number(rng, attribute.i)
    elif kind == AttributeProto.FLOAT:
        attribute.f = rng.choice(REALS)
    elif kind == AttributeProto.STRING:
        attribute.s = rng.choice((rng.choice(TEXTS).encode(), b"\xff\xfe"))
    elif kind == AttributeProto.INTS and attribute.ints:
        at = rng.randrange(len(attribute.ints))
        attribute.ints[at] = _number(rng, attribute.ints[at])
        if choice > 7:
            attribute.ints.append(_number(rng))
        elif choice > 6:
            del attribute.ints[at:]
    elif kind == AttributeProto.FLOATS and attribute.floats:
        attribute.floats[rng.randrange(len(attribute.floats))] = rng.choice(REALS)


def _new_attribute(model: ModelProto, rng: random.Random) -> None:
    nodes = _nodes(model)
    if not nodes:
        return
    names = ("axis", "axes", "group", "pads", "strides", "dilations", "kernel_shape", "keepdims",
             "to", "mode", "auto_pad", "alpha", "direction", "hidden_size", "num_outputs", "k",
             "batch_dims", "blocksize", "shape", "value", "block_size", "clip")  # fmt: skip
    value = rng.choice((
        _number(rng), rng.choice(REALS), rng.choice(TEXTS), [_number(rng) for _ in range(3)],
    ))  # fmt: skip
    attribute = onnx.helper.make_attribute(rng.choice(names), value)
    rng.choice(nodes).attribute.append(attribute)


def _wiring(model: ModelProto, rng: random.Random) -> None:
    nodes = _nodes(model)
    if not nodes:
        return
    node = rng.choice(nodes)
    choice = rng.randrange(8)
    if choice == 0 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(_names(model))
    elif choice == 1 and node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(_names(model))
    elif choice == 2 and node.input and node.output:
        node.input[rng.randrange(len(node.input))] = node.output[0]
    elif choice == 3:
        node.input.append(rng.choice(_names(model)))
    elif choice == 4 and node.input:
        del node.input[rng.randrange(len(node.input)) :]
    elif choice == 5 and node.output:
        del node.output[rng.randrange(len(node.output)) :]
    elif choice == 6:
        node.output.append(rng.choice(("", "more", "again")))
    else:
        node.name = rng.choice(TEXTS)


def _order(model: ModelProto, rng: random.Random) -> None:
    graph = rng.choice(graphs(model))
    nodes = list(graph.node)
    choice = rng.randrange(4)
    if not nodes:
        return
    if choice == 0:
        rng.shuffle(nodes)
    elif choice == 1:
        nodes.append(rng.choice(nodes))
    elif choice == 2:
        del nodes[rng.randrange(len(nodes))]
    else:
        nodes = nodes * 3
    copies = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
    del graph.node[:]
    graph.node.extend(copies)


def _operator(model: ModelProto, rng: random.Random) -> None:
    nodes = _nodes(model)
    if not nodes:
        return
    node = rng.choice(nodes)
    if rng.random() < 0.2:
        node.domain = rng.choice(DOMAINS)
    else:
        node.op_type = rng.choice(OPERATORS)


def _interface(model: ModelProto, rng: random.Random) -> None:
    graph = rng.choice(graphs(model))
    values = rng.choice((graph.input, graph.output))
    choice = rng.randrange(7)
    if not values:
        return
    value = rng.choice(list(values))
    dims = value.type.tensor_type.shape.dim
    if choice == 0:
        values.remove(value)
    elif choice == 1:
        value.name = rng.choice(_names(model))
    elif choice == 2:
        value.type.tensor_type.elem_type = rng.randint(0, 30)
    elif choice == 3 and dims:
        dims[rng.randrange(len(dims))].dim_value = _number(rng)
    elif choice == 4 and dims:
        dims[rng.randrange(len(dims))].dim_param = rng.choice(("N", "", "?", "x y", "N+1"))
    elif choice == 5:
        dims.add().dim_value = rng.randint(0, 3)
    else:
        values.add().CopyFrom(value)


def _header(model: ModelProto, rng: random.Random) -> None:
    choice = rng.randrange(5)
    if choice == 0 and model.opset_import:
        rng.choice(list(model.opset_import)).version = rng.choice((0, -1, 1, 6, 8, 11, 13, 28, 99))
    elif choice == 1:
        del model.opset_import[:]
    elif choice == 2:
        model.ir_version = rng.choice((0, 1, 3, 99))
    elif choice == 3:
        entry = model.metadata_props.add()
        entry.key = rng.choice(("onemodel.guards", "x"))
        guards = ('["N > 2"]', "[", '["1/0"]', '["N % 0 == 1"]', '["' + "(" * 300 + '"]', "[3]")
        entry.value = rng.choice(guards)
    else:
        function = model.functions.add()
        function.name, function.domain = rng.choice(OPERATORS), rng.choice(DOMAINS)
        function.input.extend(["a", "b"][: rng.randint(0, 2)])
        function.output.extend(["y"][: rng.randint(0, 1)])
        node = function.node.add()
        node.op_type, node.domain = function.name, function.domain
        node.input.append("a")
        node.output.append("y")


def _nest(model: ModelProto, rng: random.Random) -> None:
    """Bodies inside bodies, deeper than any reader should follow."""
    graph = GraphProto()
    graph.CopyFrom(rng.choice(graphs(model)))
    for _ in range(rng.choice((1, 2, 40, 90))):
        outer = GraphProto()
        outer.name = "outer"
        node = outer.node.add()
        node.op_type = rng.choice(("If", "Loop", "Scan"))
        node.input.extend(name for name in ("c",) if rng.random() < 0.5)
        node.output.append("y")
        for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
            attribute = node.attribute.add()
            attribute.name, attribute.type = name, AttributeProto.GRAPH
            attribute.g.CopyFrom(graph)
        outer.output.add().name = "y"
        if outer.ByteSize() > 1 << 19:
            break
        graph = outer
    model.graph.node.extend(graph.node)


CHANGES: tuple[Callable[[ModelProto, random.Random], None], ...] = (
    _shape, _shape, _values, _values, _attribute, _attribute, _attribute, _new_attribute, _wiring,
    _wiring, _order, _operator, _operator, _interface, _header, _nest,
)  # fmt: skip
OPERATORS: list[str] = sorted({schema.name for schema in onnx.defs.get_all_schemas()})


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, doubled or inserted bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        choice = rng.randrange(5)
        if choice == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif choice == 1 and at < len(changed):
            changed[at] = rng.choice((0, 1, 127, 128, 255))
        elif choice == 2:
            del changed[at : at + rng.choice((1, 2, 8, 1 << 20))]
        elif choice == 3:
            changed[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
        else:
            changed[at:at] = changed[at : at + rng.randint(1, 64)]
    return bytes(changed)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A changed model."""
    if rng.random() < 0.15:
        return damage(data, rng)
    model = ModelProto()
    model.ParseFromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        try:
            rng.choice(CHANGES)(model, rng)
        except (ValueError, TypeError, UnicodeError, DecodeError):
            # What an earlier change made cannot be read as what this one wants: that is enough.
            break
    return model.SerializeToString()
