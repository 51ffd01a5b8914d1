"""Tensors of strings, and the dicts that ZipMap makes of scores."""

import itertools
import threading

import numpy as np
import onnxruntime
import pytest
from models import node
from onnx import TensorProto, helper

import onemodel_graph as og
from onemodel_graph.cli.inputs import drawn
from onemodel_graph.format.v1 import to_bytes
from onemodel_graph.ir import Value
from onemodel_graph.onnx_io import import_model
from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, MemoryLimitError, OneModelError, UnsupportedError

ML = "ai.onnx.ml"


def model(nodes, inputs, outputs, initializers=()):
    infos = [
        [
            helper.make_tensor_value_info(n, getattr(TensorProto, t), s)
            for n, (t, s) in group.items()
        ]
        for group in (inputs, {k: v for k, v in outputs.items() if v is not None})
    ]
    for name in (name for name, kind in outputs.items() if kind is None):
        infos[1].append(helper.make_empty_tensor_value_info(name))
    graph = helper.make_graph(nodes, "test", *infos, list(initializers))
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def strings(name, shape, *texts):
    return helper.make_tensor(name, TensorProto.STRING, shape, [t.encode() for t in texts])


def both(proto, *feeds):
    """The results of exact mode with and without passes, which are equal."""
    data = proto.SerializeToString()
    found = og.Session(data, "exact").run(*feeds)
    plain = og.Session(data, "exact", optimise=False).run(*feeds)
    for got, want in zip(found, plain, strict=True):
        assert got.tolist() == want.tolist()
        assert got.dtype == want.dtype
    return found


def moving():
    """Texts of the model and of the run, joined, moved, chosen and compared."""
    nodes = [
        node("Constant", [], ["c"], value=strings("", [1, 2], "zwei", "ä")),
        node("Constant", [], ["one"], value_strings=["eins"]),
        node("Concat", ["x", "w", "c"], ["j"], axis=0),
        node("Transpose", ["j"], ["t"], perm=[1, 0]),
        node("Gather", ["t", "i"], ["g"], axis=1),
        node("Equal", ["g", "one"], ["same"]),
        node("Where", ["same", "one", "g"], ["y"]),
        node("Shape", ["g"], ["shape"]),
    ]
    return model(
        nodes,
        {"x": ("STRING", ["N", 2]), "i": ("INT64", ["K"])},
        {"y": ("STRING", None), "same": ("BOOL", None), "shape": ("INT64", None)},
        [strings("w", [1, 2], "eins", "zwei")],
    )


def test_texts_are_passed_on_and_compared():
    x = np.array([["eins", "neu"], ["", "neu"]], object)
    y, same, shape = both(moving(), x, np.array([0, 1, 3, 2]))
    assert y.tolist() == [["eins", "", "zwei", "eins"], ["neu", "neu", "ä", "zwei"]]
    assert same.tolist() == [[True, False, False, True], [False] * 4]
    assert shape.tolist() == [2, 4]
    (again, *_) = both(moving(), x.astype("S4"), np.array([0]))
    assert again.tolist() == [["eins"], ["neu"]]


def test_runs_keep_their_texts_apart_and_forget_them():
    session = og.Session(moving().SerializeToString())
    wrong = []

    def work(name):
        for turn in range(50):
            texts = [[f"{name}{turn}", f"{turn}{name}"]]
            (y, *_) = session.run(np.array(texts, object), np.array([0]))
            if y.ravel().tolist() != texts[0]:
                wrong.append((texts, y))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not session._texts.running
    assert len(session._texts._texts) == 3


def test_outputs_as_arrays_are_codes():
    session = og.Session(moving().SerializeToString())
    (codes, same, _) = session.run_arrays(np.array([["a", "eins"]], object), np.array([0, 1]))
    assert isinstance(codes, Array)
    assert codes.dtype == "int64"
    assert same.tolist() == [[False, True], [True, False]]
    profile = session.profile(np.array([["a", "eins"]], object), np.array([0, 1]))
    assert profile.entries


def test_branches_pass_texts_on():
    branches = {
        f"{name}_branch": helper.make_graph(
            [node("Identity" if name == "then" else "Transpose", ["x"], [f"{name}_y"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_y", TensorProto.STRING, None)],
        )
        for name in ("then", "else")
    }
    nodes = [node("If", ["c"], ["y"], **branches)]
    proto = model(nodes, {"x": ("STRING", [2, 2]), "c": ("BOOL", [])}, {"y": ("STRING", None)})
    x = np.array([["a", "b"], ["c", "d"]], object)
    assert both(proto, x, np.array(True))[0].tolist() == x.tolist()
    assert both(proto, x, np.array(False))[0].tolist() == x.T.tolist()


def test_bodies_inside_each_other_are_looked_at_once():
    """Looking twice at each would double the work with each."""
    body = [node("Identity", ["x"], ["y"])]
    for depth in range(22):
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(body, f"at{depth}", [], [output])
        body = [node("If", ["c"], ["y"], then_branch=graph, else_branch=helper.make_graph(
            [node("Identity", ["x"], ["y"])], f"else{depth}", [], [output]))]  # fmt: skip
    proto = model(body, {"x": ("FLOAT", [1]), "c": ("BOOL", [])}, {"y": ("FLOAT", [1])})
    (y,) = og.Session(proto.SerializeToString()).run(np.float32([3.0]), np.array(True))
    assert y.tolist() == [3.0]


def classifier(labels, zipped):
    nodes = [
        node(
            "LinearClassifier", ["x"], ["label", "scores"], domain=ML, post_transform="SOFTMAX",
            coefficients=[1.0, 0.0, 0.0, 1.0, -1.0, -1.0], intercepts=[0.0, 0.1, 0.2], **labels,
        )
    ]  # fmt: skip
    outputs = {"label": ("STRING" if "classlabels_strings" in labels else "INT64", ["N"])}
    outputs["scores"] = ("FLOAT", ["N", 3])
    if zipped:
        kind = "classlabels_strings" if "classlabels_strings" in labels else "classlabels_int64s"
        nodes.append(
            node("ZipMap", ["scores"], ["map"], domain=ML, **{kind: next(iter(labels.values()))})
        )
        outputs["map"] = None
        del outputs["scores"]
    return model(nodes, {"x": ("FLOAT", ["N", 2])}, outputs)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    "labels",
    [{"classlabels_strings": ["cat", "dog", "eel"]}, {"classlabels_ints": [7, -1, 3]}],
    ids=["texts", "integers"],
)
def test_labels_of_classifiers_as_onnxruntime_gives_them(labels, zipped):
    x = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    proto = classifier(labels, zipped)
    label, scores = og.Session(proto.SerializeToString()).run(x)
    if zipped:
        # ONNX Runtime wants the type of the maps stated.
        key = TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64
        kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        proto.graph.output[1].type.CopyFrom(helper.make_sequence_type_proto(kind))
    peer = onnxruntime.InferenceSession(proto.SerializeToString())
    wanted, want = peer.run(None, {"x": x})
    assert label.tolist() == list(wanted)
    if not zipped:
        np.testing.assert_allclose(scores, want, rtol=0, atol=1e-6)
        return
    # ONNX Runtime sorts the labels.
    assert all(list(row) == next(iter(labels.values())) for row in scores)
    for got, row in zip(scores, want, strict=True):
        assert got == pytest.approx(row, abs=1e-6)


def test_codes_of_labels_and_categories():
    nodes = [
        node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=["a", "b"],
             values_strings=["A", "B"], default_string="?"),
        node("LabelEncoder", ["y"], ["n"], domain=ML, keys_strings=["?", "B"], values_int64s=[5, 6]),
        node("OneHotEncoder", ["x"], ["h"], domain=ML, cats_strings=["b", "a"]),
    ]  # fmt: skip
    outputs = {"y": ("STRING", ["N"]), "n": ("INT64", ["N"]), "h": ("FLOAT", ["N", 2])}
    y, n, h = both(
        model(nodes, {"x": ("STRING", ["N"])}, outputs), np.array(["b", "a", "c"], object)
    )
    assert y.tolist() == ["B", "A", "?"]
    assert n.tolist() == [6, -1, 5]
    assert h.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_what_has_no_form_for_strings_is_listed_whole():
    nodes = [
        node("Unique", ["x"], ["u"], name="first"),
        node("Max", ["x", "x"], ["m"], name="second"),
        node("Identity", ["x"], ["y"]),
    ]
    outputs = {"u": ("STRING", None), "m": ("STRING", None), "y": ("STRING", None)}
    proto = model(nodes, {"x": ("STRING", ["N"])}, outputs)
    with pytest.raises(
        UnsupportedError, match=r"(?s)2 node.*'first'.*no form for strings.*'second'"
    ):
        og.Session(proto.SerializeToString())


@pytest.mark.parametrize("kind", ["STRING", "INT64"])
def test_keys_of_another_kind_than_the_input_are_refused(kind):
    keys = {
        "keys_int64s" if kind == "STRING" else "keys_strings": [1] if kind == "STRING" else ["a"]
    }
    encoder = node("LabelEncoder", ["x"], ["y"], domain=ML, name="it", values_int64s=[1], **keys)
    proto = model([encoder], {"x": (kind, ["N"])}, {"y": ("INT64", ["N"])})
    with pytest.raises(UnsupportedError, match="'it'"):
        session = og.Session(proto.SerializeToString())
        session.run(np.array([1]))


def test_texts_that_grow_without_end_are_refused():
    """Each node doubles its input: 40 of them would make a text of 2 to the 40 characters."""
    names = [f"x{i}" for i in range(41)]
    nodes = [node("StringConcat", [a, a], [b]) for a, b in itertools.pairwise(names)]
    proto = model(nodes, {"x0": ("STRING", [1])}, {"x40": ("STRING", [1])})
    with pytest.raises(MemoryLimitError, match=r"StringConcat.*67108864 characters"):
        og.Session(proto.SerializeToString()).run(np.array(["a"], object))
    wide = [node("StringSplit", ["x"], ["y", "n"], delimiter=",")]
    proto = model(
        wide, {"x": ("STRING", ["N"])}, {"y": ("STRING", ["N", "M"]), "n": ("INT64", ["N"])}
    )
    with pytest.raises(MemoryLimitError, match="StringSplit"):
        og.Session(proto.SerializeToString()).run(np.array(["," * 10000, *[""] * 10000], object))


def test_a_pattern_is_refused_with_the_reason():
    match = node("RegexFullMatch", ["x"], ["y"], pattern="(a+)+b", name="it")
    proto = model([match], {"x": ("STRING", ["N"])}, {"y": ("BOOL", ["N"])})
    with pytest.raises(UnsupportedError, match=r"'it'.*no matcher here"):
        og.Session(proto.SerializeToString())


def test_inputs_that_are_no_strings_are_refused():
    session = og.Session(moving().SerializeToString())
    with pytest.raises(DtypeError, match="input 'x': expected strings, got int"):
        session.run([[1, 2]], np.array([0]))
    with pytest.raises(DtypeError, match="input 'x': expected strings, got Array"):
        session.run(Array.full((1, 2), 0, "int64"), np.array([0]))
    assert session.run(drawn(session.inputs, {}, 0))[0].ravel().tolist()[0] == "text"


@pytest.mark.parametrize("kind", ["string", "float32"])
def test_inputs_of_a_negative_extent_are_not_drawn(kind):
    """Texts are refused as numbers are, and not by what makes arrays of them."""
    with pytest.raises(OneModelError, match=r"shape not negative.*-3"):
        drawn((Value("x", kind, (2, -3)),), {}, 0)


def kept():
    """Texts of the model wherever it can have some: weights, constants of 0 to 2 axes, bodies."""
    body = helper.make_graph(
        [node("Concat", ["x", "inner"], ["t"], axis=0)],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.STRING, None)],
        [strings("inner", [1, 2], "in", "nen")],
    )
    other = helper.make_graph(
        [node("Identity", ["x"], ["e"])],
        "else",
        [],
        [helper.make_tensor_value_info("e", TensorProto.STRING, None)],
    )
    nodes = [
        node("Constant", [], ["c"], value=strings("", [1, 2], "zwei", "ä")),
        node("Constant", [], ["one"], value=strings("", [], "eins")),
        node("Constant", [], ["flat"], value_strings=["flach", ""]),
        node("If", ["flag"], ["b"], then_branch=body, else_branch=other),
        node("Concat", ["b", "w", "c"], ["j"], axis=0),
        node("Equal", ["j", "one"], ["same"]),
        node("Where", ["same", "flat", "j"], ["y"]),
        node("Identity", ["none"], ["empty"]),
    ]
    weights = helper.make_tensor("w", TensorProto.STRING, [1, 2], [b"eins", b"\xff\xc3\xa4"])
    return model(
        nodes,
        {"x": ("STRING", ["N", 2]), "flag": ("BOOL", [])},
        {"y": ("STRING", ["M", 2]), "empty": ("STRING", [0, 3])},
        [weights, strings("none", [0, 3])],
    )


@pytest.mark.parametrize("name", ["m.om1", "m.onnx", "beside.onnx"])
def test_files_of_texts_come_back_whole(name, tmp_path):
    """Shapes and bytes that are no UTF-8 too; texts stay in the model when weights go beside it."""
    loaded = import_model(kept())
    path = tmp_path / name
    if name.startswith("beside"):
        og.save_onnx(loaded, path, limit=0)
    else:
        og.save(loaded, path)
    x = np.array([["eins", "neu"]], object)
    for flag in (True, False):
        want, empty = og.Session(loaded).run(x, np.array(flag))
        got, none = og.Session(path).run(x, np.array(flag))
        assert got.tolist() == want.tolist()
        assert want.shape == (4 if flag else 3, 2)
        assert none.shape == empty.shape == (0, 3)
    assert b"\xff\xc3\xa4".decode("utf-8", "surrogateescape") in want
    again = og.load(path)
    if name == "m.om1":
        assert to_bytes(again) == to_bytes(loaded)
    assert og.to_onnx(again).SerializeToString() == og.to_onnx(loaded).SerializeToString()


def test_inputs_of_bytes_are_the_texts_that_the_model_has():
    session = og.Session(kept().SerializeToString())
    x = np.array([[b"eins", b"\xff\xc3\xa4"]], object)
    y, _ = session.run(x, np.array(False))
    assert y.tolist()[0][1] == y.tolist()[1][1] == "\udcffä"


def test_weights_and_labels_of_a_classifier_come_back(tmp_path):
    x = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    loaded = import_model(classifier({"classlabels_strings": ["cat", "dog", "ä"]}, False))
    for name in ("m.om1", "m.onnx"):
        og.save(loaded, tmp_path / name)
        got = og.Session(tmp_path / name).run(x)
        for mine, want in zip(got, og.Session(loaded).run(x), strict=True):
            assert mine.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no input", "ZipMap"),
        ("no output", "'it'"),
        ("labels of another kind", "'it'"),
        ("fewer labels", r"ZipMap: expected scores of shape \(N, 2\), got \(1, 3\)"),
    ],
)
def test_malformed_nodes_of_labels_are_refused_by_name(change, message):
    proto = classifier({"classlabels_strings": ["a", "b", "c"]}, True)
    forest, zipped = proto.graph.node
    forest.name = "it"
    if change == "no input":
        del zipped.input[:]
    elif change == "no output":
        del forest.output[:]
        zipped.input[0] = "x"
    elif change == "labels of another kind":
        (labels,) = (a for a in forest.attribute if a.name == "classlabels_strings")
        labels.CopyFrom(helper.make_attribute("classlabels_strings", 3))
    else:
        del zipped.attribute[0].strings[2:]
    proto.graph.output[0].name = "map" if change == "no output" else "label"
    with pytest.raises(OneModelError, match=message):
        og.Session(proto.SerializeToString()).run(np.zeros((1, 2), np.float32))
