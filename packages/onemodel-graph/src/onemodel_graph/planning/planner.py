"""The planner: turns operators on known shapes into kernel calls and plan-time constants.

It is also the :class:`onemodel_kernels.ops.Emitter` that decompositions write to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.context import Context
from onemodel_graph.planning.numbers import read, tensor
from onemodel_graph.planning.shortcuts import BY_EXTENTS, SHORTCUTS, view
from onemodel_graph.planning.slot import Call, Shape, Slot, constant, nbytes
from onemodel_graph.planning.watched import Watched
from onemodel_kernels import ops
from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError
from onemodel_kernels.ops import OpSpec
from onemodel_kernels.ops.shapes import shape_range

FOLD_BYTES = 1 << 24
"""Larger results of constants that belong to one plan are computed at run time instead of kept."""


class NeedsValue(Exception):
    """Planning cannot go on before the value of a slot is known."""

    def __init__(self, slot: Slot, what: str) -> None:
        super().__init__(what)
        self.slot = slot


ALL = 1 << 16
"""More outputs than an operator has."""


class Planner:
    """Collects the calls of one segment.

    Args:
        context: The caches of the session.
        watch: Whether to find out which nodes are planned alike for all sizes.

    Attributes:
        calls: The kernel calls so far.
        label: The node that is being planned, for messages.
        sized: The plan of the node that is being planned depends on sizes.
        bindings: What is known of each value of the graph.
        lasting: Every input of the node that is being planned is permanent.
        outputs: How many outputs of the operator that is being decomposed are asked for.
        fast: Whether kernels that are not exact may be used.
    """

    def __init__(self, context: Context, watch: bool = False) -> None:
        self.context = context
        self.watch = watch
        self.sized = False
        self._fixed: set[Slot] = set()
        self.calls: list[Call] = []
        self.label = ""
        self.bindings: dict[Any, Any] = {}
        self.lasting = False
        self.outputs = ALL
        self.fast = context.fast

    def type(self, handle: Slot) -> tuple[str, Shape]:
        """The dtype and shape of a slot."""
        return handle.dtype, self._shape(handle)

    def _depends(self) -> None:
        self.sized = True

    def _shape(self, slot: Slot) -> Shape:
        return (
            Watched(slot.shape, self._depends) if self.watch and not slot.permanent else slot.shape
        )

    def fixed(self, slot: Slot) -> bool:
        """Whether a constant is the same for all sizes."""
        return slot.permanent or slot in self._fixed

    def _note(self, slots: Sequence[Slot]) -> None:
        """Keeps constants that no size went into."""
        if self.watch and not self.sized:
            self._fixed.update(slots)

    def constant(self, value: Any, dtype: str) -> Slot:
        """A constant of numbers."""
        made = constant(tensor(value, dtype))
        self._note([made])
        return made

    def value(self, slot: Slot, what: str) -> Any:
        """The numbers in a slot.

        Raises:
            NeedsValue: when they are not known before the run.
        """
        if slot.array is None:
            raise NeedsValue(slot, what)
        if not self.fixed(slot):
            self.sized = True
        return read(slot.array)

    def emit(self, operator: str, *inputs: Slot | None, **attributes: Any) -> Any:
        """Adds an operator by the name of its spec."""
        spec = ops.get(operator)
        outputs = self.apply(spec, inputs, attributes)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def apply(
        self,
        spec: OpSpec,
        inputs: Sequence[Slot | None],
        attributes: dict[str, Any],
        outputs: int = ALL,
    ) -> Sequence[Slot]:
        """Adds an operator on tensor inputs; operands are among the attributes.

        At least as many outputs are returned as are asked for, if the operator has them.
        """
        call = spec.call(
            [None if slot is None else self._shape(slot) for slot in inputs],
            [None if slot is None else slot.dtype for slot in inputs],
            attributes,
        )
        try:
            if spec.in_shape:
                source = inputs[0]
                if source is None:
                    raise ShapeError("the input is required")
                return (self.view(source, spec.rule(call)[0][1]),)
            if spec.decompose is not None:
                self.outputs = outputs
                result = spec.decompose(self, call, inputs)
                return result if isinstance(result, tuple) else (result,)
            if spec.kernel is None:
                return (self._from_shape(spec, inputs[0], call),)
            shortcut = SHORTCUTS.get(spec.name)
            if shortcut is not None and not spec.domain:
                source = inputs[0]
                if source is not None and source.array is None:
                    self.sized = self.sized or spec.name in BY_EXTENTS
                    shown = shortcut(source, call, inputs)
                    if shown is not None:
                        return shown
            prepared = spec.kernel_attributes(call)
        except (ShapeError, DtypeError, AttributeValueError) as error:
            text = str(error)
            if text.startswith(f"{spec.name}"):
                raise
            raise type(error)(f"{spec.name}: {text}") from None
        return self._call(spec.kernel, inputs, prepared)

    def kernel(self, name: str, *inputs: Slot | None, **attributes: Any) -> Any:
        """Adds a call of a native kernel."""
        outputs = self._call(name, inputs, attributes)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _call(
        self, name: str, inputs: Sequence[Slot | None], attributes: dict[str, Any]
    ) -> Sequence[Slot]:
        key, kernel = self.context.kernel(name, attributes)
        known = all(slot is None or slot.array is not None for slot in inputs)
        if self.watch:
            given = (slot for slot in inputs if slot is not None and slot.array is not None)
            self.sized = self.sized or not all(map(self.fixed, given))
        types = None
        if known:
            permanent = inputs and all(slot is None or slot.permanent for slot in inputs)
            if not permanent:
                types = self._infer(kernel, inputs)
            if types is None or sum(nbytes(Slot(d, s)) for d, s in types) <= FOLD_BYTES:
                folded = self.context.fold(key, kernel, inputs, self.lasting)
                self._note(folded)
                return folded
        if types is None:
            types = self._infer(kernel, inputs)
        outputs = [Slot(dtype, shape) for dtype, shape in types]
        bound = self.context.bound(key, kernel, inputs)
        self.calls.append(Call(bound, list(inputs), outputs, self.label))
        return outputs

    @staticmethod
    def _infer(kernel: Any, inputs: Sequence[Slot | None]) -> list[tuple[str, Shape]]:
        types = [None if slot is None else (slot.dtype, slot.shape) for slot in inputs]
        found: list[tuple[str, Shape]] = kernel.infer(types)
        return found

    def view(self, source: Slot, shape: Shape) -> Slot:
        """The elements of a slot in another shape, without a copy where the source allows it."""
        if source.array is None or not self.fixed(source):
            self.sized = True
        if shape == source.shape:
            return source
        if source.array is not None:
            viewed = constant(source.array.view_or_copy(shape))
            viewed.permanent = source.permanent
            if source.permanent:
                # Keeps the identity of the array, by which packed forms are found, stable.
                return self.context.views.setdefault((id(source.array), shape), viewed)
            self._note([viewed])
            return viewed
        return view(source, shape)

    def _from_shape(self, spec: OpSpec, source: Slot | None, call: Any) -> Slot:
        if source is None:
            raise ShapeError("the input is required")
        self.sized = self.sized or not source.permanent
        if spec.name == "Shape":
            start, end = shape_range(call)
            return self.constant(list(source.shape[start:end]), "int64")
        elements = 1
        for extent in source.shape:
            elements *= extent
        return self.constant(elements, "int64")
