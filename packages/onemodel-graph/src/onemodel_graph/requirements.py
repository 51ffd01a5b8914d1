"""What a session asks of a model before it takes it."""

from __future__ import annotations

from onemodel_graph.ir import Graph
from onemodel_graph.planning.slot import SIZES
from onemodel_graph.planning.steps import Prepared
from onemodel_kernels.errors import UnsupportedError
from onemodel_kernels.ops.narrow import HELD


def require_dtypes(graph: Graph) -> None:
    """Raises ``UnsupportedError`` naming every input of a type that a run cannot be given."""
    known = {*SIZES, *HELD, "sequence", "optional", "string", None}
    wrong = [repr(value) for value in graph.inputs if value.dtype not in known]
    if wrong:
        raise UnsupportedError(
            f"{graph.name}: inputs of these types are not supported: {', '.join(wrong)}"
        )


def require_exact(prepared: Prepared) -> None:
    """Raises ``UnsupportedError`` naming every node whose operator has no exact kernel."""
    missing: list[str] = []

    def visit(part: Prepared) -> None:
        for step in part.steps:
            if step.spec is not None and not step.spec.exact:
                missing.append(step.node.label)
            for body in step.bodies.values():
                visit(body)

    visit(prepared)
    if missing:
        listed = "\n  ".join(missing)
        raise UnsupportedError(
            f"exact mode: {len(missing)} node(s) use operators without an exact kernel:\n  {listed}\n"
            "run the model with mode='fast', or replace them"
        )
