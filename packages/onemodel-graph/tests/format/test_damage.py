"""Every byte of a file of format v1 matters: what is changed or missing is found, by name."""

import hashlib
import json
import mmap
import os
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.format import HEADER_LIMIT
from onemodel_graph.format.v1 import read_v1, save_v1, to_bytes
from onemodel_graph.onnx_io import import_model
from onemodel_graph.text_data import check_packed, packed
from onemodel_kernels import Array
from onemodel_kernels.errors import OneModelError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def small():
    proto = model(
        [node("MatMul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["y"])],
        {"x": (np.float32, ("N", 3))},
        ["y"],
        {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(4, np.float32)},
    )
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", 1, ("N", 4)))
    return import_model(proto)


def outcome(data):
    """The outputs of the model in some bytes, or ``None`` when they are refused."""
    try:
        return [array.tobytes() for array in og.Session(read_v1(data)).run(X)]
    except OneModelError as error:
        assert str(error).strip()
        return None


def split(data):
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, rest):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def test_every_changed_byte_of_the_header_is_refused_or_harmless():
    """Spaces between entries and names of tensors that agree everywhere mean nothing; results stay."""
    data = to_bytes(small())
    (length,) = struct.unpack("<Q", data[:8])
    wanted = outcome(data)
    assert wanted is not None
    harmless = 0
    for place in range(8 + length):
        for flip in (1, 128):
            changed = bytearray(data)
            changed[place] ^= flip
            found = outcome(bytes(changed))
            assert found in (None, wanted), f"byte {place} of the header changed the result"
            harmless += found is not None
    # A producer's name, the padding: what is not part of the model's arithmetic.
    assert harmless < length / 4


def test_every_changed_byte_of_the_weights_is_refused():
    data = to_bytes(small())
    (length,) = struct.unpack("<Q", data[:8])
    for place in range(8 + length, len(data)):
        changed = bytearray(data)
        changed[place] ^= 16
        with pytest.raises(OneModelError, match="weights are damaged"):
            read_v1(bytes(changed))


def test_every_truncation_is_refused():
    data = to_bytes(small())
    for length in range(len(data)):
        with pytest.raises(OneModelError):
            read_v1(data[:length])


def test_more_than_the_file_is_refused():
    with pytest.raises(OneModelError, match="damaged"):
        read_v1(to_bytes(small()) + b"\0")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["w"].update(data_offsets=[0, 2**62]), "'w'"),
        (lambda h: h["w"].update(shape=[2**40, 2**40]), "'w'"),
        (lambda h: h["w"].update(shape=[-3, -4]), "'w'"),
        (lambda h: h["w"].update(dtype="F8"), "'w'"),
        (lambda h: h.pop("w"), "'w'"),
        (lambda h: h["__metadata__"].pop("graph_sha256"), "checksum"),
        (lambda h: h["__metadata__"].pop("data_sha256"), "checksum"),
        (lambda h: h["__metadata__"].update(version="x"), "version"),
        (lambda h: h["__metadata__"].update(format="other"), "without a OneModel graph"),
        (lambda h: h.pop("__metadata__"), "without a OneModel graph"),
    ],
)
def test_headers_that_lie_are_refused(change, words):
    header, rest = split(to_bytes(small()))
    change(header)
    with pytest.raises(OneModelError, match=words):
        read_v1(joined(header, rest))


def test_a_header_without_end_is_refused():
    with pytest.raises(OneModelError, match="header"):
        read_v1(struct.pack("<Q", HEADER_LIMIT + 1) + b"{" + bytes(100))


def with_graph(change):
    """The small model's bytes after a change of its tree, with a checksum that agrees."""
    header, rest = split(to_bytes(small()))
    tree = json.loads(header["__metadata__"]["graph"])
    change(tree)
    text = json.dumps(tree)
    digest = hashlib.sha256(text.encode()).hexdigest()
    header["__metadata__"].update(graph=text, graph_sha256=digest)
    return joined(header, rest)


def test_bodies_without_end_are_refused():
    def change(tree):
        inner = tree["graph"]
        for _ in range(100):
            inner = {
                **tree["graph"],
                "nodes": [["", "If", [], [], {"then_branch": {"graph": inner}}, ""]],
            }
        tree["graph"] = inner

    with pytest.raises(OneModelError, match="deep"):
        read_v1(with_graph(change))


@pytest.mark.parametrize("extent", [-1, True, 1.5, [2]])
def test_an_extent_that_is_no_size_is_refused(extent):
    def change(tree):
        tree["graph"]["inputs"][0][2][1] = extent

    with pytest.raises(OneModelError, match="the value 'x' has the shape"):
        read_v1(with_graph(change))


@pytest.mark.parametrize(
    "coded",
    [
        ["string", [3, 4]],
        ["string", None],
        ["string", ["N"]],
        ["int4", [3, 4]],
        ["float32", [3, 4]],
        ["float8e5m2", [4, 3]],
        ["float8e5m2"],
        [None, [3, 4]],
        ["float8e5m2", [3, 4], 1],
    ],
)
def test_initializers_that_do_not_hold_what_they_say_are_refused(coded):
    def change(tree):
        (entry,) = (e for e in tree["graph"]["initializers"] if e[0] == "w")
        entry += coded

    with pytest.raises(OneModelError, match=r"the initializer 'w'|malformed|the value 'w'"):
        read_v1(with_graph(change))


@pytest.mark.parametrize(
    "data", [b'["a", 1, "b"]', b'["a", "b"]', b'{"a": 1}', b"[", b"\xff", b"[" * 100_000]
)
def test_texts_that_are_no_list_of_texts_are_refused(data):
    with pytest.raises(OneModelError, match=r"^t: expected 3 texts"):
        check_packed(Array.from_buffer(data, "uint8", (len(data),)), 3, "t")
    check_packed(packed(["a", "b", ""]), 3, "t")


def test_weights_are_mapped_and_aligned(tmp_path, monkeypatch):
    path = tmp_path / "m.om"
    save_v1(small(), path)
    maps = []
    real = mmap.mmap

    def noted(*arguments, **more):
        maps.append(real(*arguments, **more))
        return maps[-1]

    monkeypatch.setattr("onemodel_graph.format.v1.mmap.mmap", noted)
    graph = og.load(path).graph
    (mapped,) = maps
    start = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
    for array in graph.initializers.values():
        address = np.asarray(array).__array_interface__["data"][0]
        assert start <= address < start + len(mapped), "the array is a copy"
        assert address % array.itemsize == 0
        assert array.read_only


def test_a_replaced_file_does_not_change_a_session(tmp_path):
    path = tmp_path / "m.om"
    save_v1(small(), path)
    session = og.Session(path)
    wanted = session.run(X)[0]
    other = small()
    other.graph.nodes[1].operator = "Sub"
    save_v1(other, path)
    np.testing.assert_array_equal(session.run(X)[0], wanted)
    assert (og.Session(path).run(X)[0] != wanted).any()


def test_equal_bytes_in_every_process(tmp_path):
    source = tmp_path / "m.onnx"
    og.save(small(), source)
    code = (
        "import hashlib, onemodel_graph as og\n"
        "from onemodel_graph.format.v1 import to_bytes\n"
        f"print(hashlib.sha256(to_bytes(og.load({str(source)!r}))).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed}, cwd=folder,
        ).stdout
        for seed, folder in (("0", tmp_path), ("1", "/"), ("77", tmp_path))
    }  # fmt: skip
    assert len(found) == 1
