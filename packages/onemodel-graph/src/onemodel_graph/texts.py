"""Tensors of strings: passed on, compared, looked up and normalised, as numbers that stand for them.

A session gives each text of its model a code; texts that only a run brings get codes of their own,
which end with it. Everything between the inputs and the outputs works on ``int64`` codes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from onemodel_graph.ir import Graph, Node, Value
from onemodel_graph.passes.pipeline import copy
from onemodel_graph.planning.checks import reading
from onemodel_graph.planning.numbers import tensor
from onemodel_graph.planning.steps import TEXT
from onemodel_graph.text_data import unpacked
from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, ShapeError

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


class Texts:
    """Codes of texts: those of the model for good, others for the run that brings them."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._run = threading.local()

    def constant(self, text: str) -> int:
        """The code of a text of the model."""
        code = self._codes.setdefault(text, len(self._texts))
        if code == len(self._texts):
            self._texts.append(text)
        return code

    @property
    def running(self) -> bool:
        """Whether this thread is in a run."""
        return self._run.__dict__.get("codes") is not None

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """A run of this thread; what it brought is forgotten afterwards."""
        before = self._run.__dict__.get("texts"), self._run.__dict__.get("codes")
        self._run.texts, self._run.codes = [], {}
        try:
            yield
        finally:
            self._run.texts, self._run.codes = before

    def code(self, text: str) -> int:
        """The code of a text in this run: at least 0 for those of the model."""
        found = self._codes.get(text)
        if found is None:
            found = self._run.codes.setdefault(text, -1 - len(self._run.texts))
            if found == -1 - len(self._run.texts):
                self._run.texts.append(text)
        return found

    def encode(self, texts: Sequence[str], shape: Sequence[int]) -> Array:
        """The codes of texts in row-major order."""
        flat: Array = tensor([self.code(text) for text in texts], "int64")
        return flat.view_or_copy(tuple(shape)) if len(shape) != 1 else flat

    def decode(self, codes: Array) -> list[str]:
        """The texts of codes in row-major order."""
        flat = codes.contiguous().view_or_copy((codes.size,)).tolist()
        return [self._texts[c] if c >= 0 else self._run.texts[-1 - c] for c in flat]

    def given(self, value: Any, where: str) -> Array:
        """The codes of an input: an array or nested lists of ``str`` (or UTF-8 ``bytes``)."""
        import numpy

        array = numpy.asarray(value, dtype=None if isinstance(value, numpy.ndarray) else object)
        texts = [t.decode() if isinstance(t, bytes) else t for t in array.ravel().tolist()]
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None or isinstance(value, Array):
            raise DtypeError(f"{where}: expected strings, got {type(wrong or value).__name__}")
        return self.encode(texts, array.shape)

    def shown(self, codes: Array) -> Any:
        """The texts of an output, as a numpy array of ``object``."""
        import numpy

        found = numpy.empty(codes.size, object)
        found[:] = self.decode(codes)
        return found.reshape(codes.shape)


def labelled(scores: Array, labels: Sequence[Any]) -> list[dict[Any, float]]:
    """What ZipMap makes of scores ``(N, labels)``: a dict for each row."""
    if scores.ndim not in (1, 2) or scores.shape[-1] != len(labels):
        raise ShapeError(f"ZipMap: expected scores of shape (N, {len(labels)}), got {scores.shape}")
    rows = scores.tolist() if scores.ndim == 2 else [scores.tolist()]
    return [dict(zip(labels, row, strict=True)) for row in rows]


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
