"""Random draws that depend on a seed and a key alone.

They are made from the raw 64-bit stream of PCG64, which numpy keeps the same in every version; the
methods of its Generator may change theirs. No global state is read or written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Draws:
    """An independent stream of draws for each ``(seed, key)``."""

    def __init__(self, seed: int, *key: int) -> None:
        self._raw = np.random.PCG64(np.random.SeedSequence((seed, *key)))

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """``count`` float64 numbers, uniform in [0, 1)."""
        bits = np.asarray(self._raw.random_raw(count), np.uint64)
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        """One number, uniform in [low, high)."""
        return low + (high - low) * float(self.uniforms(1)[0])

    def integer(self, low: int, high: int) -> int:
        """One integer, uniform in low..high, both included."""
        return low + int(self.between(0.0, 1.0) * (high - low + 1))

    def order(self, count: int) -> list[int]:
        """The numbers 0..count-1 in random order."""
        return [int(index) for index in np.argsort(self.uniforms(count), kind="stable")]
