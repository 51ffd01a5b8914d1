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
    "narrow",
    "attention",
    "linear_attention",
    "signal",
    "sampling",
    "losses",
    "random",
    "contributed",
    "quantized_recurrent",
    "classical",
    "linear_models",
    "features",
)
INTERFACE_VERSION = (1, 1)
RESERVED_DOMAINS = frozenset({"", "ai.onnx", "onemodel"})
"""Domains whose operators come with the package; any other takes registered ones too."""
_LAZY = ("Attribute", "Call", "Emitter", "InputSpec", "OpSpec", "Shape", "TensorType")
__all__ = [
    "FAMILIES",
    "INTERFACE_VERSION",
    "RESERVED_DOMAINS",
    "Attribute",
    "Call",
    "Emitter",
    "InputSpec",
    "OpSpec",
    "Shape",
    "TensorType",
    "add",
    "all",
    "find",
    "get",
    "registered",
]

_registered: dict[tuple[str, str], OpSpec] = {}


@cache
def _table() -> dict[tuple[str, str], OpSpec]:
    found: dict[tuple[str, str], OpSpec] = {}
    for family in FAMILIES:
        for spec in import_module(f"{__name__}.{family}").SPECS:
            found[spec.domain, spec.name] = spec
    return found


def find(name: str, domain: str = "") -> OpSpec | None:
    """The spec of an operator, or ``None``.

    ``"domain::Name"`` is the operator ``Name`` of ``domain``. An ONNX name is looked up before one
    of the project's own.
    """
    if "::" in name and not domain:
        domain, _, name = name.partition("::")
    table = _table()
    if domain in ("", "ai.onnx"):
        return table.get(("", name)) or table.get(("onemodel", name))
    return table.get((domain, name)) or _registered.get((domain, name))


def add(spec: OpSpec) -> None:
    """Make a spec known; :func:`onemodel_kernels.extension.register` checks it first."""
    _registered[spec.domain, spec.name] = spec


def registered(name: str, domain: str) -> bool:
    """Whether an operator was registered from outside the package."""
    return (domain, name) in _registered


def get(name: str, domain: str = "") -> OpSpec:
    """The spec of an operator.

    Raises:
        UnsupportedError: when there is none of that name and domain.
    """
    spec = find(name, domain)
    if spec is None:
        shown = f"{domain}::{name}" if domain else name
        raise UnsupportedError(
            f"{shown}: there is no operator of this name; onemodel_kernels.ops.all() lists them, and "
            "onemodel_kernels.extension.register adds one of your own"
        )
    return spec


def all() -> tuple[OpSpec, ...]:
    """Every spec of this package, ordered by domain and name."""
    return tuple(spec for _, spec in sorted(_table().items()))


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.spec"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
