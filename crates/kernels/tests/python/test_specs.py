"""Every spec of an ONNX operator against onnx.defs: names, order, options, defaults, version."""

import math
import subprocess
import sys

import onnx.defs
import pytest
from onnx import helper

from onemodel_kernels import ops
from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError, UnsupportedError
from onemodel_kernels.ops import extents

SPECS = [spec for spec in ops.all() if spec.domain == ""]
NEWEST = 28
#: Range takes its dtype from its operands, which a kernel call does not have.
OWN_ATTRIBUTES = {"Range": {"dtype"}}


def schema(spec, version=None):
    return onnx.defs.get_schema(spec.name, version or max(20, spec.since_version), "")


def form(slots):
    return [(s.name, s.optional, s.variadic) for s in slots]


def theirs(slots):
    return [(s.name, s.option.name == "Optional", s.option.name == "Variadic") for s in slots]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_inputs_outputs_and_version(spec):
    found = schema(spec)
    assert form(spec.inputs) == theirs(found.inputs)
    assert form(spec.outputs) == theirs(found.outputs)
    if not found.deprecated:
        assert spec.since_version == found.since_version


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_attributes(spec):
    found = schema(spec).attributes
    newest = schema(spec, NEWEST).attributes
    own = set(spec.attributes) - OWN_ATTRIBUTES.get(spec.name, set())
    assert set(found) <= own <= set(found) | set(newest)
    for name in own:
        entry = found.get(name) or newest[name]
        mine = spec.attributes[name]
        assert mine.required == entry.required, name
        default = None
        if entry.default_value.name:
            default = plain(helper.get_attribute_value(entry.default_value))
        if mine.type == "dtype":
            default = {1: "float32", 0: None, 6: "int32"}.get(default, default)
        if name in found:
            assert mine.default == default, name
        kinds = {"dtype": "int", "type": "type_proto", "tensor": "tensor"}
        if name != "sparse_value":
            assert kinds.get(mine.type, mine.type) == entry.type.name.lower(), name


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return tuple(plain(entry) for entry in value)
    return value


def test_lookup():
    assert ops.get("Conv").name == "Conv"
    assert ops.get("Linear").domain == "onemodel"
    assert ops.find("Nothing") is None
    with pytest.raises(UnsupportedError, match="Nothing"):
        ops.get("Nothing")
    names = [(spec.domain, spec.name) for spec in ops.all()]
    assert names == sorted(set(names))
    onnx = {name for domain, name in names if domain == ""}
    assert not onnx & {name for domain, name in names if domain == "onemodel"}


def test_a_common_operator_is_found_without_reading_every_family():
    code = (
        "import sys; from onemodel_kernels import ops; ops.get('MatMul'); "
        "print(sum(f'onemodel_kernels.ops.{f}' in sys.modules for f in ops.FAMILIES))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 10


@pytest.mark.parametrize("spec", ops.all(), ids=lambda spec: spec.name)
def test_every_spec_is_described(spec):
    assert spec.doc.endswith(".")
    assert spec.determinism.endswith(".")
    assert spec.kernel is None or spec.decompose is None


def test_errors_name_the_operator_and_the_shapes():
    with pytest.raises(ShapeError, match=r"Add: .*\(2, 3\) and \(4,\) do not broadcast"):
        ops.get("Add").infer([(2, 3), (4,)], ["float32", "float32"], {})
    with pytest.raises(DtypeError, match=r"Add: .*float32, int64"):
        ops.get("Add").infer([(2,), (2,)], ["float32", "int64"], {})
    with pytest.raises(AttributeValueError, match="Conv: unknown attribute 'stride'"):
        ops.get("Conv").infer([(1, 1, 4), (1, 1, 3)], ["float32"] * 2, {"stride": (1,)})
    with pytest.raises(AttributeValueError, match="Concat: the attribute 'axis' is required"):
        ops.get("Concat").infer([(1,)], ["float32"], {})


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "begin", "end", "ceil", "want"),
    [
        (5, 3, 1, 1, 0, 0, False, 3),
        (5, 3, 2, 1, 1, 1, False, 3),
        (6, 3, 2, 1, 0, 0, True, 3),
        (4, 2, 3, 1, 0, 0, True, 2),
        (7, 3, 2, 2, 1, 0, False, 2),
        (2, 1, 2, 1, 0, 1, True, 1),
    ],
)
def test_windows(size, kernel, stride, dilation, begin, end, ceil, want):
    assert extents.window(size, kernel, stride, dilation, begin, end, ceil) == want


def test_windows_that_do_not_fit():
    with pytest.raises(ShapeError, match="does not fit"):
        extents.window(2, 5, 1, 1, 0, 0)


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("step", [-3, -1, 1, 2])
def test_slices_are_numpys(size, step):
    import numpy as np

    big = 2**63 - 1
    for start in (-big, -7, -1, 0, 1, 4, big):
        if step < 0 and start < -size:
            continue  # ONNX starts at the first element here, numpy before it
        for end in (-big, -7, -1, 0, 1, 4, big):
            want = len(np.arange(size)[start:end:step])
            if step < 0 and end == -big:
                want = len(np.arange(size)[start::step])
            assert extents.slice_length(size, start, end, step) == want


def test_reshape():
    assert extents.reshape((2, 3, 4), (-1, 4)) == (6, 4)
    assert extents.reshape((2, 3, 4), (0, -1)) == (2, 12)
    assert extents.reshape((0, 3), (3, 0), True) == (3, 0)
    for target in ((5, -1), (-1, -1), (2, 3), (2, 3, 4, 0)):
        with pytest.raises(ShapeError):
            extents.reshape((2, 3, 4), target)


def test_ranges():
    for start, limit, delta in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 0, 1), (0.0, 1.0, 0.1)):
        want = max(0, math.ceil((limit - start) / delta))
        assert extents.range_length(start, limit, delta) == want
