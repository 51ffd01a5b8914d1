"""Names the place that an operator is missing from: kernel, facts, cases, eager function, lowering.

    python tools/check_operators.py

An operator passes through five places (see CONTRIBUTING.md). This looks at the installed packages
and reports every name that is in one of them and should be, but is not, in another.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onemodel_tensors
import onemodel_training
from onemodel_kernels import Kernel, ops
from onemodel_kernels.testing import every_case
from onemodel_trace.lowerings import registry

#: The functions of onemodel_tensors.apply whose first argument names the operator of a record.
RECORDING = {"apply", "recorded", "recorded_outputs", "recorded_view"}

#: What the graph layer answers from shapes or attributes, without a kernel.
ANSWERED_BY_THE_PLANNER = {"Constant", "Shape", "Size"}


@dataclass(frozen=True)
class Operators:
    """The names that each place knows."""

    kernels: frozenset[str]
    facts: dict[str, ops.OpSpec]
    cases: frozenset[str]
    recorded: frozenset[str]
    mentioned: frozenset[str]
    trained: frozenset[str]
    lowered: frozenset[str]
    refused: frozenset[str]
    emitted: frozenset[str] = frozenset()


def emissions(package: Path) -> set[str]:
    """The kernels that the facts of other operators are written with."""
    found: set[str] = set()
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                first = node.args[0]
                named = isinstance(first, ast.Constant) and isinstance(first.value, str)
                if node.func.attr == "kernel" and named:
                    found.add(str(first.value))
    return found


def literals(package: Path) -> tuple[set[str], set[str]]:
    """The operators that a package records by name, and every string that its sources hold."""
    recorded: set[str] = set()
    mentioned: set[str] = set()
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                mentioned.add(node.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                named = isinstance(first, ast.Constant) and isinstance(first.value, str)
                if node.func.id in RECORDING and named:
                    recorded.add(str(first.value))
    return recorded, mentioned


def collect() -> Operators:
    """The names in the installed packages."""
    recorded, mentioned = literals(Path(onemodel_tensors.__path__[0]))
    _, trained = literals(Path(onemodel_training.__path__[0]))
    return Operators(
        kernels=frozenset(Kernel.names()),
        facts={spec.name: spec for spec in ops.all()},
        cases=frozenset(case.operator for _, case in every_case()),
        recorded=frozenset(recorded),
        mentioned=frozenset(mentioned),
        trained=frozenset(trained),
        lowered=frozenset(registry.names()),
        refused=frozenset(registry.refused()),
        emitted=frozenset(emissions(Path(ops.__path__[0]))),
    )


def problems(known: Operators) -> Iterator[str]:
    """One sentence for each missing place."""
    for name, spec in known.facts.items():
        # An operator that keeps the order of its elements is planned as a view and may need no kernel.
        if spec.kernel is not None and spec.kernel not in known.kernels and not spec.in_shape:
            yield (
                f"{name}: its facts name the kernel {spec.kernel}, which is not registered: "
                "write it in crates/kernels/src/kernels/<family>.rs"
            )
        if not (spec.kernel or spec.decompose or spec.dynamic or name in ANSWERED_BY_THE_PLANNER):
            yield (
                f"{name}: its facts in onemodel_kernels/ops/ have neither a kernel nor a "
                "decomposition"
            )
    used = {spec.kernel for spec in known.facts.values()}
    for name in sorted(known.kernels - used - known.emitted - known.mentioned - known.trained):
        # The gradient of an operator is often called by the name that its own gives it.
        if name.removesuffix("Grad") in known.mentioned:
            continue
        yield (
            f"{name}: a kernel that nothing uses: state its facts in onemodel_kernels/ops/<family>.py, "
            "or call it from onemodel_tensors/ops/<family>.py"
        )
    for name in sorted(known.kernels - known.cases):
        # Gradients are checked by finite differences on the cases of their operator.
        if name.removesuffix("Grad") in known.cases:
            continue
        yield f"{name}: a kernel without cases: add them in onemodel_kernels/testing/cases/<family>.py"
    for name in sorted(known.recorded - known.lowered - known.refused):
        spec = known.facts.get(name)
        written = spec is not None and not spec.domain
        if not written and registry.refusal(name) is None:
            yield (
                f"{name}: onemodel_tensors records it, but it is no ONNX operator and has no lowering: "
                "add it in onemodel_trace/lowerings/<family>.py, or refuse it by name there"
            )
    for name in sorted(known.lowered - known.mentioned):
        yield f"{name}: a lowering in onemodel_trace/lowerings/ of what onemodel_tensors never records"


def main() -> int:
    """Print the problems; 0 when there are none."""
    found = list(problems(collect()))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
