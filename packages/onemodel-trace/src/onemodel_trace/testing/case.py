"""One call of an eager operator, with the inputs to trace it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Given:
    """One input: its shape, dtype and the range of its values."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0

    def tensor(self, seed: int = 1) -> Tensor:
        """The example: the same values for a seed on every machine."""
        attributes: dict[str, Any] = {"shape": self.shape, "seed": seed, "counter": 0}
        if self.dtype == "bool":
            kernel = Kernel("RandomBernoulli", p=0.5, dtype="bool", **attributes)
        elif self.dtype.startswith("int"):
            attributes |= {"low": int(self.low), "high": int(self.high), "dtype": self.dtype}
            kernel = Kernel("RandomIntegers", **attributes)
        else:
            attributes |= {"low": self.low, "high": self.high, "dtype": self.dtype}
            kernel = Kernel("RandomUniform", **attributes)
        made = kernel()
        return Tensor(made if isinstance(made, Array) else made[0])


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Given:
    """A float32 input."""
    return Given(shape, "float32", low, high)


def ints(*shape: int, low: int = 0, high: int = 4) -> Given:
    """An int64 input with values from low to below high."""
    return Given(shape, "int64", low, high)


def mask(*shape: int) -> Given:
    """A bool input."""
    return Given(shape, "bool")


@dataclass(frozen=True, slots=True)
class Case:
    """A call of an operator.

    Attributes:
        name: ``operator`` or ``operator: variant``.
        function: Takes the inputs as tensors; gives a tensor or a tuple of them.
        inputs: The inputs.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[Given, ...]

    @property
    def operator(self) -> str:
        """The public name of the operator."""
        return self.name.partition(":")[0]

    def examples(self) -> list[Tensor]:
        """Example tensors, all different."""
        return [given.tensor(seed) for seed, given in enumerate(self.inputs, 1)]


def cases(table: Mapping[str, Callable[..., Any]], *inputs: Given) -> list[Case]:
    """Cases that share their inputs."""
    return [Case(name, function, inputs) for name, function in table.items()]


def weights(*shape: int, seed: int = 100) -> Tensor:
    """A constant of a model."""
    return Given(shape, "float32", -0.6, 0.6).tensor(seed)
