"""Element types of 8 bits and fewer, against ml_dtypes and ONNX's reference."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from models import node
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import onemodel_graph as og
from onemodel_graph.narrow import packed, unpacked
from onemodel_graph.onnx_io import import_model
from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, ShapeError

FLOATS = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
INTEGERS = {
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2,
    "uint2": ml_dtypes.uint2,
}
TYPES = {**FLOATS, **INTEGERS}


def number_of(name):
    return helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[name]))


def model(nodes, inputs, outputs, initializers=(), opset=23):
    """Types are names of ONNX's element types or of narrow ones."""
    infos = [
        [
            helper.make_tensor_value_info(
                name, number_of(kind) if kind in TYPES else getattr(TensorProto, kind), shape
            )
            for name, (kind, shape) in group.items()
        ]
        for group in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "test", *infos, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def run(proto, *feeds, mode="exact"):
    data = proto.SerializeToString()
    found = og.Session(data, mode).run(*feeds)
    plain = og.Session(data, mode, optimise=False).run(*feeds)
    for got, want in zip(found, plain, strict=True):
        assert got.dtype == want.dtype
        assert got.tobytes() == want.tobytes()
    return found


def numbers(name):
    """Every number of a type, those between two neighbours, and what is far outside."""
    with np.errstate(all="ignore"):
        codes = np.arange(1 << ml_dtypes.finfo(FLOATS[name]).bits, dtype=np.uint8)
        own = np.sort(codes.view(FLOATS[name]).astype(np.float32))
    own = own[np.isfinite(own)]
    halves = (own[1:] + own[:-1]) / 2
    near = np.concatenate([np.nextafter(halves, np.float32(s * np.inf)) for s in (-1, 1)])
    spread = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    scaled = np.exp2(np.arange(4000, dtype=np.float32) % 44 - 24) * spread
    extreme = [1e38, -1e38, np.inf, -np.inf, 1e-45, -1e-45, 0.0, -0.0, np.nan]
    return np.concatenate([own, halves, near, scaled, np.float32(extreme)]).astype(np.float32)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", FLOATS)
def test_casts_round_to_the_nearest_number(name, saturate):
    x = numbers(name)
    cast = node("Cast", ["x"], ["y"], to=number_of(name), saturate=saturate)
    (got,) = run(model([cast], {"x": ("FLOAT", ["N"])}, {"y": (name, ["N"])}), x)
    largest = float(ml_dtypes.finfo(FLOATS[name]).max)
    with np.errstate(all="ignore"):
        clipped = np.clip(x, -largest, largest) if saturate or name == "float4e2m1" else x
        want = clipped.astype(FLOATS[name])
    assert got.dtype == want.dtype
    known = np.isnan(want.astype(np.float32))
    assert np.array_equal(known, np.isnan(got.astype(np.float32)))
    assert np.array_equal(got.view(np.uint8)[~known], want.view(np.uint8)[~known])


@pytest.mark.parametrize("name", INTEGERS)
def test_casts_to_integers_wrap(name):
    x = np.arange(-40, 40, dtype=np.int32)
    cast = node("Cast", ["x"], ["y"], to=number_of(name))
    (got,) = run(model([cast], {"x": ("INT32", ["N"])}, {"y": (name, ["N"])}), x)
    assert np.array_equal(got, x.astype(INTEGERS[name]))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("raw", [True, False])
def test_weights_are_read_as_they_are_packed(name, raw):
    bits = ml_dtypes.finfo(TYPES[name]).bits if name in FLOATS else int(name[-1])
    codes = np.random.default_rng(1).integers(0, 1 << bits, (3, 7), dtype=np.uint8)
    if name in FLOATS:
        weights = codes.view(TYPES[name])
    else:
        weights = codes.astype(np.int8).astype(TYPES[name])
    tensor = numpy_helper.from_array(weights, "w")
    if not raw:
        tensor.int32_data.extend(tensor.raw_data)
        tensor.ClearField("raw_data")
    nodes = [node("Cast", ["w"], ["v"], to=TensorProto.FLOAT), node("Add", ["v", "x"], ["y"])]
    proto = model(nodes, {"x": ("FLOAT", [7])}, {"y": ("FLOAT", [3, 7])}, [tensor])
    (got,) = run(proto, np.zeros(7, np.float32))
    np.testing.assert_array_equal(got, weights.astype(np.float32))


@pytest.mark.parametrize("name", TYPES)
def test_packing_undoes_unpacking(name):
    bits = ml_dtypes.finfo(TYPES[name]).bits if name in FLOATS else int(name[-1])
    per = 8 // bits
    data = bytes(range(256))
    found = unpacked(data, name, (256 * per,))
    again = unpacked(packed(found, name), name, (256 * per,))
    np.testing.assert_array_equal(found.numpy(), again.numpy())
    with pytest.raises(ShapeError, match=f"numbers of {name}"):
        unpacked(data[:-1], name, (256 * per,))
    with pytest.raises(DtypeError, match=f"{name} has no number 100"):
        packed(Array.full((1,), 100.5 if name in FLOATS else 100, found.dtype), name)


def blocked():
    """A product with weights of 4 bits in blocks of 16 rows, as quantised language models have."""
    rng = np.random.default_rng(2)
    codes = rng.integers(-8, 8, (32, 5)).astype(ml_dtypes.int4)
    points = rng.integers(-8, 8, (2, 5)).astype(ml_dtypes.int4)
    scales = rng.random((2, 5), dtype=np.float32)
    weights = [
        numpy_helper.from_array(codes, "w"),
        numpy_helper.from_array(points, "points"),
        numpy_helper.from_array(scales, "scales"),
    ]
    nodes = [
        node("DequantizeLinear", ["w", "scales", "points"], ["v"], axis=0, block_size=16),
        node("MatMul", ["x", "v"], ["y"]),
    ]
    return model(nodes, {"x": ("FLOAT", ["N", 32])}, {"y": ("FLOAT", ["N", 5])}, weights)


@pytest.mark.parametrize("limit", [1 << 30, 0], ids=["one file", "weights beside it"])
def test_blocks_of_four_bits_and_a_saved_file(tmp_path, limit):
    x = np.random.default_rng(3).standard_normal((4, 32)).astype(np.float32)
    proto = blocked()
    (got,) = run(proto, x)
    (want,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    graph = import_model(proto).graph
    path = tmp_path / "four.onnx"
    og.save_onnx(graph, path, limit=limit)
    onnx.checker.check_model(path)
    types = {i.name: i.data_type for i in onnx.load(path).graph.initializer}
    assert types["w"] == types["points"] == TensorProto.INT4
    (again,) = og.Session(path, "exact").run(x)
    assert again.tobytes() == got.tobytes()
    og.save(graph, tmp_path / "four.om1")
    assert og.load(tmp_path / "four.om1").graph.values["w"].dtype == "int4"
    (again,) = og.Session(tmp_path / "four.om1", "exact").run(x)
    assert again.tobytes() == got.tobytes()


def test_equal_bytes_of_two_types_stay_two_constants():
    """A zero point of int4 and one of int8 give other ranges."""
    points = [
        numpy_helper.from_array(np.zeros((), dtype), name)
        for name, dtype in (("a", ml_dtypes.int4), ("b", np.int8))
    ]
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "s")
    nodes = [
        node("QuantizeLinear", ["x", "s", "a"], ["p"]),
        node("QuantizeLinear", ["x", "s", "b"], ["q"]),
        node("DequantizeLinear", ["p", "s", "a"], ["y"]),
    ]
    proto = model(
        nodes,
        {"x": ("FLOAT", [3])},
        {"y": ("FLOAT", [3]), "q": ("INT8", [3]), "p": ("int4", [3])},
        [*points, scale],
    )
    y, q, p = run(proto, np.float32([-9.0, 1.0, 9.0]))
    assert y.tolist() == [-4.0, 1.0, 3.5]
    assert q.tolist() == [-18, 2, 18]
    assert p.dtype == ml_dtypes.int4
    assert p.tolist() == [-8, 2, 7]


def test_branches_pass_numbers_of_four_bits_on():
    branches = {
        f"{name}_branch": helper.make_graph(
            [node("Transpose", ["x"], [f"{name}_y"]) if turn else node("Identity", ["x"], [f"{name}_y"])],
            name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.INT4, None)],
        )
        for name, turn in (("then", True), ("else", False))
    }  # fmt: skip
    nodes = [node("If", ["c"], ["y"], **branches), node("CastLike", ["f", "y"], ["z"])]
    proto = model(
        nodes,
        {"x": ("int4", [2, 2]), "c": ("BOOL", []), "f": ("FLOAT", [1])},
        {"y": ("int4", [2, 2]), "z": ("int4", [1])},
    )
    x = np.array([[1, -2], [3, -4]]).astype(ml_dtypes.int4)
    y, z = run(proto, x, np.array(True), np.float32([11.0]))
    assert y.tolist() == [[1, 3], [-2, -4]]
    assert z.tolist() == [-5]


def test_inputs_of_another_type_are_refused():
    cast = node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    proto = model([cast], {"x": ("int4", ["N"])}, {"y": ("FLOAT", ["N"])})
    with pytest.raises(DtypeError, match=r"input 'x': expected an array of ml_dtypes\.int4"):
        run(proto, np.zeros(2, np.float32))
    session = og.Session(proto.SerializeToString())
    (got,) = session.run(Array.from_numpy(np.int8([1, -2])))
    assert got.tolist() == [1.0, -2.0]
    # The short way of shapes seen before takes arrays as they are.
    session.run({"x": np.array([3, 4]).astype(ml_dtypes.int4)})
    with pytest.raises(DtypeError, match="input 'x'"):
        session.run({"x": np.int8([100, 1])})


def test_an_output_without_a_declared_type_has_the_computed_one():
    cast = node("Cast", ["x"], ["y"], to=TensorProto.INT4)
    proto = model([cast], {"x": ("FLOAT", ["N"])}, {"y": ("int4", ["N"])})
    proto.graph.output[0].ClearField("type")
    (got,) = run(proto, np.float32([1.5, -3.0]))
    assert got.dtype == ml_dtypes.int4
    assert got.tolist() == [1, -3]
