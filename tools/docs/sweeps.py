"""The elementary functions over their whole domain, against numpy's in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import erf
from typing import Any

import numpy as np

from onemodel_kernels import Array, Kernel

POINTS = 1 << 17

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Function:
    """A kernel of one input, its real values, and where it is defined."""

    kernel: str
    real: Callable[[Values], Values]
    low: float = -np.inf
    high: float = np.inf


FUNCTIONS = (
    Function("Exp", np.exp),
    Function("Expm1", np.expm1),
    Function("Log", np.log, low=0.0),
    Function("Log1p", np.log1p, low=-1.0),
    Function("Log2", np.log2, low=0.0),
    Function("Log10", np.log10, low=0.0),
    Function("Sin", np.sin),
    Function("Cos", np.cos),
    Function("Tan", np.tan),
    Function("Asin", np.arcsin, low=-1.0, high=1.0),
    Function("Acos", np.arccos, low=-1.0, high=1.0),
    Function("Atan", np.arctan),
    Function("Sinh", np.sinh),
    Function("Cosh", np.cosh),
    Function("Tanh", np.tanh),
    Function("Asinh", np.arcsinh),
    Function("Acosh", np.arccosh, low=1.0),
    Function("Atanh", np.arctanh, low=-1.0, high=1.0),
    Function("Erf", np.vectorize(erf, otypes=[np.float64])),
    Function("Sigmoid", lambda x: np.where(x < 0, np.exp(x), 1.0) / (1.0 + np.exp(-np.abs(x)))),
    Function("Softplus", lambda x: np.logaddexp(0.0, x)),
)


NEAR = 20.0


def floats() -> Values:
    """float32 numbers of both signs, evenly spread over their bit patterns, and over -20 to 20."""
    step = (1 << 32) // POINTS
    patterns = np.arange(0, 1 << 32, step, dtype=np.uint64) + step // 2
    values = patterns.astype(np.uint32).view(np.float32)
    near = np.linspace(-NEAR, NEAR, 4 * POINTS, dtype=np.float32)
    return np.sort(np.concatenate([values[np.isfinite(values)], near]))


@cache
def ulps(function: Function) -> tuple[Values, Values]:
    """Arguments over the whole domain, and the error at each in units in the last place."""
    return errors_at(function, floats())


def errors_at(function: Function, x: Values) -> tuple[Values, Values]:
    """Those arguments at which the function is finite, and the error at each."""
    x = x[(x > function.low) & (x < function.high)]
    with np.errstate(all="ignore"):
        real = function.real(x.astype(np.float64))
        rounded = real.astype(np.float32)
    kept = np.isfinite(rounded)
    x, real, rounded = x[kept], real[kept], rounded[kept]
    got = Kernel(function.kernel)(Array.from_numpy(x)).numpy().astype(np.float64)
    return x, np.abs(got - real) / np.spacing(np.abs(rounded)).astype(np.float64)


def sweep_table() -> str:
    """The table of the elementwise page."""
    lines = [
        "## Elementary functions over their domain\n",
        f"{POINTS:,} float32 arguments evenly spread over all bit patterns and {4 * POINTS:,} over",
        f"{-NEAR:g} to {NEAR:g}, where the function is defined, against float64.",
        "0.5 ulp is the best that a float32 result can be.\n",
        "| function | largest error, ulp | share within 0.5 ulp + 1 % |",
        "|---|---|---|",
    ]
    for function in FUNCTIONS:
        error = ulps(function)[1]
        share = float((error <= 0.505).mean())
        lines.append(f"| `{function.kernel}` | {error.max():.2f} | {share:.1%} |")
    lines.append("\n![Error of elementary functions](images/function-error.svg)\n")
    return "\n".join(lines)
