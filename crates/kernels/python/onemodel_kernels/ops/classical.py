"""Operators of the domain ``ai.onnx.ml``: scalers and ensembles of decision trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError, UnsupportedError
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import (
    Attribute,
    Call,
    Emitter,
    TensorType,
    integer,
    integers,
    text,
)

DOMAIN = "ai.onnx.ml"
FEATURES = frozenset({"float32", "float64", "int32", "int64"})
COMPARISONS = {
    "BRANCH_LEQ": "LessOrEqual",
    "BRANCH_LT": "Less",
    "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
}


def require_features(call: Call) -> None:
    """Raises unless X has a type that these operators take."""
    if call.dtype() not in FEATURES:
        raise DtypeError(f"X must be one of {', '.join(sorted(FEATURES))}, not {call.dtype()}")


def _scaler(call: Call) -> list[TensorType]:
    require_features(call)
    width = call.shape()[-1] if call.rank() else 1
    for name in ("offset", "scale"):
        given = call[name]
        if given is not None and len(given) not in (1, width):
            raise ShapeError(
                f"{name} has {len(given)} numbers, X {call.shape()} needs 1 or {width}"
            )
    return [("float32", call.shape())]


def _emit_scaler(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    _scaler(call)
    x = emit.emit("Cast", inputs[0], to="float32")
    if call["offset"] is not None:
        x = emit.emit("Sub", x, emit.constant(list(call["offset"]), "float32"))
    if call["scale"] is not None:
        x = emit.emit("Mul", x, emit.constant(list(call["scale"]), "float32"))
    return x


def _targets(call: Call) -> int:
    if call.operator == "TreeEnsembleRegressor":
        return int(call["n_targets"] or 1)
    return len(labels_of(call, "classlabels_int64s"))


def labels_of(call: Call, name: str) -> tuple[int, ...]:
    """The integer labels in an attribute; texts are refused."""
    labels = call[name]
    if not labels:
        raise UnsupportedError(
            f"{call.operator}: labels that are texts are not supported; export integer labels"
        )
    return tuple(labels)


def _trees(call: Call) -> list[TensorType]:
    require_features(call)
    if call.rank() != 2:
        raise ShapeError(f"X must be (rows, features), but its shape is {call.shape()}")
    rows = call.shape()[0]
    scores: TensorType = ("float32", (rows, _targets(call)))
    if call.operator == "TreeEnsembleRegressor":
        return [scores]
    return [("int64", (rows,)), scores]


class _Forest:
    """The nodes of all trees in one list; a leaf leads to itself."""

    def __init__(self, call: Call, kind: str) -> None:
        trees, ids = call["nodes_treeids"] or (), call["nodes_nodeids"] or ()
        places = {key: at for at, key in enumerate(zip(trees, ids, strict=True))}
        self.modes = tuple(call["nodes_modes"] or ())
        count = len(places)
        if not count or any(
            len(call[name] or ()) != count
            for name in ("nodes_modes", "nodes_featureids", "nodes_values", "nodes_truenodeids",
                         "nodes_falsenodeids")
        ):  # fmt: skip
            raise AttributeValueError("the lists nodes_… must have one entry for each node")
        self.features = list(call["nodes_featureids"])
        self.values = list(call["nodes_values"])
        self.missing = list(call["nodes_missing_value_tracks_true"] or (0,) * count)
        try:
            self.yes, self.no = (
                [
                    at if mode == "LEAF" else places[tree, target]
                    for at, (mode, tree, target) in enumerate(
                        zip(self.modes, trees, call[name], strict=True)
                    )
                ]
                for name in ("nodes_truenodeids", "nodes_falsenodeids")
            )
            self.weights = [[0.0] * _targets(call) for _ in range(count)]
            for tree, node, target, weight in zip(
                *(
                    call[f"{kind}_{name}"] or ()
                    for name in ("treeids", "nodeids", "ids", "weights")
                ),
                strict=True,
            ):
                self.weights[places[tree, node]][target] += weight
        except (KeyError, IndexError) as error:
            raise AttributeValueError(
                f"a node or target {error} is named that is not there"
            ) from None
        inner = [at for at, mode in enumerate(self.modes) if mode != "LEAF"]
        reached = {way for at in inner for way in (self.yes[at], self.no[at])}
        self.roots = [at for at in range(count) if at not in reached]
        self.depth = self._depth()

    def _depth(self) -> int:
        level, depth = set(self.roots), 0
        while any(self.modes[at] != "LEAF" for at in level):
            level = {way for at in level for way in (self.yes[at], self.no[at])}
            depth += 1
            if depth > len(self.modes):
                raise AttributeValueError("the nodes of a tree lead back to themselves")
        return depth


def _scores(emit: Emitter, call: Call, x: Any, forest: _Forest, how: str) -> Any:
    """(rows, targets): what the leaves that each row reaches hold, put together over the trees."""
    rows = call.shape()[0]
    dtype = "float64" if call.dtype() == "float64" else "float32"
    x = emit.emit("Cast", x, to=dtype)
    table = {
        "feature": emit.constant(forest.features, "int64"),
        "value": emit.constant(forest.values, dtype),
        "yes": emit.constant(forest.yes, "int64"),
        "no": emit.constant(forest.no, "int64"),
    }
    at = emit.emit(
        "Expand", emit.constant([forest.roots], "int64"), shape=(rows, len(forest.roots))
    )
    modes = sorted({mode for mode in forest.modes if mode != "LEAF"})
    unknown = [mode for mode in modes if mode not in (*COMPARISONS, "BRANCH_NEQ")]
    if unknown:
        raise UnsupportedError(f"{call.operator}: the node mode {unknown[0]!r} is not supported")
    for _ in range(forest.depth):
        feature = emit.emit("Gather", table["feature"], at, axis=0)
        value = emit.emit("GatherElements", x, feature, axis=1)
        bound = emit.emit("Gather", table["value"], at, axis=0)
        taken = None
        for mode in modes:
            if mode == "BRANCH_NEQ":
                here = emit.emit("Not", emit.emit("Equal", value, bound))
            else:
                here = emit.emit(COMPARISONS[mode], value, bound)
            if taken is None:
                taken = here
                continue
            own = emit.constant([entry == mode for entry in forest.modes], "bool")
            taken = emit.emit("Where", emit.emit("Gather", own, at, axis=0), here, taken)
        if any(forest.missing):
            tracked = emit.constant([bool(entry) for entry in forest.missing], "bool")
            absent = emit.emit(
                "And", emit.emit("IsNaN", value), emit.emit("Gather", tracked, at, axis=0)
            )
            taken = emit.emit("Or", taken, absent)
        yes = emit.emit("Gather", table["yes"], at, axis=0)
        at = emit.emit("Where", taken, yes, emit.emit("Gather", table["no"], at, axis=0))
    leaves = emit.emit("Gather", emit.constant(forest.weights, "float32"), at, axis=0)
    return emit.emit(how, leaves, axes=(1,), keepdims=0)


def _with_base(emit: Emitter, call: Call, scores: Any) -> Any:
    base = call["base_values"]
    if base:
        scores = emit.emit("Add", scores, emit.constant(list(base), "float32"))
    return scores


def transformed(emit: Emitter, call: Call, scores: Any) -> Any:
    """Scores after the call's ``post_transform``."""
    kind = call["post_transform"]
    if kind == "NONE":
        return scores
    if kind == "SOFTMAX":
        return emit.emit("Softmax", scores, axis=-1)
    if kind == "LOGISTIC":
        return emit.emit("Sigmoid", scores)
    raise UnsupportedError(f"{call.operator}: post_transform {kind!r} is not supported")


def _emit_regressor(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    how = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}
    kind = call["aggregate_function"]
    if kind not in how:
        raise AttributeValueError(
            f"aggregate_function must be one of {', '.join(how)}, not {kind!r}"
        )
    forest = _Forest(call, "target")
    scores = _scores(emit, call, inputs[0], forest, how[kind])
    if kind == "AVERAGE":
        scores = emit.emit("Div", scores, emit.constant(float(len(forest.roots)), "float32"))
    return transformed(emit, call, _with_base(emit, call, scores))


def _emit_two_classes(emit: Emitter, call: Call, x: Any, labels: tuple[int, ...]) -> Any:
    """Only one score is stored: a share when no weight is negative, otherwise a logit."""
    scored = call["class_ids"][0]
    scores = _scores(emit, call, x, _Forest(call, "class"), "ReduceSum")
    score = emit.emit("Slice", scores, starts=(scored,), ends=(scored + 1,), axes=(1,))
    base = call["base_values"]
    if base and len(base) != 1:
        raise UnsupportedError(f"{call.operator}: one scored class needs one base value")
    score = _with_base(emit, call, score)
    shares = all(weight >= 0 for weight in call["class_weights"])
    half = emit.constant(0.5 if shares else 0.0, "float32")
    above = emit.emit("Squeeze", emit.emit("Greater", score, half), axes=(1,))
    first, second = (emit.constant(label, "int64") for label in labels)
    label = emit.emit("Where", above, second, first)
    if shares:
        other = emit.emit("Sub", emit.constant(1.0, "float32"), score)
    else:
        other = emit.emit("Neg", score)
    return label, transformed(emit, call, emit.emit("Concat", other, score, axis=1))


def _emit_classifier(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    labels = labels_of(call, "classlabels_int64s")
    if len(labels) == 2 and len(set(call["class_ids"] or ())) == 1:
        return _emit_two_classes(emit, call, inputs[0], labels)
    scores = _scores(emit, call, inputs[0], _Forest(call, "class"), "ReduceSum")
    scores = _with_base(emit, call, scores)
    best = emit.emit("ArgMax", scores, axis=1, keepdims=0)
    label = emit.emit("Gather", emit.constant(list(labels), "int64"), best, axis=0)
    return label, transformed(emit, call, scores)


_NODES = {
    "nodes_treeids": integers(),
    "nodes_nodeids": integers(),
    "nodes_featureids": integers(),
    "nodes_values": Attribute("floats"),
    "nodes_hitrates": Attribute("floats"),
    "nodes_modes": Attribute("strings"),
    "nodes_truenodeids": integers(),
    "nodes_falsenodeids": integers(),
    "nodes_missing_value_tracks_true": integers(),
    "base_values": Attribute("floats"),
    "post_transform": text("NONE"),
}
SUMS = "Comparisons are exact; leaves are added in the order of the trees."
SPECS = [
    operator(
        "Scaler",
        "X",
        "Y",
        _scaler,
        {"offset": Attribute("floats"), "scale": Attribute("floats")},
        domain=DOMAIN,
        decompose=_emit_scaler,
        doc="(x - offset) * scale for each feature.",
    ),
    operator(
        "TreeEnsembleRegressor",
        "X",
        "Y",
        _trees,
        {
            **_NODES,
            "target_treeids": integers(),
            "target_nodeids": integers(),
            "target_ids": integers(),
            "target_weights": Attribute("floats"),
            "n_targets": integer(),
            "aggregate_function": text("SUM"),
        },
        domain=DOMAIN,
        decompose=_emit_regressor,
        determinism=SUMS,
        doc="What the leaves that a row reaches hold, put together over the trees.",
    ),
    operator(
        "TreeEnsembleClassifier",
        "X",
        "Y Z",
        _trees,
        {
            **_NODES,
            "class_treeids": integers(),
            "class_nodeids": integers(),
            "class_ids": integers(),
            "class_weights": Attribute("floats"),
            "classlabels_int64s": integers(),
            "classlabels_strings": Attribute("strings"),
        },
        domain=DOMAIN,
        decompose=_emit_classifier,
        determinism=SUMS,
        doc="The label of the greatest sum over the trees, and the sums.",
    ),
]
