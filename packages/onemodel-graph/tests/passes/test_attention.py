"""Attention in the forms in which exporters write it."""

import math

import numpy as np
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_graph.onnx_io import import_model
from onemodel_graph.passes import optimise
from onemodel_kernels.errors import UnsupportedError

RANDOM = np.random.default_rng(0)
SIZE = 8
Q = RANDOM.standard_normal((2, 3, 5, SIZE)).astype(np.float32)
K = RANDOM.standard_normal((2, 3, 7, SIZE)).astype(np.float32)
V = RANDOM.standard_normal((2, 3, 7, 6)).astype(np.float32)
KEEP = RANDOM.random((2, 1, 5, 7)) < 0.7
KEEP[..., 0] = True
MASK = np.where(KEEP, 0.0, -np.inf).astype(np.float32)
SCALE = 1 / math.sqrt(SIZE)
CONSTANTS = {
    "scale": np.array(SCALE, np.float32),
    "root": np.array([math.sqrt(SIZE)], np.float32),
    "half": np.array(math.sqrt(SCALE), np.float32),
    "closed": np.array(-1e9, np.float32),
    "shape": np.array([2, 5, 3, 6]),
    "0": np.array([0]), "1": np.array([1]), "2": np.array([2]), "-2": np.array([-2]),
    "-1": np.array([-1]), "end": np.array([2**63 - 1]), "float": np.array([1.0], np.float32),
    "wrong": np.array([3, -1, 8]),
}  # fmt: skip
INPUTS = {
    "q": (np.float32, ("B", 3, "L", SIZE)),
    "k": (np.float32, ("B", 3, "S", SIZE)),
    "v": (np.float32, ("B", 3, "S", 6)),
    "mask": (np.float32, ("B", 1, "L", "S")),
    "keep": (np.bool_, ("B", 1, "L", "S")),
    "size": (np.float32, ()),
    "r": (np.float32, ("B", 3, SIZE, "S")),
    "wide": (np.float32, (4, 1, 1, "L", "S")),
}
FEEDS = {"q": Q, "k": K, "v": V, "mask": MASK, "keep": KEEP, "size": CONSTANTS["half"],
         "r": np.ascontiguousarray(K.transpose(0, 1, 3, 2)),
         "wide": RANDOM.standard_normal((4, 1, 1, 5, 7)).astype(np.float32)}  # fmt: skip
TURNED = node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2])
END = [node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["y"])]

ROOT = [
    node("Shape", ["q"], ["all"]),
    node("Slice", ["all", "-1", "end"], ["last"]),
    node("Cast", ["last"], ["size_"], to=1),
    node("Sqrt", ["size_"], ["square"]),
    node("Div", ["float", "square"], ["inverse"]),
    node("Sqrt", ["inverse"], ["f"]),
]
"""The fourth root of the number of features, as torch.onnx writes it for both sides."""


def by_three_axes(first=("-1", "rows", "columns"), last=("lead", "columns", "rows")):
    """The keys with their last two axes exchanged, as torch.export writes it."""
    return [
        node("Shape", ["k"], ["whole"]),
        node("Slice", ["whole", "-1", "end"], ["columns"]),
        node("Slice", ["whole", "-2", "-1"], ["rows"]),
        node("Slice", ["whole", "0", "-2"], ["lead"]),
        node("Concat", [*first], ["three"], axis=0),
        node("Reshape", ["k", "three"], ["k3"]),
        node("Transpose", ["k3"], ["t3"], perm=[0, 2, 1]),
        node("Concat", [*last], ["four"], axis=0),
        node("Reshape", ["t3", "four"], ["t"]),
    ]


def scores(factor=1.0, mask=None):
    """The weights in double precision."""
    found = factor * (Q.astype(np.float64) @ K.astype(np.float64).transpose(0, 1, 3, 2))
    found = found if mask is None else found + mask
    found = np.exp(found - found.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


def both(nodes, opset=20, outputs=("y",)):
    """The operators in fast mode, and the results in fast and in exact mode."""
    read = {name for n in nodes for name in n.input}
    inputs = {name: kind for name, kind in INPUTS.items() if name in read}
    constants = {name: array for name, array in CONSTANTS.items() if name in read}
    graph = import_model(model(nodes, inputs, list(outputs), constants, opset)).graph
    feeds = {name: FEEDS[name] for name in inputs}
    left = [n.operator for n in optimise(graph, "fast").nodes]
    assert "FusedAttention" not in [n.operator for n in optimise(graph, "exact").nodes]
    return left, og.Session(graph).run(feeds), og.Session(graph, "exact").run(feeds)


FORMS = {
    "no scale": ([TURNED, node("MatMul", ["q", "t"], ["s"]), *END], 1.0, None),
    "scaled product": (
        [TURNED, node("MatMul", ["q", "t"], ["m"]), node("Div", ["m", "root"], ["s"]), *END],
        SCALE,
        None,
    ),
    "scaled query and a mask": (
        [
            node("Mul", ["scale", "q"], ["a"]),
            TURNED,
            node("MatMul", ["a", "t"], ["m"]),
            node("Add", ["mask", "m"], ["s"]),
            *END,
        ],
        SCALE,
        MASK,
    ),
    "query and key scaled": (
        [
            node("Mul", ["q", "half"], ["a"]),
            TURNED,
            node("Mul", ["t", "half"], ["b"]),
            node("MatMul", ["a", "b"], ["m"]),
            node("Add", ["m", "mask"], ["s"]),
            *END,
        ],
        SCALE,
        MASK,
    ),
    "a scale that a run computes": (
        [
            node("Mul", ["q", "size"], ["a"]),
            TURNED,
            node("Mul", ["size", "t"], ["b"]),
            node("MatMul", ["a", "b"], ["s"]),
            *END,
        ],
        SCALE,
        None,
    ),
    "a condition": (
        [
            TURNED,
            node("MatMul", ["q", "t"], ["m"]),
            node("Mul", ["m", "scale"], ["n"]),
            node("Where", ["keep", "n", "closed"], ["s"]),
            *END,
        ],
        SCALE,
        np.where(KEEP, 0.0, -np.inf),
    ),
    "a scale that follows from a shape": (
        [
            *ROOT,
            node("Mul", ["q", "f"], ["a"]),
            TURNED,
            node("Mul", ["t", "f"], ["b"]),
            node("MatMul", ["a", "b"], ["s"]),
            *END,
        ],
        SCALE,
        None,
    ),
    "keys turned by way of three axes": (
        [
            node("Mul", ["q", "half"], ["a"]),
            *by_three_axes(),
            node("Mul", ["t", "half"], ["b"]),
            node("MatMul", ["a", "b"], ["m"]),
            node("Add", ["m", "mask"], ["s"]),
            *END,
        ],
        SCALE,
        MASK,
    ),
    "keys that no transpose makes": ([node("MatMul", ["q", "r"], ["s"]), *END], 1.0, None),
}


@pytest.mark.parametrize("name", FORMS)
def test_attention_is_one_kernel_in_fast_mode(name):
    nodes, factor, mask = FORMS[name]
    left, fast, exact = both(nodes)
    assert left.count("FusedAttention") == 1
    assert not {"Softmax", "MatMul"} & set(left)
    want = scores(factor, mask) @ V.astype(np.float64)
    # Both sums of float32 are measured against double precision.
    np.testing.assert_allclose(fast[0], want, rtol=0, atol=3e-6)
    np.testing.assert_allclose(exact[0], want, rtol=0, atol=3e-6)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (("-1", "rows", "columns"), ("lead", "rows", "columns")),
        (("-1", "columns", "rows"), ("lead", "columns", "rows")),
        (("rows", "-1", "columns"), ("lead", "columns", "rows")),
    ],
)
def test_other_reshapes_are_no_turned_keys(first, last):
    """With five rows and five columns they would have the shapes of turned keys."""
    square = {n: np.ascontiguousarray(x[..., :5, :5]) for n, x in (("q", Q), ("k", K), ("v", V))}
    nodes = [*by_three_axes(first, last), node("MatMul", ["q", "t"], ["s"]), *END]
    read = {name for n in nodes for name in n.input}
    constants = {name: array for name, array in CONSTANTS.items() if name in read}
    heads = 3 if first[0] == "-1" else 1
    inputs = dict.fromkeys(square, (np.float32, ("B", heads, "R", "C")))
    feeds = {name: x[:heads, :heads] for name, x in square.items()}
    graph = import_model(model(nodes, inputs, ["y"], constants)).graph
    assert "FusedAttention" not in [n.operator for n in optimise(graph, "fast").nodes]
    fast, exact = (og.Session(graph, mode).run(feeds)[0] for mode in ("fast", "exact"))
    np.testing.assert_allclose(fast, exact, rtol=0, atol=3e-6)


def test_a_factor_of_each_key_stays_on_the_transposed_keys():
    """Seven numbers for seven keys: on keys with their features last they would be for features."""
    nodes = [
        TURNED,
        node("Mul", ["t", "each"], ["b"]),
        node("MatMul", ["q", "b"], ["s"]),
        *END,
    ]
    inputs = {name: INPUTS[name] for name in "qkv"} | {"each": (np.float32, ("S",))}
    graph = import_model(model(nodes, inputs, ["y"])).graph
    feeds = {name: FEEDS[name] for name in "qkv"} | {"each": np.arange(7, dtype=np.float32)}
    fast, exact = (og.Session(graph, mode).run(feeds)[0] for mode in ("fast", "exact"))
    np.testing.assert_allclose(fast, exact, rtol=0, atol=3e-6)


def test_heads_gathered_from_one_product_are_recognised():
    """As a trace writes a projection to queries, keys and values; axes count from the front."""
    packed = np.stack([Q, Q[:, :, ::-1], Q * 0.5])
    constants = {str(i): np.array(i) for i in range(3)} | {"scale": CONSTANTS["scale"]}
    nodes = [
        *(node("Gather", ["packed", str(i)], [name], axis=0) for i, name in enumerate("qkv")),
        TURNED,
        node("MatMul", ["q", "t"], ["m"]),
        node("Mul", ["m", "scale"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=3),
        END[1],
    ]
    inputs = {"packed": (np.float32, (3, "B", 3, "L", SIZE))}
    graph = import_model(model(nodes, inputs, ["y"], constants)).graph
    assert [n.operator for n in optimise(graph, "fast").nodes].count("FusedAttention") == 1
    fast, exact = (og.Session(graph, mode).run({"packed": packed})[0] for mode in ("fast", "exact"))
    # Two orders of sums of float32.
    np.testing.assert_allclose(fast, exact, rtol=0, atol=3e-6)


def test_a_softmax_over_flattened_axes_is_recognised():
    """Before opset 13 a softmax is over all axes from one on."""
    nodes = [
        TURNED,
        node("MatMul", ["q", "t"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=3),
        END[1],
    ]
    left, fast, _ = both(nodes, opset=11)
    assert left == ["FusedAttention"]
    np.testing.assert_allclose(fast[0], scores() @ V.astype(np.float64), rtol=0, atol=3e-6)


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([TURNED, node("MatMul", ["q", "t"], ["s"]), *END], ("y", "p")),
        ([TURNED, node("MatMul", ["q", "t"], ["s"]), *END], ("y", "s")),
        ([TURNED, node("MatMul", ["q", "t"], ["s"]), node("Softmax", ["s"], ["p"], axis=2), END[1]],
         ("y",)),
        ([TURNED, node("MatMul", ["q", "t"], ["s"]), END[0], node("MatMul", ["p", "v"], ["o"]),
          node("Transpose", ["o"], ["h"], perm=[0, 2, 1, 3]), node("Reshape", ["h", "shape"], ["j"]),
          node("DynamicQuantizeLinear", ["j"], ["y", "c", "z"])], ("y", "c", "z")),
    ],
    ids=["weights are an output", "scores are an output", "another axis", "quantised"],
)  # fmt: skip
def test_other_graphs_keep_their_operators(nodes, outputs):
    left, fast, exact = both(nodes, outputs=outputs)
    assert "FusedAttention" not in left
    for got, want in zip(fast, exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6)


def test_a_mask_that_widens_the_scores_is_computed_by_elementary_operators():
    nodes = [TURNED, node("MatMul", ["q", "t"], ["m"]), node("Add", ["m", "wide"], ["s"]), *END]
    left, fast, exact = both(nodes)
    assert left == ["FusedAttention"]
    assert fast[0].shape == exact[0].shape == (4, 2, 3, 5, 6)
    np.testing.assert_allclose(fast[0], exact[0], rtol=0, atol=3e-6)


def test_exact_mode_refuses_the_fused_operator():
    proto = model([node("FusedAttention", ["q", "k", "v"], ["y"], domain="onemodel")],
                  {name: INPUTS[name] for name in "qkv"}, ["y"])  # fmt: skip
    proto.opset_import.add(domain="onemodel", version=1)
    graph = import_model(proto).graph
    (got,) = og.Session(graph).run({name: FEEDS[name] for name in "qkv"})
    np.testing.assert_allclose(got, scores(SCALE) @ V.astype(np.float64), rtol=0, atol=3e-6)
    with pytest.raises(UnsupportedError, match="FusedAttention"):
        og.Session(graph, "exact")


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_the_operator_of_onnx_takes_the_same_kernel(masked, flat):
    """Three axes hold the heads side by side; two query heads share each key head."""
    heads = {"q_num_heads": 6, "kv_num_heads": 3}
    q = np.concatenate([Q, Q[:, ::-1]], 1)
    k, v = K, V
    if flat:
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v))
    keep = KEEP.copy()
    keep[0, 0, 1] = False
    inputs = {n: (np.float32, x.shape) for n, x in (("q", q), ("k", k), ("v", v))}
    names = ["q", "k", "v"]
    if masked:
        inputs["keep"] = (np.bool_, keep.shape)
        names.append("keep")
    nodes = [node("Attention", names, ["y"], is_causal=1, **(heads if flat else {}))]
    graph = import_model(model(nodes, inputs, ["y"], opset=24)).graph
    feeds = dict(zip(names, (q, k, v, keep), strict=False))
    session = og.Session(graph)
    (got,) = session.run(feeds)
    exact = og.Session(graph, "exact")
    (want,) = exact.run(feeds)
    np.testing.assert_allclose(got, want, rtol=0, atol=3e-6)
    assert np.isfinite(got).all()
    # The products and the softmax are one call of the three.
    assert len(session.profile(feeds).entries) < len(exact.profile(feeds).entries)
