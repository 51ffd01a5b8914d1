"""One case: an operator on seeded inputs, the true result, and how near a kernel must come to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Tensor = np.ndarray[Any, Any]
Outcome = Tensor | Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class Bound:
    """How far a result may be from the oracle's; at least one measure must hold for each element.

    Attributes:
        exact: The bits must be those of the oracle's value in the result's dtype (NaN equals NaN).
        ulp: Units in the last place of the result's dtype at the oracle's value.
        absolute: The absolute difference.
        scaled: The absolute difference over the largest absolute value of the whole result.
        why: The reason for a bound that is not exact.
    """

    exact: bool = False
    ulp: float = 0.0
    absolute: float = 0.0
    scaled: float = 0.0
    why: str = ""

    def violation(self, got: Tensor, want: Tensor) -> str | None:
        """What is wrong with a result, or ``None``."""
        if got.shape != want.shape:
            return f"shape {got.shape}, expected {want.shape}"
        if got.size == 0:
            return None
        if got.dtype.kind in "biu":
            same = got == want.astype(got.dtype)
            return None if same.all() else _first(~same, got, want)
        wide = want.astype(np.float64)
        with np.errstate(all="ignore"):
            rounded = wide.astype(got.dtype)
        found = got.astype(np.float64)
        same = (found == rounded.astype(np.float64)) | (np.isnan(found) & np.isnan(wide))
        if self.exact:
            # Equal numbers, and equal signs of zero.
            signs = np.isnan(found) | (np.signbit(found) == np.signbit(wide))
            ok = same & signs
            return None if ok.all() else _first(~ok, got, want)
        finite = np.isfinite(wide) & np.isfinite(found)
        with np.errstate(all="ignore"):
            difference = np.where(finite, np.abs(found - wide), np.inf)
        allowed = np.full(wide.shape, self.absolute)
        if self.ulp:
            with np.errstate(all="ignore"):
                # The largest number has no spacing: its neighbour is infinite.
                spacing = np.spacing(np.abs(np.where(finite, rounded, 0)).astype(got.dtype))
            allowed = np.maximum(allowed, self.ulp * spacing.astype(np.float64))
        if self.scaled and finite.any():
            allowed = np.maximum(allowed, self.scaled * np.abs(wide[np.isfinite(wide)]).max())
        ok = same | (difference <= allowed)
        return None if ok.all() else _first(~ok, got, want)


def _first(wrong: Tensor, got: Tensor, want: Tensor) -> str:
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} elements; first at {at}: {got[at]!r}, expected {want[at]!r}"


def bound(*, ulp: float = 0.0, absolute: float = 0.0, scaled: float = 0.0, why: str = "") -> Bound:
    """A bound; with no measure the bits must be the oracle's."""
    return Bound(not (ulp or absolute or scaled), ulp, absolute, scaled, why)


@dataclass(frozen=True, slots=True)
class Case:
    """An operator on inputs, with the true result.

    Attributes:
        name: Unique within its family.
        operator: The name of the native kernel.
        inputs: numpy arrays in the kernel's order; ``None`` where an optional one is absent.
        oracle: Gets the inputs, floats widened to f64, and returns the outputs in f64 (or integers).
        attributes: The kernel's attributes.
        bound: How near each output must come.
        bounds: Bounds of single outputs by position, where they differ.
        onnx: Whether ONNX Runtime is asked too; off for operators that it lacks or reads otherwise.
        onnx_operator: The ONNX operator, when its name is not the kernel's.
        onnx_attributes: Attributes and operands as the spec names them, when they differ from the
            kernel's; operands are written as initializers.
        onnx_bound: How near ONNX Runtime must be.
        outputs: How many leading outputs the oracle gives; the others are not compared.
        deterministic: Whether the suites of threads and instruction sets compare its bits.
    """

    name: str
    operator: str
    inputs: tuple[Tensor | None, ...]
    oracle: Callable[..., Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    bound: Bound = field(default_factory=lambda: Bound(exact=True))
    bounds: Mapping[int, Bound] = field(default_factory=dict)
    onnx: bool = True
    onnx_operator: str = ""
    onnx_attributes: Mapping[str, Any] | None = None
    onnx_bound: Bound = field(
        default_factory=lambda: Bound(scaled=1e-5, absolute=1e-6, why="another order of sums")
    )
    outputs: int | None = None
    deterministic: bool = True

    def expected(self) -> list[Tensor]:
        """The oracle's outputs."""
        wide = [None if a is None else widened(a) for a in self.inputs]
        with np.errstate(all="ignore"):
            result = self.oracle(*wide)
        parts = result if isinstance(result, tuple | list) else (result,)
        return [np.asarray(part) for part in parts]

    def bound_of(self, output: int) -> Bound:
        """The bound of one output."""
        return self.bounds.get(output, self.bound)


def widened(a: Tensor) -> Tensor:
    """Floats in f64, everything else as it is."""
    if a.dtype.kind == "f" or a.dtype.name == "bfloat16":
        return a.astype(np.float64)
    return a
