"""The blocked channel layout: groups of channels side by side in memory, converted explicitly.

>>> import onemodel_tensors as om
>>> from onemodel_tensors import functional as F
>>> from onemodel_tensors.layouts import to_blocked
>>> x = to_blocked(om.randn(1, 20, 8, 8))
>>> x.shape, x.layout
((1, 20, 8, 8), 'blocked16')
>>> y = F.relu(F.conv2d(x, om.randn(4, 20, 3, 3)))
>>> y.to_plain().shape
(1, 4, 6, 6)

A blocked tensor of shape (N, C, …) keeps its elements as (N, ceil(C / 16), …, 16), the last block filled up with
zeros. Convolutions, pools, batch norm, resampling, activations and arithmetic take it and give it back, with the bits
of the plain layout; a gradient passes through every conversion. Anything else refuses it and asks for ``to_plain()``.
Activations and arithmetic work on the blocks; the others convert there and back, since the native kernels choose their
own blocking inside a call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from onemodel_kernels.errors import AttributeValueError, ShapeError, UnsupportedError
from onemodel_tensors import recording

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor

__all__ = ["BlockedTensor", "LayoutError", "is_blocked", "to_blocked", "to_plain"]

Function = TypeVar("Function", bound=Callable[..., Any])


class LayoutError(UnsupportedError, AttributeError):
    """An operator that works on plain tensors met one in the blocked layout."""


class BlockedTensor:
    """A tensor (N, C, spatial axes) whose channels lie in blocks; made by :func:`to_blocked`.

    Attributes:
        blocks: the elements as a plain tensor (N, ceil(C / block), spatial axes, block).
        channels: C.
    """

    __slots__ = ("blocks", "channels")

    def __init__(self, blocks: Tensor, channels: Any) -> None:
        self.blocks = blocks
        self.channels = channels

    @property
    def block(self) -> int:
        """How many channels lie side by side."""
        return self.blocks._array.shape[-1]

    @property
    def layout(self) -> str:
        """The layout's name, as ``"blocked16"``."""
        return f"blocked{self.block}"

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents (N, C, spatial axes), as in the plain layout."""
        extents = self.blocks.shape
        return (extents[0], self.channels, *extents[2:-1])

    @property
    def dtype(self) -> str:
        """The name of the elements' type."""
        return self.blocks.dtype

    @property
    def ndim(self) -> int:
        """The number of axes, as in the plain layout."""
        return self.blocks.ndim - 1

    def dim(self) -> int:
        """The number of axes, as in the plain layout."""
        return self.ndim

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is computed for it."""
        return self.blocks.requires_grad

    def detach(self) -> BlockedTensor:
        """The same elements without history."""
        return BlockedTensor(self.blocks.detach(), self.channels)

    def to_plain(self) -> Tensor:
        """The tensor in the plain layout, contiguous."""
        rank = self.blocks.ndim
        whole = self.blocks.permute(0, 1, rank - 1, *range(2, rank - 1)).flatten(1, 2)
        if whole._array.shape[1] != self.channels:
            whole = whole.narrow(1, 0, self.channels)
        return whole.contiguous()

    def _with(
        self, operator: str, function: Callable[..., Tensor], *operands: Any
    ) -> BlockedTensor:
        """An elementwise function of the blocks and of other operands of the same layout, or numbers."""
        blocks: list[Any] = []
        for operand in operands:
            if isinstance(operand, BlockedTensor):
                mine, theirs = self.blocks._array.shape, operand.blocks._array.shape
                if mine != theirs or self.channels != operand.channels:
                    raise ShapeError(
                        f"{operator}: expected blocked tensors of one shape and block, got {self.shape} in "
                        f"{self.layout} and {operand.shape} in {operand.layout}; to_plain() broadcasts"
                    )
                blocks.append(operand.blocks)
            elif isinstance(operand, (int, float)):
                blocks.append(operand)
            else:
                raise LayoutError(
                    f"{operator}: expected a blocked tensor or a number beside a blocked tensor, got "
                    f"{type(operand).__name__}; convert one of them with to_blocked() or to_plain()"
                )
        refuse_constants(operator, (self, *operands))
        return BlockedTensor(function(*blocks), self.channels)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"BlockedTensor has no attribute {name!r}")
        operator = _caller() if name.startswith("_") else name
        raise LayoutError(
            f"{operator}: expected a tensor in the plain layout, got one of shape {self.shape} in {self.layout}; "
            "call to_plain() first"
        )

    def __bool__(self) -> bool:
        raise LayoutError("__bool__: expected a tensor in the plain layout; call to_plain() first")

    def __eq__(self, other: object) -> Any:
        raise LayoutError("==: expected tensors in the plain layout; call to_plain() first")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"BlockedTensor(shape={self.shape}, dtype={self.dtype}, layout={self.layout})"


def _arithmetic(name: str) -> Callable[..., BlockedTensor]:
    """A method of two operands, by the name of the one that plain tensors have."""

    def method(self: BlockedTensor, other: Any) -> BlockedTensor:
        return self._with(name.strip("_"), lambda x, y: getattr(x, name)(y), self, other)

    method.__name__ = name
    method.__doc__ = f"``{name.strip('_')}`` with a blocked tensor of the same shape, or a number."
    return method


for _name in [
    "__add__",
    "__radd__",
    "__sub__",
    "__rsub__",
    "__mul__",
    "__rmul__",
    "__truediv__",
    "__rtruediv__",
]:
    setattr(BlockedTensor, _name, _arithmetic(_name))
for _name in ("add", "sub", "mul", "div", "maximum", "minimum"):
    setattr(BlockedTensor, _name, _arithmetic(_name))


def _unary(name: str) -> Callable[..., BlockedTensor]:
    def method(self: BlockedTensor) -> BlockedTensor:
        return self._with(name, lambda x: getattr(x, name)(), self)

    method.__name__ = name
    method.__doc__ = f"``{name}`` of each element."
    return method


for _name in ("relu", "sigmoid", "tanh", "abs", "neg", "square"):
    setattr(BlockedTensor, _name, _unary(_name))
setattr(BlockedTensor, "__neg__", _unary("neg"))  # noqa: B010 (beside the other methods)


def _caller() -> str:
    """The function of this package that the user called."""
    frame, name = sys._getframe(2), "operator"
    package = __name__.partition(".")[0]
    found: Any = frame
    while found is not None and str(found.f_globals.get("__name__", "")).startswith(package):
        name = found.f_code.co_name
        found = found.f_back
    return name


def is_blocked(value: Any) -> TypeGuard[BlockedTensor]:
    """Whether a value is a tensor in the blocked layout."""
    return isinstance(value, BlockedTensor)


def to_blocked(input: Tensor, block: int = 16) -> BlockedTensor:
    """The tensor with its channels in blocks; a copy.

    Args:
        input: (N, C, spatial axes), at least three axes.
        block: how many channels lie side by side.

    Raises:
        ShapeError: there are fewer axes.
        AttributeValueError: ``block`` is below 1.
    """
    from onemodel_tensors.ops.padding import pad

    if is_blocked(input):
        raise LayoutError(f"to_blocked: expected a tensor in the plain layout, got {input!r}")
    shape = input._array.shape
    if len(shape) < 3:
        raise ShapeError(f"to_blocked: expected (N, C, spatial axes), got shape {shape}")
    if block < 1:
        raise AttributeValueError(f"to_blocked: expected a block of at least 1, got {block}")
    missing = -shape[1] % block
    if missing:
        input = pad(input, (*[0, 0] * (len(shape) - 2), 0, missing))
    split = input.unflatten(1, (-(-shape[1] // block), block))
    rank = len(shape) + 1
    return BlockedTensor(split.permute(0, 1, *range(3, rank), 2).contiguous(), shape[1])


def to_plain(input: Any) -> Any:
    """A blocked tensor in the plain layout; a plain one as it is."""
    return input.to_plain() if is_blocked(input) else input


def refuse_constants(operator: str, operands: tuple[Any, ...]) -> None:
    """Refuse a blocked constant beside a traced tensor: a graph holds plain tensors."""
    if not recording.active:
        return
    plain = [operand.blocks if is_blocked(operand) else operand for operand in operands]
    traced = next((t for t in plain if getattr(t, "_trace", None) is not None), None)
    recorder = None if traced is None else traced._asked()
    if traced is None or recorder is None:
        return
    for operand, tensor in zip(operands, plain):
        if is_blocked(operand) and tensor._trace is None:
            recorder.refuse_operator(
                operator,
                traced,
                f"a constant of shape {operand.shape} in the blocked layout has no place in a graph; "
                "call to_plain() on it before the trace",
            )


def in_blocks(function: Function) -> Function:
    """Let an elementwise function of one tensor take the blocked layout."""

    @functools.wraps(function)
    def taking(input: Any, *args: Any, **kwargs: Any) -> Any:
        if type(input) is BlockedTensor:
            name = function.__name__
            if kwargs.pop("inplace", False) or any(argument is True for argument in args):
                raise LayoutError(f"{name}: expected inplace=False for a blocked tensor")
            return input._with(name, lambda x: function(x, *args, **kwargs), input)
        return function(input, *args, **kwargs)

    return taking  # type: ignore[return-value]


def through_plain(function: Function) -> Function:
    """Let a function of (N, C, spatial axes) take the blocked layout, and give back what it took."""

    @functools.wraps(function)
    def taking(input: Any, *args: Any, **kwargs: Any) -> Any:
        if type(input) is not BlockedTensor:
            return function(input, *args, **kwargs)
        refuse_constants(function.__name__, (input, *args, *kwargs.values()))
        result = function(input.to_plain(), *args, **kwargs)
        if isinstance(result, tuple):
            return (to_blocked(result[0], input.block), *result[1:])
        return to_blocked(result, input.block)

    return taking  # type: ignore[return-value]
