"""Features of the domain ``ai.onnx.ml``: what stands before and behind its models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError, UnsupportedError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.classical import DOMAIN, require_features
from onemodel_kernels.ops.rules import operator, same
from onemodel_kernels.ops.spec import (
    Attribute,
    Call,
    Emitter,
    TensorType,
    integer,
    integers,
    real,
    text,
)

NORMS = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}


def _normalizer(call: Call) -> list[TensorType]:
    require_features(call)
    if call["norm"] not in NORMS:
        raise AttributeValueError(f"norm must be one of {', '.join(NORMS)}, not {call['norm']!r}")
    return [("float32", call.shape())]


def _emit_normalizer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    _normalizer(call)
    x = emit.emit("Cast", inputs[0], to="float32")
    norm = emit.emit(NORMS[call["norm"]], x, axes=(-1,), keepdims=1)
    zero = emit.emit("Equal", norm, emit.constant(0.0, "float32"))
    return emit.emit("Div", x, emit.emit("Where", zero, emit.constant(1.0, "float32"), norm))


def _emit_binarizer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    dtype = call.dtype()
    above = emit.emit("Greater", inputs[0], emit.constant(call["threshold"], dtype))
    return emit.emit("Cast", above, to=dtype)


def _imputer(call: Call) -> list[TensorType]:
    require_features(call)
    name = "imputed_value_floats" if call.dtype().startswith("float") else "imputed_value_int64s"
    given, width = call[name], call.shape()[-1] if call.rank() else 1
    if not given or len(given) not in (1, width):
        raise ShapeError(f"{name} must have 1 or {width} numbers for X {call.shape()}")
    return same(call)


def _emit_imputer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    _imputer(call)
    x, dtype = inputs[0], call.dtype()
    floats = dtype.startswith("float")
    stand_in = call["imputed_value_floats" if floats else "imputed_value_int64s"]
    wanted = call["replaced_value_float" if floats else "replaced_value_int64"]
    if floats and wanted != wanted:
        missing = emit.emit("IsNaN", x)
    else:
        missing = emit.emit("Equal", x, emit.constant(wanted, dtype))
    return emit.emit("Where", missing, emit.constant(list(stand_in), dtype), x)


def _extractor(call: Call) -> list[TensorType]:
    if not call.rank():
        raise ShapeError("X needs an axis of features")
    rows = call.shape()[:-1] if call.rank() > 1 else (1,)
    return [(call.dtype(), (*rows, extents.product(call.shape(1))))]


def _emit_extractor(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    ((_, shape),) = _extractor(call)
    index = emit.emit("Reshape", inputs[1], shape=(-1,))
    taken = emit.emit("Gather", inputs[0], index, axis=-1)
    return emit.emit("Reshape", taken, shape=shape)


def _vectorizer(call: Call) -> list[TensorType]:
    rows = call.shape()[0]
    return [("float32", (rows, extents.total([shape[-1] for shape in call.shapes if shape])))]


def _emit_vectorizer(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    parts = []
    for index, value in enumerate(inputs):
        part = emit.emit("Cast", value, to="float32")
        if call.rank(index) == 1:
            part = emit.emit("Unsqueeze", part, axes=(0,))
        parts.append(part)
    return emit.emit("Concat", *parts, axis=1)


_KINDS = {"int64s": "int64", "floats": "float32"}


def _encoding(call: Call) -> tuple[str, str]:
    """The kinds of keys and of values of a LabelEncoder."""
    keys = [kind for kind in _KINDS if call[f"keys_{kind}"]]
    values = [kind for kind in _KINDS if call[f"values_{kind}"]]
    if len(keys) != 1 or len(values) != 1:
        raise UnsupportedError(
            "LabelEncoder: keys and values that are no numbers are not supported"
        )
    if len(call[f"keys_{keys[0]}"]) != len(call[f"values_{values[0]}"]):
        raise AttributeValueError("LabelEncoder: it needs a value for each key")
    return keys[0], values[0]


def _encoder(call: Call) -> list[TensorType]:
    return [(_KINDS[_encoding(call)[1]], call.shape())]


def _emit_encoder(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    keys, values = _encoding(call)
    default = {"int64s": call["default_int64"], "floats": call["default_float"]}[values]
    x = emit.emit("Unsqueeze", inputs[0], axes=(call.rank(),))
    known = emit.constant(list(call[f"keys_{keys}"]), call.dtype())
    hit = emit.emit("Cast", emit.emit("Equal", x, known), to="int32")
    place = emit.emit("ArgMax", hit, axis=-1, keepdims=0)
    found = emit.emit("ReduceMax", hit, axes=(-1,), keepdims=0)
    table = emit.constant(list(call[f"values_{values}"]), _KINDS[values])
    value = emit.emit("Gather", table, place, axis=0)
    there = emit.emit("Cast", found, to="bool")
    return emit.emit("Where", there, value, emit.constant(default, _KINDS[values]))


def _one_hot(call: Call) -> list[TensorType]:
    if not call["cats_int64s"]:
        raise UnsupportedError("OneHotEncoder: categories that are texts are not supported")
    return [("float32", (*call.shape(), len(call["cats_int64s"])))]


def _emit_one_hot(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    _one_hot(call)
    x = emit.emit("Cast", inputs[0], to="int64")
    wide = emit.emit("Unsqueeze", x, axes=(call.rank(),))
    known = emit.constant(list(call["cats_int64s"]), "int64")
    return emit.emit("Cast", emit.emit("Equal", wide, known), to="float32")


def _own(name: str, inputs: str, rule: Any, decompose: Any, attributes: Any, doc: str) -> Any:
    return operator(
        name, inputs, "Y", rule, attributes, domain=DOMAIN, decompose=decompose, doc=doc
    )


SPECS = [
    _own(
        "Normalizer", "X", _normalizer, _emit_normalizer, {"norm": text("MAX")},
        "Each row over its greatest number, its 1-norm or its 2-norm; rows of zeros stay.",
    ),
    _own(
        "Binarizer", "X", same, _emit_binarizer, {"threshold": real(0.0)},
        "1 above the threshold, else 0.",
    ),
    _own(
        "Imputer", "X", _imputer, _emit_imputer,
        {
            "imputed_value_floats": Attribute("floats"),
            "imputed_value_int64s": integers(),
            "replaced_value_float": real(0.0),
            "replaced_value_int64": integer(0),
        },
        "A number (or NaN) that stands for a missing one is replaced, feature by feature.",
    ),
    _own(
        "ArrayFeatureExtractor", "X Y", _extractor, _emit_extractor, {},
        "The features at these places of the last axis.",
    ),
    _own(
        "FeatureVectorizer", "X*", _vectorizer, _emit_vectorizer, {"inputdimensions": integers()},
        "All inputs beside each other, as float32.",
    ),
    _own(
        "LabelEncoder", "X", _encoder, _emit_encoder,
        {
            "keys_int64s": integers(),
            "keys_floats": Attribute("floats"),
            "keys_strings": Attribute("strings"),
            "values_int64s": integers(),
            "values_floats": Attribute("floats"),
            "values_strings": Attribute("strings"),
            "default_int64": integer(-1),
            "default_float": real(-0.0),
            "default_string": text("_Unused"),
        },
        "The value of each key; a default where there is none.",
    ),
    _own(
        "OneHotEncoder", "X", _one_hot, _emit_one_hot,
        {
            "cats_int64s": integers(),
            "cats_strings": Attribute("strings"),
            "zeros": integer(1),
        },
        "A row of zeros with a one at the place of the category.",
    ),
]  # fmt: skip
