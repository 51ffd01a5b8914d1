"""Measures the error of every kernel on the shared cases."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onemodel_kernels import Kernel
from onemodel_kernels.testing import every_case, running
from onemodel_kernels.testing.case import Tensor

LARGEST_ULP = 64.0
"""Above this the error is given as scaled: some result was a difference of larger numbers."""


@dataclass
class Errors:
    """The largest errors of a kernel.

    Attributes:
        cases: How many cases were run.
        ulp: The largest error by dtype, in units in the last place.
        scaled: The largest error by dtype, over the largest absolute value of the result.
        exact: Whether some result is not a float, or has a dtype that was not rounded to.
    """

    cases: int = 0
    ulp: dict[str, float] = field(default_factory=dict)
    scaled: dict[str, float] = field(default_factory=dict)
    exact: bool = False

    def note(self, got: Tensor, want: Tensor) -> None:
        """Take one result in."""
        name = got.dtype.name
        if got.dtype.kind != "f" and name != "bfloat16":
            self.exact = True
            return
        wide = np.asarray(want, np.float64)
        with np.errstate(all="ignore"):
            rounded = wide.astype(got.dtype)
        found = got.astype(np.float64)
        finite = np.isfinite(wide) & np.isfinite(found) & np.isfinite(rounded.astype(np.float64))
        if not finite.any():
            return
        difference = np.abs(found[finite] - wide[finite])
        with np.errstate(all="ignore"):
            # The largest number has no spacing: its neighbour is infinite.
            unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
            ulp = float(np.max(difference / unit))
        largest = float(np.abs(wide[finite]).max())
        scaled = float(difference.max()) / largest if largest else 0.0
        self.ulp[name] = max(self.ulp.get(name, 0.0), ulp)
        self.scaled[name] = max(self.scaled.get(name, 0.0), scaled)

    def shown(self, dtype: str) -> str:
        """The error as a cell of a table."""
        if dtype not in self.ulp:
            return "exact" if dtype == "float32" and self.exact and not self.ulp else ""
        if self.ulp[dtype] == 0.0:
            return "exact"
        if self.ulp[dtype] < 0.005:
            return "below 0.01 ulp"
        if self.ulp[dtype] <= LARGEST_ULP:
            return f"{self.ulp[dtype]:.2f} ulp"
        return f"{self.scaled[dtype]:.1e} scaled"


def measured() -> dict[str, Errors]:
    """The errors of every kernel that has cases."""
    present = set(Kernel.names())
    found: dict[str, Errors] = {}
    for _, case in every_case():
        if case.operator not in present:
            continue
        errors = found.setdefault(case.operator, Errors())
        errors.cases += 1
        for got, want in zip(running.native(case), case.expected(), strict=False):
            if got.shape == want.shape and got.size:
                errors.note(got, want)
    return found
