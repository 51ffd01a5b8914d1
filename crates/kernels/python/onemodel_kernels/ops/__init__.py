"""The facts of every operator, once.

``get("Conv")`` gives the :class:`OpSpec` of an operator: its inputs, attributes, output types,
kernel and determinism. ONNX operators have the meaning of the version in ``since_version``;
operators that ONNX lacks live in the domain ``"onemodel"``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from onemodel_kernels.errors import UnsupportedError

if TYPE_CHECKING:
    from onemodel_kernels.ops.spec import (
        Attribute,
        Call,
        Emitter,
        InputSpec,
        OpSpec,
        Shape,
        TensorType,
    )

FAMILIES = (
    "unary",
    "activations",
    "binary",
    "reductions",
    "shapes",
    "movement",
    "indexing",
    "products",
    "convolution",
    "pooling",
    "normalization",
    "recurrent",
    "quantization",
    "attention",
    "linear_attention",
    "signal",
    "sampling",
    "losses",
    "random",
    "contributed",
    "quantized_recurrent",
    "classical",
)
INTERFACE_VERSION = (1, 0)
_LAZY = ("Attribute", "Call", "Emitter", "InputSpec", "OpSpec", "Shape", "TensorType")
__all__ = [
    "FAMILIES",
    "INTERFACE_VERSION",
    "Attribute",
    "Call",
    "Emitter",
    "InputSpec",
    "OpSpec",
    "Shape",
    "TensorType",
    "all",
    "find",
    "get",
]


@cache
def _table() -> dict[tuple[str, str], OpSpec]:
    found: dict[tuple[str, str], OpSpec] = {}
    for family in FAMILIES:
        for spec in import_module(f"{__name__}.{family}").SPECS:
            found[spec.domain, spec.name] = spec
    return found


def find(name: str, domain: str = "") -> OpSpec | None:
    """The spec of an operator, or ``None``; an ONNX name is looked up before one of the project's
    own.
    """
    table = _table()
    if domain in ("", "ai.onnx"):
        return table.get(("", name)) or table.get(("onemodel", name))
    return table.get((domain, name))


def get(name: str, domain: str = "") -> OpSpec:
    """The spec of an operator.

    Raises:
        UnsupportedError: when there is none of that name and domain.
    """
    spec = find(name, domain)
    if spec is None:
        shown = f"{domain}::{name}" if domain else name
        raise UnsupportedError(
            f"{shown}: there is no operator of this name; onemodel_kernels.ops.all() lists them"
        )
    return spec


def all() -> tuple[OpSpec, ...]:
    """Every spec, ordered by domain and name."""
    return tuple(spec for _, spec in sorted(_table().items()))


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.spec"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
