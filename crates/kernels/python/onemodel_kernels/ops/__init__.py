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
    "binary",
    "shapes",
    "movement",
    "reductions",
    "products",
    "activations",
    "convolution",
    "pooling",
    "normalization",
    "indexing",
    "narrow",
    "quantization",
    "attention",
    "recurrent",
    "sampling",
    "contributed",
    "random",
    "losses",
    "quantized_recurrent",
    "linear_attention",
    "signal",
    "classical",
    "linear_models",
    "features",
)
"""In the order in which they are searched, those that most models need first."""
INTERFACE_VERSION = (1, 2)
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


_seen: dict[tuple[str, str], OpSpec] = {}


@cache
def _family(name: str) -> dict[tuple[str, str], OpSpec]:
    """The specs of a family by domain and name."""
    specs = import_module(f"{__name__}.{name}").SPECS
    return {(spec.domain, spec.name): spec for spec in specs}


def _own(*keys: tuple[str, str]) -> OpSpec | None:
    """The spec of one of these domains and names, no two of which there are.

    Families are imported one after the other until it is found: a small model needs few of them.
    """
    for key in keys:
        if key in _seen:
            return _seen[key]
    for family in FAMILIES:
        table = _family(family)
        for key in keys:
            if key in table:
                return _seen.setdefault(key, table[key])
    return None


def find(name: str, domain: str = "") -> OpSpec | None:
    """The spec of an operator, or ``None``.

    ``"domain::Name"`` is the operator ``Name`` of ``domain``. No operator of the project's own has
    the name of one of ONNX: each is found without its domain.
    """
    if "::" in name and not domain:
        domain, _, name = name.partition("::")
    if domain in ("", "ai.onnx"):
        return _own(("", name), ("onemodel", name))
    return _registered.get((domain, name)) or _own((domain, name))


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
    found = {key: spec for family in FAMILIES for key, spec in _family(family).items()}
    return tuple(spec for _, spec in sorted(found.items()))


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.spec"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
