"""Dropout: elements or channels set to 0 at random while training, the others scaled up."""

from __future__ import annotations

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.apply import recorded
from onemodel_tensors.ops.arithmetic import add, mul
from onemodel_tensors.ops.arrays import MUL, scaled
from onemodel_tensors.ops.in_place import in_place
from onemodel_tensors.ops.promotion import require_floating
from onemodel_tensors.ops.selection import where
from onemodel_tensors.random import Generator, draw
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = ["alpha_dropout", "drop_path", "dropout", "dropout1d", "dropout2d", "dropout3d"]

_ALPHA_PRIME = -1.7580993408473766


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Each element 0 with probability ``p``, else divided by ``1 - p``; the input itself when not training.

    Args:
        input: floating point.
        p: in [0, 1].
        training: whether anything is dropped.
        inplace: write the result into the input.
        generator: the default one if ``None``.

    Raises:
        AttributeValueError: ``p`` is no probability.

    Determinism: given by the generator's state.
    """
    _check(p, "dropout")
    if not training or p == 0:
        return input
    if inplace:
        return in_place(
            input, "dropout(inplace=True)", lambda x: dropout(x, p, generator=generator)
        )
    return _dropped(input, p, input._array.shape, generator, "dropout(training=True)")


def _check(p: float, name: str) -> None:
    if not 0 <= p <= 1:
        raise AttributeValueError(f"{name}: expected p in [0, 1], got {p}")


def _dropped(
    input: Tensor, p: float, mask_shape: tuple[int, ...], generator: Generator | None, what: str
) -> Tensor:
    require_floating(input, "dropout")
    x = input._array
    kept = draw("RandomBernoulli", mask_shape, generator, what, p=1.0 - p, dtype=x.dtype)
    mask = scaled(kept, 1.0 / (1.0 - p)) if p < 1 else kept
    return recorded("Dropout", (input,), {"p": float(p)}, MUL(x, mask), _dropout_gradient, (mask,))


def _dropout_gradient(record: BackwardRecord, g: Array) -> Gradients:
    return (MUL(g, record.saved[0]),)


def _channels(
    input: Tensor, p: float, training: bool, inplace: bool, axes: int, generator: Generator | None
) -> Tensor:
    name = f"dropout{axes}d"
    _check(p, name)
    x = input._array
    if x.ndim not in (axes + 1, axes + 2):
        raise ShapeError(f"{name}: expected {axes + 1} or {axes + 2} axes, got shape {x.shape}")
    if not training or p == 0:
        return input
    if inplace:
        return in_place(
            input, f"{name}(inplace=True)", lambda t: _channels(t, p, True, False, axes, generator)
        )
    shape = (*x.shape[: x.ndim - axes], *[1] * axes)
    return _dropped(input, p, shape, generator, f"{name}(training=True)")


def dropout1d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Whole channels of (N, C, L) dropped; see :func:`dropout`."""
    return _channels(input, p, training, inplace, 1, generator)


def dropout2d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Whole channels of (N, C, H, W) dropped; see :func:`dropout`."""
    return _channels(input, p, training, inplace, 2, generator)


def dropout3d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Whole channels of (N, C, D, H, W) dropped; see :func:`dropout`."""
    return _channels(input, p, training, inplace, 3, generator)


def alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Dropout that keeps mean and variance of SELU activations (Klambauer et al., 2017)."""
    _check(p, "alpha_dropout")
    if not training or p == 0:
        return input
    if inplace:
        return in_place(
            input,
            "alpha_dropout(inplace=True)",
            lambda x: alpha_dropout(x, p, True, generator=generator),
        )
    kept = draw(
        "RandomBernoulli",
        input._array.shape,
        generator,
        "alpha_dropout(training=True)",
        p=1.0 - p,
        dtype="bool",
    )
    if p == 1:
        return mul(input, 0.0)
    a = float(((1 - p) * (1 + p * _ALPHA_PRIME**2)) ** -0.5)
    mixed: Tensor = where(Tensor(kept), input, _ALPHA_PRIME)
    return add(mul(mixed, a), -a * _ALPHA_PRIME * p)


def drop_path(
    input: Tensor,
    p: float = 0.0,
    training: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Whole samples set to 0 with probability ``p``, the others divided by ``1 - p``: stochastic depth.

    The input itself when not training (Huang et al., 2016).
    """
    _check(p, "drop_path")
    if not training or p == 0:
        return input
    shape = (input._array.shape[0], *[1] * (input._array.ndim - 1)) if input._array.ndim else ()
    return _dropped(input, p, shape, generator, "drop_path(training=True)")
