"""What one operator call leaves behind, for the backward pass and for a recorder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onemodel_kernels import Array
from onemodel_kernels.errors import OneModelError

if TYPE_CHECKING:
    from onemodel_tensors.autograd.nodes import Node
    from onemodel_tensors.tensor import Tensor

__all__ = ["Attributes", "BackwardRecord", "Gradient", "Gradients", "overwrites"]

Attributes = dict[str, Any]
"""Attribute values by name: int, float, str, bool, or a tuple of ints or floats; ints may be symbolic sizes."""

Gradients = tuple[Array | None, ...]
"""One gradient for each input of a record; ``None`` where there is none."""

Gradient = Callable[..., Gradients]
"""``gradient(record, *output_gradients) -> one gradient per input``, on arrays.

An output without a gradient gives ``None``. It may return its argument itself, but never an array of ``record.saved``.
"""

_overwriting: set[Gradient] = set()


def overwrites(gradient: Gradient) -> Gradient:
    """Declare that a gradient function writes its result over its only output's gradient where it may.

    It may while :attr:`BackwardRecord.owns_gradient` holds.
    """
    _overwriting.add(gradient)
    return gradient


NO_ATTRIBUTES: Attributes = {}
"""Shared by all records without attributes; never written to."""


class BackwardRecord:
    """One call of one operator.

    Attributes:
        operator: the operator's name. Where the call *is* an ONNX operator of opset 20 this is ONNX's name and
            ``attributes`` are ONNX's (an integer operand that ONNX passes as an input, as the axes of ReduceSum, is an
            attribute under that input's name); otherwise a name of this library.
        inputs: the operands in order, ``None`` for an absent optional one. Filled only while a recorder is handed the
            record: the backward pass needs no tensors, and so does not keep them alive.
        attributes: see ``operator``.
        saved: what the gradient needs: arrays and plain values.
        versions: the storage versions of the arrays in ``saved`` when they were saved.
        gradient: computes the inputs' gradients from the outputs'.
        edges: for each input the autograd node that produced it, or ``None`` when it needs no gradient.
        outputs: the number of outputs.
        hooks: functions to call with the gradient of an output before it is used, by output.
        overwrites: whether the gradient function was declared by :func:`overwrites`.
        owns_gradient: whether nobody else holds the gradient of the only output, so that it may be written over.
    """

    __slots__ = (
        "attributes",
        "edges",
        "gradient",
        "hooks",
        "inputs",
        "operator",
        "outputs",
        "overwrites",
        "owns_gradient",
        "saved",
        "versions",
    )

    def __init__(
        self,
        operator: str,
        inputs: tuple[Tensor | None, ...],
        attributes: Attributes,
        gradient: Gradient | None,
        edges: tuple[Node | None, ...],
        saved: tuple[Any, ...] = (),
        versions: tuple[int, ...] = (),
        outputs: int = 1,
    ) -> None:
        self.operator = operator
        self.inputs = inputs
        self.attributes = attributes
        self.gradient = gradient
        self.overwrites = gradient in _overwriting
        self.owns_gradient = False
        self.edges = edges
        self.saved = saved
        self.versions = versions
        self.outputs = outputs
        self.hooks: dict[int, dict[int, Callable[[Any], Any]]] | None = None

    def needs(self, index: int) -> bool:
        """Whether input ``index`` needs a gradient: a gradient function may return ``None`` where it does not."""
        return self.edges[index] is not None

    def check_versions(self) -> None:
        """Raise when an array that the gradient needs has been written into since it was saved.

        Raises:
            OneModelError: names the operator and both versions.
        """
        position = 0
        for value in self.saved:
            if type(value) is Array:
                if value.version != self.versions[position]:
                    raise OneModelError(
                        f"backward of {self.operator}: expected the tensor of shape {value.shape} and dtype "
                        f"{value.dtype} that its gradient needs to be unchanged since the forward pass (version "
                        f"{self.versions[position]}), but it was written in place (version {value.version}); use the "
                        "out-of-place form of that call, or clone the tensor before it"
                    )
                position += 1

    def release(self) -> None:
        """Drop everything that the record keeps alive; a second backward pass through it is an error."""
        self.gradient = None
        self.edges = ()
        self.saved = ()
        self.versions = ()

    @property
    def released(self) -> bool:
        """Whether a backward pass went through this record without ``retain_graph=True``."""
        return self.gradient is None

    def __repr__(self) -> str:
        attributes = "".join(f", {name}={value!r}" for name, value in self.attributes.items())
        return f"BackwardRecord({self.operator}{attributes})"
