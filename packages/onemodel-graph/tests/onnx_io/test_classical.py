"""Operators of ai.onnx.ml around trees, against ONNX Runtime."""

import numpy as np
import onnxruntime as ort
import pytest
from models import model, node
from onnx import helper

import onemodel_graph as og
from onemodel_kernels.errors import OneModelError

DOMAIN = "ai.onnx.ml"
X = np.random.default_rng(2).normal(size=(30, 4)).astype(np.float32)
X[3], X[4, 1], X[5, 2] = 0, np.nan, -1.0


def data_of(operator, outputs, dtype=np.float32, shape=("n", 4), initializers=None, **attributes):
    names = ["x", *(initializers or {})]
    proto = model(
        [node(operator, names, outputs, domain=DOMAIN, name="it", **attributes)],
        {"x": (dtype, shape)},
        outputs,
        initializers,
    )
    proto.opset_import.append(helper.make_opsetid(DOMAIN, 3))
    return proto.SerializeToString()


def agree(x, *arguments, exact=True, **attributes):
    data = data_of(*arguments, dtype=x.dtype, **attributes)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    theirs = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    for mode in ("fast", "exact"):
        found = og.Session(data, mode).run(x)
        for ours, other in zip(found, theirs.run(None, {"x": x}), strict=True):
            assert ours.dtype == other.dtype
            if exact:
                np.testing.assert_array_equal(ours, other)
            else:
                # The order of a sum of four products is its own.
                np.testing.assert_allclose(ours, other, rtol=1e-5, atol=1e-6)


FULL = np.nan_to_num(X)
COEFFICIENTS = np.random.default_rng(3).normal(size=12).astype(np.float32).tolist()


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets):
    agree(
        FULL, "LinearRegressor", ["y"], exact=False, targets=targets,
        coefficients=COEFFICIENTS[: 4 * targets], intercepts=[0.5, -1.0, 2.0][:targets],
    )  # fmt: skip


@pytest.mark.parametrize("after", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[7, 9], [3, 1, 2]])
def test_linear_classifier(labels, after):
    agree(
        FULL, "LinearClassifier", ["label", "scores"], exact=False, classlabels_ints=labels,
        coefficients=COEFFICIENTS[: 4 * len(labels)], intercepts=[0.5, -1.0, 2.0][: len(labels)],
        post_transform=after, multi_class=1,
    )  # fmt: skip


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    # ONNX Runtime divides by the greatest number of a row of zeros too.
    rows = FULL[4:] if norm == "MAX" else FULL
    agree(rows, "Normalizer", ["y"], norm=norm, exact=False)


def test_binarizer_and_imputer():
    agree(FULL, "Binarizer", ["y"], threshold=0.25)
    agree(
        X,
        "Imputer",
        ["y"],
        imputed_value_floats=[1.0, 2.0, 3.0, 4.0],
        replaced_value_float=float("nan"),
    )
    agree(X, "Imputer", ["y"], imputed_value_floats=[9.0], replaced_value_float=-1.0)
    agree(
        np.array([[1, -1, 2, -1]]), "Imputer", ["y"], imputed_value_int64s=[5],
        replaced_value_int64=-1,
    )  # fmt: skip


def test_places_and_categories():
    agree(X[6:], "ArrayFeatureExtractor", ["y"], initializers={"at": np.array([2, 0])})
    whole = np.array([[1, 5, 7, 1], [0, 7, 7, 5]])
    agree(whole, "OneHotEncoder", ["y"], cats_int64s=[1, 5, 7], zeros=1)
    agree(
        whole,
        "LabelEncoder",
        ["y"],
        keys_int64s=[1, 5],
        values_floats=[0.5, 2.5],
        default_float=9.0,
    )
    agree(
        whole,
        "LabelEncoder",
        ["y"],
        keys_int64s=[1, 5, 7],
        values_int64s=[3, 2, 1],
        default_int64=-4,
    )
    agree(FULL, "FeatureVectorizer", ["y"], inputdimensions=[4])


def test_a_forest_of_many_nodes_loads_at_once():
    """Finding the roots takes as long as the nodes are many, not their square."""
    trees, depth = 60, 8
    nodes = {
        name: []
        for name in (
            "treeids",
            "nodeids",
            "featureids",
            "values",
            "modes",
            "truenodeids",
            "falsenodeids",
        )
    }
    targets = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    rng = np.random.default_rng(0)
    for tree in range(trees):
        for at in range(2**depth - 1):
            leaf = at >= 2 ** (depth - 1) - 1
            row = (tree, at, int(rng.integers(4)), float(rng.normal()), "LEAF" if leaf else "BRANCH_LEQ",
                   0 if leaf else 2 * at + 1, 0 if leaf else 2 * at + 2)  # fmt: skip
            for name, value in zip(nodes, row, strict=True):
                nodes[name].append(value)
            if leaf:
                for name, value in zip(targets, (tree, at, 0, float(rng.normal())), strict=True):
                    targets[name].append(value)
    attributes = {f"nodes_{k}": v for k, v in nodes.items()}
    attributes |= {f"target_{k}": v for k, v in targets.items()}
    agree(FULL, "TreeEnsembleRegressor", ["y"], exact=False, n_targets=1, **attributes)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0]}),
        ("LinearRegressor", {"coefficients": [1.0] * 4, "intercepts": [1.0, 2.0]}),
        ("LinearRegressor", {"coefficients": [1.0] * 4, "post_transform": "PROBIT"}),
        ("LinearClassifier", {"coefficients": [1.0] * 8, "classlabels_strings": ["a", "b", "c"]}),
        ("LinearClassifier", {"coefficients": [1.0] * 8, "classlabels_ints": [1, 2, 3]}),
        ("Normalizer", {"norm": "L3"}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0]}),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}),
        ("OneHotEncoder", {"cats_strings": ["a"]}),
    ],
)
def test_what_does_not_fit_is_refused(operator, attributes):
    outputs = ["y", "z"] if operator == "LinearClassifier" else ["y"]
    with pytest.raises(OneModelError, match="'it'"):
        og.Session(data_of(operator, outputs, **attributes)).run(FULL)
