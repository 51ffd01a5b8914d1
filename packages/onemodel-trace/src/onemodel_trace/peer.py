"""ONNX Runtime on the file that a trace writes, where it is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from onemodel_kernels import Array

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor
    from onemodel_trace.traced_model import TracedModel

PEER_TOLERANCE = 1e-4
"""Greatest scaled difference to ONNX Runtime, which orders the sums of whole networks in its own way."""


class Peer:
    """A session of ONNX Runtime on one thread.

    Args:
        session: Its inference session.
    """

    def __init__(self, session: Any) -> None:
        self._session = session

    @classmethod
    def of(cls, model: TracedModel) -> Peer | None:
        """The session for a model; None where ONNX Runtime is not installed or lacks a kernel.

        An operator of one's own is there only with the function that ``register_function`` took.

        Raises:
            MemoryLimitError: The model does not fit one protobuf message.
        """
        if find_spec("onnxruntime") is None:
            return None
        from onemodel_graph.onnx_io.functions import without_function

        if without_function(model.graph):
            return None
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        content = model.to_onnx().SerializeToString()
        try:
            return cls(
                runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            )
        except (runtime.capi.onnxruntime_pybind11_state.NotImplemented, RuntimeError) as error:
            # It has no kernels of float64 for many functions, and none of bfloat16.
            if "NOT_IMPLEMENTED" in str(error):
                return None
            raise

    def run(
        self, names: Sequence[str], inputs: Sequence[Tensor], sizes: Mapping[str, int]
    ) -> list[Array] | None:
        """The outputs; None where an axis is empty, which ends the process in some of its kernels."""
        if 0 in sizes.values():
            return None
        feed = {
            name: tensor._array.contiguous().numpy()
            for name, tensor in zip(names, inputs, strict=True)
        }
        return [Array.from_numpy(value) for value in self._session.run(None, feed)]
