"""Functions whose gradient is written by hand, in the form that PyTorch users know.

>>> import onemodel_tensors as om
>>> class Cube(om.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         return x * x * x
...
...     @staticmethod
...     def backward(ctx, g):
...         (x,) = ctx.saved_tensors
...         return 3 * x * x * g
>>> x = om.tensor(2.0, requires_grad=True)
>>> Cube.apply(x).backward()
>>> x.grad.item()
12.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, OneModelError, ShapeError, UnsupportedError
from onemodel_tensors import recording
from onemodel_tensors.autograd.mode import unrecorded
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.record import NO_ATTRIBUTES, BackwardRecord, Gradients

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor

__all__ = ["Function", "FunctionContext"]


class FunctionContext:
    """What ``forward`` keeps for ``backward``; any attribute may be set on it.

    Attributes:
        needs_input_grad: for each argument of ``apply``, whether a gradient is asked for.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Tensor | None, ...] = ()
        self._materialize = True
        self._constant: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors; the backward pass fails if one was written into since."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What :meth:`save_for_backward` kept."""
        return self._saved

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that no gradient goes through these outputs."""
        self._constant = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether an output without a gradient hands zeros to ``backward``, or ``None``."""
        self._materialize = value

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Not offered: ``forward`` may not write into its inputs.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "mark_dirty: expected a forward that does not write into its inputs; return a new tensor"
        )


class Function:
    """The base class: a subclass defines the static methods ``forward`` and ``backward``.

    ``forward(ctx, *args)`` runs without recording and returns a tensor or a tuple with tensors; or it takes only the
    arguments, and ``setup_context(ctx, inputs, output)`` keeps what is needed. ``backward(ctx, *gradients)`` gets one
    gradient for each output and returns one for each argument, ``None`` for those without.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results; see the class."""
        raise OneModelError("Function: expected a subclass that defines a static forward")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Computes the gradients of the arguments; see the class."""
        raise OneModelError("Function: expected a subclass that defines a static backward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps what ``backward`` needs where ``forward`` takes no context."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the function on tensors and other arguments.

        Raises:
            OneModelError: (a recorder's own) while a trace records a tensor among the arguments: no graph has it.
            ShapeError: (in the backward pass) a gradient has another shape than its argument.
            DtypeError: (in the backward pass) a gradient has another dtype.
        """
        from onemodel_tensors.apply import link_outputs, recorder_of
        from onemodel_tensors.tensor import Tensor

        tensors = tuple([value for value in args if isinstance(value, Tensor)])
        if recording.active:
            recorder = recorder_of(tensors)
            if recorder is not None:
                recorder.refuse_operator(
                    cls.__name__, tensors[0], "a custom autograd function has no form in a graph"
                )
        context = FunctionContext(
            tuple([isinstance(value, Tensor) and value.requires_grad for value in args])
        )
        with unrecorded():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(context, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(context, args, result)
        listed = list(result) if isinstance(result, (tuple, list)) else [result]
        moving = [
            at
            for at, value in enumerate(listed)
            if isinstance(value, Tensor)
            and value.dtype in FLOATING
            and all(value is not other for other in context._constant)
        ]
        outs = tuple([Tensor(listed[at]._array) for at in moving])
        if outs:
            saved = tuple([t._array for t in context._saved if t is not None])
            gradient = _Gradient(cls, context, args, len(listed), moving, outs)
            link_outputs(cls.__name__, tensors, NO_ATTRIBUTES, outs, gradient, saved)
        for at, out in zip(moving, outs):
            listed[at] = out
        return tuple(listed) if isinstance(result, (tuple, list)) else listed[0]


class _Gradient:
    """The gradient of one call, on arrays."""

    def __init__(
        self,
        function: type[Function],
        context: FunctionContext,
        args: tuple[Any, ...],
        outputs: int,
        moving: list[int],
        outs: tuple[Tensor, ...],
    ) -> None:
        from onemodel_tensors.tensor import Tensor

        self._function = function
        self._context = context
        self._inputs = [
            (value._array.shape, value.dtype) if isinstance(value, Tensor) else None
            for value in args
        ]
        self._outputs = outputs
        self._moving = moving
        self._shapes = [(out._array.shape, out.dtype) for out in outs]

    def __call__(self, record: BackwardRecord, *gradients: Array | None) -> Gradients:
        from onemodel_tensors.tensor import Tensor

        given: list[Tensor | None] = [None] * self._outputs
        for at, g, (shape, dtype) in zip(self._moving, gradients, self._shapes):
            if g is not None:
                given[at] = Tensor(g)
            elif self._context._materialize:
                given[at] = Tensor(Array.full(shape, 0, dtype))
        with unrecorded():
            answer = self._function.backward(self._context, *given)
        answers = answer if isinstance(answer, tuple) else (answer,)
        name = f"{self._function.__name__}.backward"
        spare = answers[len(self._inputs) :]
        if len(answers) < len(self._inputs) or any(value is not None for value in spare):
            raise ShapeError(
                f"{name}: expected {len(self._inputs)} gradients, one for each argument, got {len(answers)}"
            )
        found: list[Array | None] = []
        for wanted, value in zip(self._inputs, answers):
            if wanted is None:
                continue
            if value is None:
                found.append(None)
                continue
            if value._array.shape != wanted[0]:
                raise ShapeError(
                    f"{name}: expected a gradient of shape {wanted[0]}, got {value._array.shape}"
                )
            if value.dtype != wanted[1]:
                raise DtypeError(
                    f"{name}: expected a gradient of dtype {wanted[1]}, got {value.dtype}"
                )
            # What the function returned may be a tensor that it or the user keeps.
            found.append(value._array.copy())
        return tuple(found)
