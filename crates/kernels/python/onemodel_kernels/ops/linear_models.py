"""Linear models of the domain ``ai.onnx.ml``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import ShapeError, UnsupportedError
from onemodel_kernels.ops.classical import DOMAIN, labels_of, require_features, transformed
from onemodel_kernels.ops.products import CHAIN
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


def _targets(call: Call) -> int:
    """The number of rows of coefficients; checks that they fit the input."""
    require_features(call)
    if call.rank() not in (1, 2):
        raise ShapeError(f"X must be (rows, features), but its shape is {call.shape()}")
    width, given = call.shape()[-1], len(call["coefficients"] or ())
    count = call["targets"] if call.operator == "LinearRegressor" else None
    if count is None:
        count = given // width if isinstance(width, int) and width else 0
    if not count or given != count * width:
        raise ShapeError(f"{given} coefficients do not fit {count} targets of {width} features")
    intercepts = call["intercepts"]
    if intercepts and len(intercepts) != count:
        raise ShapeError(f"{len(intercepts)} intercepts do not fit {count} targets")
    return int(count)


def _rows(call: Call) -> Any:
    return call.shape()[0] if call.rank() == 2 else 1


def _scores(emit: Emitter, call: Call, x: Any) -> Any:
    """``x @ coefficientsᵀ + intercepts`` in float32."""
    count, width = _targets(call), call.shape()[-1]
    x = emit.emit("Reshape", emit.emit("Cast", x, to="float32"), shape=(_rows(call), width))
    listed = call["coefficients"]
    rows = [list(listed[start : start + width]) for start in range(0, count * width, width)]
    scores = emit.emit("Gemm", x, emit.constant(rows, "float32"), None, transB=1)
    if call["intercepts"]:
        scores = emit.emit("Add", scores, emit.constant(list(call["intercepts"]), "float32"))
    return scores


def _regressor(call: Call) -> list[TensorType]:
    return [("float32", (_rows(call), _targets(call)))]


def _emit_regressor(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    return transformed(emit, call, _scores(emit, call, inputs[0]))


def _classifier(call: Call) -> list[TensorType]:
    return [("int64", (_rows(call),)), ("float32", (_rows(call), max(_targets(call), 2)))]


def _emit_classifier(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    labels, count = labels_of(call, "classlabels_ints"), _targets(call)
    scores = _scores(emit, call, inputs[0])
    if count == 1 and len(labels) == 2:
        raise UnsupportedError(
            f"{call.operator}: one row of coefficients for two labels is not supported; "
            "export a row for each label"
        )
    if len(labels) != count:
        raise ShapeError(f"{len(labels)} labels do not fit {count} rows of coefficients")
    best = emit.emit("ArgMax", scores, axis=1, keepdims=0)
    label = emit.emit("Gather", emit.constant(list(labels), "int64"), best, axis=0)
    return label, transformed(emit, call, scores)


_LINEAR = {
    "coefficients": Attribute("floats", required=True),
    "intercepts": Attribute("floats"),
    "post_transform": text("NONE"),
}
SPECS = [
    operator(
        "LinearRegressor",
        "X",
        "Y",
        _regressor,
        {**_LINEAR, "targets": integer(1)},
        domain=DOMAIN,
        decompose=_emit_regressor,
        determinism=CHAIN,
        doc="X @ coefficients.T + intercepts.",
    ),
    operator(
        "LinearClassifier",
        "X",
        "Y Z",
        _classifier,
        {
            **_LINEAR,
            "multi_class": integer(0),
            "classlabels_ints": integers(),
            "classlabels_strings": Attribute("strings"),
        },
        domain=DOMAIN,
        decompose=_emit_classifier,
        determinism=CHAIN,
        doc="The label of the greatest of X @ coefficients.T + intercepts, and the scores.",
    ),
]
