"""Tensors of strings: passed on, compared, looked up and normalised, as numbers that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.pipeline import copy
from onemodel_graph.planning.checks import reading
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.steps import TEXT
from onemodel_graph.text_data import unpacked
from onemodel_graph.texts import Texts
from onemodel_kernels import Array

STRING = "string"
ML = "ai.onnx.ml"
PASSED = frozenset({
    "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity",
    "Reshape", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze",
})  # fmt: skip
"""Operators whose results hold elements of their first input."""
READ = frozenset({"Equal", "Shape", "Size"})
"""Operators that take texts and give something else."""
MADE = {
    "RegexFullMatch": "",
    "StringConcat": STRING,
    "StringNormalizer": STRING,
    "StringSplit": STRING,
}
"""Operators on texts, and what their first result holds."""
LABELS = ("classlabels_strings", "cats_strings", "keys_strings", "values_strings", "pool_strings")


@dataclass(slots=True)
class Resolved:
    """A graph without strings.

    Attributes:
        graph: With codes in their place.
        texts: What the codes stand for; ``None`` where the model has no strings.
        outputs: ``"string"``, the labels of a list of dicts, or ``None`` for each output.
    """

    graph: Graph
    texts: Texts | None
    outputs: list[Any] = field(default_factory=list)


def resolve(graph: Graph) -> Resolved:
    """Puts codes in the place of strings; what has no form for strings goes to the domain TEXT."""
    zipped = any(node.operator == "ZipMap" and node.domain == ML for node in graph.nodes)
    if not zipped and not _present(graph):
        return Resolved(graph, None, [None] * len(graph.outputs))
    result = copy(graph)
    labels = _unzipped(result)
    texts = Texts()
    types: set[Value] = set()
    _resolve(result, types, texts)
    kinds = [labels.get(value, STRING if value in types else None) for value in result.outputs]
    return Resolved(result, texts, kinds)


def _present(graph: Graph) -> bool:
    nodes = list(graph.walk())
    bodies = [b for node in nodes for b in node.attributes.values() if isinstance(b, Graph)]
    values = [v for part in (graph, *bodies) for v in (*part.inputs, *part.values.values())]
    values += [v for node in nodes for v in node.outputs if v is not None]
    if any(value.dtype == STRING for value in values):
        return True
    return any(
        node.operator in MADE or any(node.attributes.get(name) for name in LABELS) for node in nodes
    )


def _unzipped(graph: Graph) -> dict[Value, Any]:
    """Outputs that were a ZipMap's are its input; the labels of each."""
    found: dict[Value, Any] = {}
    kept = []
    for node in graph.nodes:
        made = node.outputs[0] if node.outputs else None
        source = node.inputs[0] if node.inputs else None
        labels = node.attributes.get("classlabels_strings") or node.attributes.get(
            "classlabels_int64s"
        )
        whole = node.operator == "ZipMap" and node.domain == ML and made in graph.outputs
        if not whole or source is None or not isinstance(labels, tuple):
            kept.append(node)
            continue
        graph.outputs = [source if value is made else value for value in graph.outputs]
        found[source] = labels
    graph.nodes = kept
    return found


def _resolve(graph: Graph, types: set[Value], texts: Texts) -> None:
    types.update(value for value in graph.inputs if value.dtype == STRING)
    for name, value in graph.values.items():
        if value.dtype == STRING:
            found = unpacked(graph.initializers[name])
            graph.initializers[name] = _codes(found, value.shape, texts)
            types.add(value)
    for node in graph.nodes:
        bodies = [body for body in node.attributes.values() if isinstance(body, Graph)]
        for body in bodies:
            _resolve(body, types, texts)
        with reading(node):
            if node.operator == "Constant" and not node.domain and node.outputs:
                _constant(node, types, texts)
            if _is_text(node, bodies, types, texts):
                types.update(value for value in node.outputs[:1] if value is not None)


def _codes(found: Sequence[str], shape: tuple[Any, ...] | None, texts: Texts) -> Array:
    """The codes of texts of the model."""
    array = tensor([texts.constant(text) for text in found], "int64")
    return array if shape is None or len(shape) == 1 else array.view_or_copy(shape)


def _constant(node: Node, types: set[Value], texts: Texts) -> None:
    value = node.outputs[0]
    found = node.attributes.get("value_strings", node.attributes.get("value_string"))
    if value is not None and found is not None:
        listed = [found] if isinstance(found, str) else found
        node.attributes = {"value": _codes(listed, value.shape, texts)}
        types.add(value)


def _is_text(node: Node, bodies: list[Graph], types: set[Value], texts: Texts) -> bool:
    """Whether a node's first result holds texts; the node works on codes afterwards."""
    name = node.operator
    read = [value in types for value in node.inputs if value is not None]
    if node.domain == ML:
        return _labels(node, any(read), texts)
    if name in MADE and not node.domain:
        node.domain = TEXT
        return MADE[name] == STRING
    if name == "If" and any(value in types for body in bodies for value in body.outputs):
        return True
    if not any(read):
        return False
    if node.domain or bodies:
        node.domain = TEXT
    elif name in PASSED and read[0]:
        if name == "Split":
            types.update(value for value in node.outputs if value is not None)
        return True
    elif name == "Where" and read == [False, True, True]:
        return True
    elif name == "Cast" and node.attributes.get("to") == STRING:
        node.operator, node.attributes = "Identity", {}
        return True
    elif name not in READ:
        node.domain = TEXT
    return False


def _labels(node: Node, read: bool, texts: Texts) -> bool:
    """Attributes of texts become attributes of codes."""
    attributes = node.attributes

    def coded(name: str, into: str) -> bool:
        found = attributes.pop(name, None)
        if not found:
            return False
        attributes[into] = tuple(texts.constant(text) for text in found)
        return True

    name = node.operator
    if name in ("LinearClassifier", "SVMClassifier"):
        return coded("classlabels_strings", "classlabels_ints")
    if name == "TreeEnsembleClassifier":
        return coded("classlabels_strings", "classlabels_int64s")
    looked_up = {"LabelEncoder": "keys_strings", "OneHotEncoder": "cats_strings"}.get(name)
    if looked_up is not None and read != bool(attributes.get(looked_up)):
        node.domain = TEXT if read else node.domain
        return False
    if name == "LabelEncoder":
        coded("keys_strings", "keys_int64s")
        made = coded("values_strings", "values_int64s")
        default = attributes.pop("default_string", "_Unused")
        if made:
            attributes["default_int64"] = texts.constant(default)
        return made
    if name == "OneHotEncoder":
        coded("cats_strings", "cats_int64s")
        return False
    if name == "ArrayFeatureExtractor":
        return read
    if read:
        node.domain = TEXT
    return False
