"""Runs a case: on the native kernel, on ONNX Runtime, and as a hash of bits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from onemodel_kernels import Array, Kernel
from onemodel_kernels.testing.case import Case, Tensor


def native(case: Case, inputs: Sequence[Tensor | None] | None = None) -> list[Tensor]:
    """The outputs of the native kernel."""
    given = case.inputs if inputs is None else inputs
    arrays = [None if a is None else Array.from_numpy(a, copy=False) for a in given]
    result = Kernel(case.operator, **case.attributes)(*arrays)
    return [np.asarray(out) for out in (result if isinstance(result, tuple) else (result,))]


def inferred(case: Case) -> list[tuple[str, tuple[int, ...]]]:
    """What the native kernel says about its outputs."""
    types = [None if a is None else (a.dtype.name, a.shape) for a in case.inputs]
    found: list[tuple[str, tuple[int, ...]]] = Kernel(case.operator, **case.attributes).infer(types)
    return found


def bits(outputs: Sequence[Tensor]) -> str:
    """A hash of the outputs' bits; every NaN counts as the same."""
    digest = hashlib.sha256()
    for out in outputs:
        plain = np.ascontiguousarray(out)
        if plain.dtype.kind == "f" or plain.dtype.name == "bfloat16":
            plain = np.where(np.isnan(plain), np.array(np.nan, plain.dtype), plain)
        digest.update(f"{plain.dtype.name}{plain.shape}".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()


def onnx_model(case: Case) -> tuple[bytes, dict[str, Tensor]]:
    """A one-node model of a case and its inputs."""
    from onnx import ValueInfoProto, helper, numpy_helper

    from onemodel_kernels import ops

    spec = ops.get(case.onnx_operator or case.operator)
    given = case.attributes if case.onnx_attributes is None else case.onnx_attributes
    attributes = {n: v.item() if isinstance(v, np.generic) else v for n, v in given.items()}
    tensors = iter(case.inputs)
    names: list[str] = []
    inputs = []
    initializers = []
    feeds: dict[str, Tensor] = {}

    def feed(array: Tensor | None) -> None:
        if array is None:
            names.append("")
            return
        name = f"x{len(names)}"
        names.append(name)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        feeds[name] = np.asarray(array)

    for slot in spec.inputs:
        if slot.kind == "operand":
            value = attributes.pop(slot.name, None)
            names.append("" if value is None else slot.name)
            if value is not None:
                initializers.append(numpy_helper.from_array(_operand(value, case), slot.name))
        elif slot.variadic:
            for array in tensors:
                feed(array)
        else:
            feed(next(tensors, None))
    while names and not names[-1]:
        names.pop()
    count = case.outputs or len(case.expected())
    outputs = [f"y{i}" for i in range(count)]
    for name, entry in spec.attributes.items():
        if entry.type == "dtype" and isinstance(attributes.get(name), str):
            attributes[name] = helper.np_dtype_to_tensor_dtype(np.dtype(attributes[name]))
    node = helper.make_node(
        spec.name, names, outputs, **{k: v for k, v in attributes.items() if v is not None}
    )
    infos = [ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "case", inputs, infos, initializers)
    opset = max(20, spec.since_version)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return model.SerializeToString(), feeds


def _operand(value: Any, case: Case) -> Tensor:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, float):
        first = case.inputs[0]
        return np.array(value, np.float32 if first is None else first.dtype)
    if isinstance(value, tuple) and any(isinstance(entry, float) for entry in value):
        return np.array(value, np.float32)
    return np.array(value, np.int64)


def onnxruntime(case: Case) -> list[Tensor]:
    """The outputs of ONNX Runtime; raises when it does not take the model."""
    import onnxruntime as ort

    model, feeds = onnx_model(case)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found: list[Tensor] = session.run(None, feeds)
    return found
