"""Functions of registered operators: written with the model, run as kernels, refused when wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onemodel_graph import GraphBuilder, Session, register_function, save_onnx, to_onnx
from onemodel_graph.ir import Graph
from onemodel_kernels.errors import UnsupportedError, UsageError
from onemodel_kernels.extension import register
from onemodel_kernels.ops import Attribute, InputSpec, OpSpec

BODY = """
<opset_import: ["": 20], domain: "test.functions">
Triple <times: float = 3.0> (x) => (y) {
    number = Constant <value_float: float = @times> ()
    y = Mul (x, number)
}
"""
CALLS: list[tuple[int, ...]] = []


def _triple(x: Any, times: float) -> Any:
    CALLS.append(x.shape)
    return x.numpy() * np.float32(times)


def _facts(name: str) -> OpSpec:
    return OpSpec(
        name,
        inputs=(InputSpec("x"),),
        outputs=(InputSpec("y"),),
        rule=lambda call: [(call.dtype(), call.shape())],
        attributes={"times": Attribute("float", 3.0)},
        domain="test.functions",
    )


register(_facts("Triple"), _triple)
register_function(BODY)


def _graph() -> Graph:
    builder = GraphBuilder()
    x = builder.add_input("x", "float32", ("n",))
    (y,) = builder.add_node(
        "Triple", [x], attributes={"times": 4.0}, domain="test.functions",
        types=[("float32", ("n",))],
    )  # fmt: skip
    builder.add_output(y)
    return builder.build()


def test_a_saved_model_carries_the_function_and_is_valid() -> None:
    proto = to_onnx(_graph())
    assert [(f.domain, f.name) for f in proto.functions] == [("test.functions", "Triple")]
    onnx.checker.check_model(proto, full_check=True)


def test_a_session_runs_the_kernel_and_not_the_body(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save_onnx(_graph(), path)
    CALLS.clear()
    (y,) = Session(path, "exact").run(np.ones(5, np.float32))
    assert y.tolist() == [4.0] * 5
    assert CALLS == [(5,)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("no function", UsageError, "not an ONNX function"),
        (BODY, UsageError, "has a function already"),
        (BODY.replace("Triple", "Nobody"), UsageError, "register it first"),
        (BODY.replace("(x)", "(z)").replace("Triple", "Other"), UsageError, r"inputs \['x'\]"),
        (
            BODY.replace("times: float", "rate: float").replace("Triple", "Other"),
            UsageError,
            r"attributes \['times'\]",
        ),
        (BODY.replace("20", "9").replace("Triple", "Other"), UnsupportedError, '"" : 20'),
        (
            BODY.replace("Mul", "Multiply").replace("Triple", "Other"),
            UnsupportedError,
            "ai.onnx::Multiply",
        ),
    ],
)
def test_what_does_not_fit_the_facts_is_refused(
    text: str, error: type[Exception], message: str
) -> None:
    from onemodel_kernels import ops

    if not ops.registered("Other", "test.functions"):
        register(_facts("Other"), _triple)
    with pytest.raises(error, match=message):
        register_function(text)
