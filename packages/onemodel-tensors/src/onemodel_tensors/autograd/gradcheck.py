"""Gradients compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, OneModelError
from onemodel_tensors.autograd.engine import grad
from onemodel_tensors.autograd.mode import no_grad
from onemodel_tensors.tensor import Tensor

__all__ = ["gradcheck"]


def gradcheck(
    function: Callable[..., Any],
    inputs: Sequence[Any] | Tensor,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradients of a function with central differences, element by element.

    Args:
        function: takes the inputs and gives a tensor, or several.
        inputs: those that require a gradient must be float64 and are each checked in all elements.
        eps: the step.
        atol: the absolute error allowed.
        rtol: the relative error allowed.
        raise_exception: raise where they differ, instead of returning false.

    Returns:
        Whether all gradients agree.

    Raises:
        DtypeError: an input that requires a gradient is not float64: the differences would be noise.
        OneModelError: a gradient differs; names input, element and both values.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [n for n, t in enumerate(arguments) if isinstance(t, Tensor) and t.requires_grad]
    for n in checked:
        if arguments[n].dtype != "float64":
            raise DtypeError(f"gradcheck: expected float64 for input {n}, got {arguments[n].dtype}")
    outputs = _outputs(function(*arguments))
    for position, output in enumerate(outputs):
        if output._node is None:
            continue
        problem = _compare(function, arguments, checked, position, output, eps, atol, rtol)
        if problem is not None:
            if raise_exception:
                raise OneModelError(problem)
            return False
    return True


def _outputs(result: Any) -> list[Tensor]:
    listed = [result] if isinstance(result, Tensor) else list(result)
    return [output for output in listed if isinstance(output, Tensor)]


def _weights(output: Tensor) -> list[float]:
    """Numbers of both signs that repeat no short pattern, so that errors do not cancel."""
    return [
        ((n * 2654435761 + 12345) % 2048) / 1024.0 - 0.99951171875
        for n in range(output._array.size)
    ]


def _compare(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    checked: list[int],
    position: int,
    output: Tensor,
    eps: float,
    atol: float,
    rtol: float,
) -> str | None:
    weights = _weights(output)
    packed = _packed(weights, output._array.shape)
    found = grad(
        (output,),
        [arguments[n] for n in checked],
        (Tensor(packed),),
        retain_graph=True,
        allow_unused=True,
    )
    for n, gradient in zip(checked, found):
        values = arguments[n]._array.contiguous().copy()
        flat = values.reshape((values.size,))
        analytic = [0.0] * values.size if gradient is None else _flat(gradient._array)
        for element in range(values.size):
            at = flat.select(0, element)
            before = at.item()
            sums = []
            for step in (eps, -eps):
                at.fill(before + step)
                sums.append(_weighted(function, arguments, n, values, position, weights))
            at.fill(before)
            numeric = (sums[0] - sums[1]) / (2 * eps)
            if not abs(analytic[element] - numeric) <= atol + rtol * abs(numeric):
                return (
                    f"gradcheck: expected the gradient of output {position} with respect to element {element} of input "
                    f"{n} (shape {values.shape}) to be {numeric:.9g} by finite differences, got {analytic[element]:.9g}"
                )
    return None


def _packed(weights: list[float], shape: tuple[int, ...]) -> Array:
    import struct

    return Array.from_buffer(struct.pack(f"<{len(weights)}d", *weights), "float64", shape).copy()


def _flat(array: Array) -> list[float]:
    return list(array.view_or_copy((array.size,)).tolist())


def _weighted(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    n: int,
    values: Array,
    position: int,
    weights: list[float],
) -> float:
    import math

    moved = [*arguments[:n], Tensor(values.copy()), *arguments[n + 1 :]]
    with no_grad():
        output = _outputs(function(*moved))[position]
    return math.fsum(a * b for a, b in zip(_flat(output._array), weights))
