"""Small ONNX models for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[Any, Any]],
    outputs: list[str],
    initializers: dict[str, np.ndarray] | None = None,
    opset: int = 20,
    **more: Any,
) -> onnx.ModelProto:
    """A model; inputs are name → (numpy dtype, shape)."""
    graph = helper.make_graph(
        nodes,
        "test",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(d)), s)
            for n, (d, s) in inputs.items()
        ],
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, **more)


def node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    """A node."""
    return helper.make_node(operator, inputs, outputs, **attributes)


FLOAT = TensorProto.FLOAT
