"""ONNX's own backend suite, as it ships in the ``onnx`` wheel, run through a session.

    python suite.py [--mode exact] [--filter REGEX] [--failures]

prints how many cases pass, by group and opset, and by operator where one fails.
"""

from __future__ import annotations

import argparse
import collections
import functools
import glob
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from onemodel_graph import Session
from onemodel_kernels.errors import UnsupportedError

#: Groups in the order in which a case is given to the first that fits.
LOW_BIT = re.compile("FLOAT8|FLOAT4|E8M0|INT4|INT2")
RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
}
STRINGS = {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch"}
CONTAINERS = {"ConcatFromSequence", "SplitToSequence"}
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class SuiteCase:
    """One case: a model with inputs and the outputs that are expected."""

    name: str
    kind: str
    group: str
    operator: str
    opset: int
    model: bytes
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


def _types(proto: Any, types: set[str], containers: set[str]) -> None:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        types.add(onnx.TensorProto.DataType.Name(proto.tensor_type.elem_type))
    elif kind is not None:
        containers.add(kind)
        inner = getattr(getattr(proto, kind), "elem_type", None)
        if inner is not None and not isinstance(inner, int):
            _types(inner, types, containers)


def _look(
    graph: Any, types: set[str], containers: set[str], operators: set[tuple[str, str]]
) -> None:
    names = onnx.TensorProto.DataType
    for value in [*graph.input, *graph.output, *graph.value_info]:
        _types(value.type, types, containers)
    types.update(names.Name(tensor.data_type) for tensor in graph.initializer)
    for node in graph.node:
        _look_node(node, types, containers, operators)


def _look_node(
    node: Any, types: set[str], containers: set[str], operators: set[tuple[str, str]]
) -> None:
    names = onnx.TensorProto.DataType
    operators.add((node.domain, node.op_type))
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            types.add(names.Name(attribute.t.data_type))
        elif attribute.type == onnx.AttributeProto.GRAPH:
            _look(attribute.g, types, containers, operators)
        elif attribute.type == onnx.AttributeProto.TYPE_PROTO:
            _types(attribute.tp, types, containers)
        if attribute.name in ("to", "dtype", "output_dtype", "output_datatype") and attribute.i:
            types.add(names.Name(attribute.i))


def group_of(model: Any) -> str:
    """The group of a model: what a runtime must hold to run it."""
    types: set[str] = set()
    containers: set[str] = set()
    operators: set[tuple[str, str]] = set()
    _look(model.graph, types, containers, operators)
    for function in model.functions:
        for node in function.node:
            _look_node(node, types, containers, operators)
    names = {name for _, name in operators}
    domains = {domain for domain, _ in operators}
    if any("training" in domain or "preview" in domain for domain in domains):
        return "training"
    if "ai.onnx.ml" in domains:
        return "ai.onnx.ml"
    if (
        containers
        or names & CONTAINERS
        or any(n.startswith(("Sequence", "Optional")) for n in names)
    ):
        return "sequence"
    if "STRING" in types or names & STRINGS:
        return "string"
    if any(LOW_BIT.search(name) and name not in ("UINT8", "INT8") for name in types):
        return "low bit"
    if "BFLOAT16" in types:
        return "bfloat16"
    if "ImageDecoder" in names:
        return "image"
    if names & RANDOM:
        return "random"
    if types & {"FLOAT16", "DOUBLE"}:
        return "float16 and float64"
    return "core"


def _load(path: str, kind: Any) -> Any:
    data = Path(path).read_bytes()
    if kind.HasField("sequence_type"):
        sequence = onnx.SequenceProto.FromString(data)
        return numpy_helper.to_list(sequence)
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _plain(value: Any) -> Any:
    value = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    return np.asarray(value) if isinstance(value, np.generic) else value


def _case(entry: Any, kind: str, model: Any, data_sets: list[Any]) -> SuiteCase:
    opset = max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=0)
    main = [n for n in model.graph.node if n.op_type not in ("Constant", "Identity")]
    first = (main or list(model.graph.node))[0]
    operator = first.op_type if kind == "node" else f"<{kind}>"
    return SuiteCase(
        entry.name, kind, group_of(model), operator, opset, model.SerializeToString(), data_sets,
        entry.rtol, entry.atol,
    )  # fmt: skip


@functools.cache
def load() -> tuple[SuiteCase, ...]:
    """Every case that the wheel brings, the nine light models included."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries = [(kind, entry) for kind in KINDS for entry in load_model_tests(kind=kind)]
    for kind, entry in entries:
        if entry.model is not None:
            sets = [([_plain(x) for x in i], [_plain(x) for x in o]) for i, o in entry.data_sets]
            found.append(_case(entry, kind, entry.model, sets))
            continue
        model = onnx.load(f"{entry.model_dir}/model.onnx")
        sets = []
        for folder in sorted(glob.glob(f"{entry.model_dir}/test_data_set*")):
            given = len(glob.glob(f"{folder}/input_*.pb"))
            wanted = len(glob.glob(f"{folder}/output_*.pb"))
            sets.append((
                [_load(f"{folder}/input_{k}.pb", model.graph.input[k].type) for k in range(given)],
                [_load(f"{folder}/output_{k}.pb", model.graph.output[k].type) for k in range(wanted)],
            ))  # fmt: skip
        found.append(_case(entry, kind, model, sets))
    base = Path(onnx.__file__).parent.parent
    for entry in load_model_tests(kind="real"):
        path = base / (entry.url or "")
        if "backend/test/data/light/" not in (entry.url or "") or not path.exists():
            continue
        model = onnx.load(path)
        own = {tensor.name for tensor in model.graph.initializer}
        free = [value for value in model.graph.input if value.name not in own]
        given = [Runner.generate_dummy_data(value, name=entry.model_name) for value in free]
        wanted = [
            _load(f"{str(path)[:-5]}_output_{k}.pb", value.type)
            for k, value in enumerate(model.graph.output)
        ]
        found.append(_case(entry, "light", model, [(given, wanted)]))
    return tuple(found)


def _widened(wanted: Any, got: Any) -> tuple[Any, Any]:
    """Both in float32, which holds them, where one of ml_dtypes' types is as wanted.

    NumPy compares these with numbers of its own from version 2 on only.
    """
    kinds = [getattr(value, "dtype", None) for value in (wanted, got)]
    if kinds[0] is None or kinds[0] != kinds[1] or kinds[0].type.__module__ != "ml_dtypes":
        return wanted, got
    return wanted.astype(np.float32), got.astype(np.float32)


def run(case: SuiteCase, mode: str = "fast") -> tuple[str, str]:
    """(``pass``, ``unsupported``, ``wrong`` or ``error``; what went wrong)."""
    try:
        session = Session(case.model, mode=mode)
        results = [session.run(*inputs) for inputs, _ in case.data_sets]
    except UnsupportedError as error:
        return "unsupported", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    try:
        for (_, wanted), got in zip(case.data_sets, results, strict=True):
            pairs = [_widened(*pair) for pair in zip(wanted, got, strict=True)]
            Runner.assert_similar_outputs(
                [pair[0] for pair in pairs], [pair[1] for pair in pairs],
                rtol=case.rtol, atol=case.atol,
            )  # fmt: skip
    except Exception as error:
        return "wrong", " ".join(str(error).split())
    return "pass", ""


def span(case: SuiteCase) -> str:
    """The span of opsets that a case counts for."""
    if case.opset <= 20:
        return "opset to 20"
    return "opset 21 to 26" if case.opset <= 26 else "opset from 27"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="fast", choices=["fast", "exact"])
    parser.add_argument("--filter", default="", help="a regular expression on case names")
    parser.add_argument("--failures", action="store_true", help="list every failed case")
    options = parser.parse_args()
    chosen = [case for case in load() if re.search(options.filter, case.name)]
    groups: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    operators: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failures = []
    for number, case in enumerate(chosen):
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(chosen)}", end="", file=sys.stderr)
        status, text = run(case, options.mode)
        groups[case.group, span(case)][status] += 1
        operators[case.operator][status] += 1
        if status != "pass":
            failures.append((case, status, text))
    statuses = ("pass", "wrong", "unsupported", "error")
    print(f"\n{'group':22s} {'':15s} {'cases':>6s}" + "".join(f"{s:>13s}" for s in statuses))
    for (group, opsets), counts in sorted(groups.items()):
        row = "".join(f"{counts[s]:13d}" for s in statuses)
        print(f"{group:22s} {opsets:15s} {sum(counts.values()):6d}{row}")
    print(f"\n{'operator':38s} {'cases':>6s}" + "".join(f"{s:>13s}" for s in statuses))
    for operator, counts in sorted(operators.items()):
        if counts["pass"] != sum(counts.values()):
            row = "".join(f"{counts[s]:13d}" for s in statuses)
            print(f"{operator:38s} {sum(counts.values()):6d}{row}")
    if options.failures:
        for case, status, text in failures:
            print(f"{case.name} {status}: {text[:300]}")


if __name__ == "__main__":
    main()
