"""Operators of your own on tensors: computed, differentiated and recorded like the library's.

>>> import onemodel_tensors as om
>>> from onemodel_kernels import Kernel
>>> from onemodel_kernels.extension import register
>>> from onemodel_kernels.ops import InputSpec, OpSpec
>>> facts = OpSpec(
...     "Twice", (InputSpec("x"),), (InputSpec("y"),),
...     lambda call: [(call.dtype(), call.shape())], domain="com.example.doctest",
... )
>>> spec = register(facts, lambda x: Kernel("Add")(x, x))
>>> twice = operator("com.example.doctest::Twice", lambda call, dy: dy + dy)
>>> x = om.tensor([1.0, 2.0], requires_grad=True)
>>> twice(x).sum().backward()
>>> x.grad.tolist()
[2.0, 2.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onemodel_kernels import Array, ops
from onemodel_kernels.errors import AttributeValueError, OneModelError, ShapeError, UsageError
from onemodel_kernels.ops import OpSpec
from onemodel_tensors.apply import kernel, recorded_outputs
from onemodel_tensors.autograd.mode import no_grad
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.ops.sizes import example, examples, size_of
from onemodel_tensors.record import Attributes, BackwardRecord, Gradients
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor

__all__ = ["GradientCall", "Operator", "TensorGradient", "operator"]


class GradientCall:
    """The forward call that a gradient belongs to.

    Attributes:
        inputs: The operands, ``None`` for an absent optional one; without autograd.
        outputs: The results.
        attributes: The attributes, defaults included.
    """

    def __init__(self, record: BackwardRecord) -> None:
        count, arrays = record.saved[0], record.saved[1:]
        tensors = tuple([None if a is None else Tensor(a) for a in arrays])
        self.inputs: tuple[Any, ...] = tensors[:count]
        self.outputs: tuple[Any, ...] = tensors[count:]
        self.attributes = record.attributes
        self._record = record

    def needs(self, index: int) -> bool:
        """Whether input ``index`` needs a gradient; ``None`` will do where it does not."""
        return self._record.needs(index)


TensorGradient = Callable[..., "Tensor | tuple[Tensor | None, ...] | None"]
"""``gradient(call, *output_gradients)``: one gradient for each input, of its shape and dtype.

``call`` is a :class:`GradientCall`; an output that nothing depended on gives ``None``.
"""


class Operator:
    """What :func:`operator` returns: call it on tensors, with attributes by name."""

    def __init__(self, spec: OpSpec, gradient: TensorGradient | None) -> None:
        self._spec = spec
        self._name = f"{spec.domain}::{spec.name}"
        self._own_gradient = gradient

    @property
    def name(self) -> str:
        """``"domain::Name"``, as records and graphs have it."""
        return self._name

    def __repr__(self) -> str:
        return f"Operator({self._name!r})"

    def __call__(self, *inputs: Tensor | None, **attributes: Any) -> Any:
        """Compute, and let autograd and a recorder know.

        Args:
            *inputs: The tensor inputs of the facts in order, ``None`` for an absent optional one.
            **attributes: Attributes and operands by name.

        Returns:
            The output, or a tuple of them when the facts name several.

        Raises:
            ShapeError, DtypeError, AttributeValueError, UsageError: naming the operator, what was
            expected and what came.
        """
        spec, name = self._spec, self._name
        slots = spec.tensor_inputs
        variadic = bool(slots) and slots[-1].variadic
        if len(inputs) > len(slots) and not variadic:
            raise UsageError(f"{name}: expected at most {len(slots)} inputs, got {len(inputs)}")
        for position, slot in enumerate(slots):
            given = inputs[position] if position < len(inputs) else None
            if given is None and not slot.optional and not slot.variadic:
                raise UsageError(f"{name}: expected a tensor as input {slot.name!r}, got none")
        for given in inputs:
            if given is not None and not isinstance(given, Tensor):
                raise UsageError(f"{name}: expected tensors, got {type(given).__name__}")
        recorded = {key: _plain(value) for key, value in attributes.items() if value is not None}
        spec.check(recorded)
        now = {key: _now(value) for key, value in recorded.items()}
        arrays = [None if t is None else t._array for t in inputs]
        # A result is never a view that autograd does not know of.
        given_storages = {a.storage_id for a in arrays if a is not None}
        outputs = [
            made.copy() if made.storage_id in given_storages else made
            for made in _compute(spec, arrays, now)
        ]
        differentiable = sum(1 for _ in _leading_floats(outputs))
        defaults = {key: value for key, value in spec.defaults.items() if value is not None}
        results = recorded_outputs(
            name,
            inputs,
            {**defaults, **recorded},
            outputs,
            self._gradient if differentiable else None,
            (len(arrays), *arrays, *outputs),
            differentiable,
        )
        return results[0] if len(results) == 1 else results

    def _gradient(self, record: BackwardRecord, *output_gradients: Array | None) -> Gradients:
        name = self._name
        if self._own_gradient is None:
            raise OneModelError(
                f"backward of {name}: it has no gradient; give operator() one, or detach() its inputs"
            )
        given = [None if g is None else Tensor(g) for g in output_gradients]
        call = GradientCall(record)
        with no_grad():
            made = self._own_gradient(call, *given)
        listed = made if isinstance(made, tuple | list) else (made,)
        if len(listed) != len(call.inputs):
            raise UsageError(
                f"gradient of {name}: expected {len(call.inputs)} gradients, one for each input, got "
                f"{len(listed)}"
            )
        saved = {a.storage_id for a in record.saved if isinstance(a, Array)}
        return tuple(
            _checked(name, position, entry, call.inputs[position], saved)
            for position, entry in enumerate(listed)
        )


def operator(name: str, gradient: TensorGradient | None = None) -> Operator:
    """The function on tensors of a registered operator.

    Args:
        name: ``"domain::Name"``, registered with :func:`onemodel_kernels.extension.register`.
        gradient: See :data:`TensorGradient`. Without one, a backward pass that reaches the operator
            is an error.

    Raises:
        UnsupportedError: nobody registered the operator.
        UsageError: it is one of the library's own.
    """
    spec = ops.get(name)
    if not ops.registered(spec.name, spec.domain):
        raise UsageError(
            f"operator: {name} is the library's own; expected one that "
            "onemodel_kernels.extension.register made known"
        )
    return Operator(spec, gradient)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple([_plain(entry) for entry in value])
    return size_of(value) if isinstance(value, SymbolicSize) else value


def _now(value: Any) -> Any:
    if isinstance(value, tuple):
        sized = all(isinstance(entry, int | SymbolicSize) for entry in value)
        return examples(value) if sized else value
    return example(value)


def _leading_floats(arrays: Sequence[Array]) -> Sequence[Array]:
    found: list[Array] = []
    for array in arrays:
        if array.dtype not in FLOATING:
            break
        found.append(array)
    return found


def _compute(spec: OpSpec, arrays: Sequence[Array | None], attributes: Attributes) -> list[Array]:
    shapes = [None if a is None else a.shape for a in arrays]
    dtypes = [None if a is None else a.dtype for a in arrays]
    spec.infer(shapes, dtypes, attributes)
    call = spec.call(shapes, dtypes, attributes)
    if spec.decompose is not None:
        made = spec.decompose(_Eager(), call, arrays)
    elif spec.kernel is not None:
        made = kernel(spec.kernel, **spec.kernel_attributes(call))(*arrays)
    else:
        raise AttributeValueError(f"{spec.name}: nothing computes it outside a graph")
    return list(made) if isinstance(made, tuple) else [made]


class _Eager:
    """The emitter that computes at once: its handles are arrays, and every output is asked for."""

    outputs = 1 << 16
    fast = False

    def emit(self, operator: str, *inputs: Array | None, **attributes: Any) -> Any:
        spec = ops.get(operator)
        if spec.in_shape:
            source = inputs[0]
            if source is None:
                raise ShapeError(f"{operator}: expected an input, got none")
            types = spec.infer([source.shape], [source.dtype], attributes)
            return source.view_or_copy(types[0][1])
        made = _compute(spec, inputs, attributes)
        return made[0] if len(made) == 1 else tuple(made)

    def kernel(self, name: str, *inputs: Array | None, **attributes: Any) -> Any:
        return kernel(name, **attributes)(*inputs)

    def constant(self, value: Any, dtype: str) -> Array:
        if not isinstance(value, list | tuple):
            return Array.full((), value, dtype)
        from onemodel_tensors.interop import tensor

        return tensor(value, dtype=dtype)._array

    def type(self, handle: Array) -> tuple[str, tuple[int, ...]]:
        return handle.dtype, handle.shape


def _checked(
    name: str, position: int, gradient: Any, operand: Tensor | None, saved: set[int]
) -> Array | None:
    if gradient is None or operand is None:
        return None
    if not isinstance(gradient, Tensor):
        raise UsageError(
            f"gradient of {name}: expected a tensor or None for input {position}, got "
            f"{type(gradient).__name__}"
        )
    array, wanted = gradient._array, operand._array
    if array.shape != wanted.shape or array.dtype != wanted.dtype:
        raise ShapeError(
            f"gradient of {name}: expected {wanted.dtype} {wanted.shape} for input {position}, got "
            f"{array.dtype} {array.shape}"
        )
    # A gradient that is an operand's own memory would be summed into.
    return array.copy() if array.storage_id in saved else array
