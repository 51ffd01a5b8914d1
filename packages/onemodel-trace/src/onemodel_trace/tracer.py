"""The tracer: a recorded eager run becomes a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from onemodel_kernels import Array, ops
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import recording
from onemodel_tensors.recording import SymbolicSize
from onemodel_tensors.tensor import Tensor
from onemodel_trace.constants import MAX_CONSTANT_BYTES
from onemodel_trace.errors import TraceErrorKind, TraceException, user_location
from onemodel_trace.extents import (
    Axis,
    ExtentScope,
    SymbolicExtent,
    SymbolicShapeError,
    unwrap,
    wrap_shape,
)
from onemodel_trace.graph_build import build_graph
from onemodel_trace.graph_value import GraphValue
from onemodel_trace.graph_writer import GraphWriter
from onemodel_trace.lowerings import Recorded, find, refusal
from onemodel_trace.naming import AxisNames, axes_of, checked_name, invalid
from onemodel_trace.traced_model import TracedModel

if TYPE_CHECKING:
    from onemodel_tensors.record import BackwardRecord

__all__ = ["Tracer"]


class Tracer:
    """Records one eager run on the calling thread and writes it as an ONNX graph.

    Use it as a context manager; leaving the block restores the thread, finished or not::

        with Tracer.begin() as tracer:
            x = tracer.input("x", example, axis_names=("batch", None, None, "width"))
            traced = tracer.finish({"y": model(x)})

    A tensor that does not depend on an input is a constant with the values that it has when an operator
    first uses it. Writes that come later do not reach the graph, though large weights share their memory
    with it until the first of them, on whichever thread; a write during the trace makes ``finish`` raise.

    The run computes real values. Whatever would freeze a value or a size of this run into the
    graph raises :class:`TraceException` at the call that does it.
    """

    def __init__(self, max_constant_bytes: int) -> None:
        self._scope = ExtentScope(user_location, self.note_refusal)
        self.writer = GraphWriter(self, self._scope, max_constant_bytes)
        self._inputs: list[tuple[str, GraphValue]] = []
        self._examples: list[Array] = []
        self._names: dict[str, str] = {}
        self._thread = get_ident()
        self._ended = ""
        self._refusal: TraceException | None = None
        self.recording = False
        """Whether operators are being recorded."""

    @classmethod
    def begin(cls, *, max_constant_bytes: int = MAX_CONSTANT_BYTES) -> Tracer:
        """Start to record on the calling thread.

        Args:
            max_constant_bytes: Greatest size of one constant; larger ones are refused.

        Raises:
            TraceException: INVALID_USAGE when a tracer records on this thread already;
                NO_GRAD_IN_TRACE inside ``no_grad``.
        """
        from onemodel_tensors.autograd.mode import is_grad_enabled

        if recording.active_recorder() is not None:
            raise invalid(
                "Tracer.begin: a tracer records on this thread already; traces do not nest, finish "
                "or abort the other one first"
            )
        if not is_grad_enabled():
            raise TraceException(
                TraceErrorKind.NO_GRAD_IN_TRACE,
                "Tracer.begin: gradients are off here (no_grad or inference_mode), so operators would "
                "not be recorded; begin outside that block, a trace computes no gradients anyway",
            )
        tracer = cls(max_constant_bytes)
        recording.activate(tracer)
        tracer.recording = True
        tracer._scope.recorder = tracer
        return tracer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.abort()

    def abort(self) -> None:
        """Stop recording; the thread and all tensors are as if nothing had been traced."""
        self._stop("was aborted")

    def _stop(self, how: str) -> None:
        if self.recording:
            self.recording = False
            self._scope.recorder = None
            recording.deactivate(self)
            self._ended = how
            self._refusal = None
            self.writer.release()

    def note_refusal(self, refusal: TraceException) -> None:
        """Remember the first refusal: only a program that lets it through ends as its eager run would."""
        if self.recording and self._refusal is None:
            self._refusal = refusal

    def _check_recording(self, what: str) -> None:
        if not self.recording:
            raise invalid(f"{what}: this trace {self._ended or 'has not begun'}; begin a new one")
        if get_ident() != self._thread:
            error = invalid(f"{what}: this tracer records on another thread; use it where it began")
            self.note_refusal(error)
            raise error

    # What the user declares. What these calls refuse is the caller's to mend, and to try again.

    def input(self, name: str, example: Tensor, axis_names: AxisNames = None) -> Tensor:
        """Declare an input of the graph.

        Args:
            name: Its name in the graph, verbatim.
            example: The value of this run, any shape and dtype. Its axes that are not named keep
                their size in the graph.
            axis_names: A name, an :class:`Axis` (name with declared limits) or None for each axis,
                or a mapping from axis to one of these. The same name is the same size everywhere.

        Returns:
            A new tensor with the example's values: the one to give to the model.

        Raises:
            TraceException: INVALID_USAGE when the name or an axis name is unusable, or the example
                size of a symbolic axis is below 2, another symbol's, or outside its limits.
        """
        before = self._refusal
        try:
            self._check_recording("input")
            return self._input(name, example, axis_names)
        except TraceException:
            self._refusal = before
            raise

    def _input(self, name: str, example: Tensor, axis_names: AxisNames) -> Tensor:
        checked_name(f"input {name!r}", name, self._names)
        if not isinstance(example, Tensor):
            raise invalid(f"input {name!r}: expected a tensor, got {type(example).__name__}")
        if example._trace is not None and example._trace.recorder is not None:
            raise invalid(
                f"input {name!r}: the example is itself a traced tensor; give its detached copy"
            )
        shape = example._array.shape
        extents = tuple(
            size if axis is None else self._symbol(name, position, size, axis)
            for position, (size, axis) in enumerate(
                zip(shape, axes_of(name, len(shape), axis_names), strict=True)
            )
        )
        value = GraphValue(self, example.dtype, extents, name)
        self._names[name] = "an input"
        self._inputs.append((name, value))
        self._examples.append(example._array)
        self.writer.sizes.hold(value)
        tensor = Tensor(example._array)
        tensor._trace = value
        return tensor

    def _symbol(self, name: str, position: int, size: int, axis: Axis) -> SymbolicExtent:
        where = f"input {name!r}, axis {position} ({axis.name!r})"
        if size < 2:
            raise invalid(
                f"{where}: the example size of a symbolic axis must be at least 2, got {size}; sizes 0 "
                "and 1 hide what depends on it. The graph runs at size 1 all the same"
            )
        for other, known in self._scope.symbol_sizes().items():
            if other == axis.name and known != size:
                raise invalid(f"{where}: the same axis has size {known} elsewhere, got {size}")
            if other != axis.name and known == size:
                raise invalid(
                    f"{where}: the example size {size} is also that of axis {other!r}; give symbolic "
                    "axes different example sizes so that they can be told apart"
                )
        try:
            return SymbolicExtent(self._scope.declare(axis, size), self._scope)
        except ValueError as error:
            raise invalid(f"{where}: {error}") from None

    def parameter(self, name: str, tensor: Tensor) -> None:
        """Name a weight or buffer; it appears in the graph under this name if it is used.

        Args:
            name: Its name, verbatim unless an input or output has the same. Tied weights keep the
                first of their names.
            tensor: A tensor that does not depend on an input, before any operator used it.

        Raises:
            TraceException: INVALID_USAGE.
        """
        before = self._refusal
        try:
            self._check_recording("parameter")
            if not isinstance(tensor, Tensor):
                raise invalid(f"parameter {name!r}: expected a tensor, got {type(tensor).__name__}")
            if tensor._trace is not None and tensor._trace.recorder is not None:
                raise invalid(
                    f"parameter {name!r}: the tensor depends on an input, so it is no constant"
                )
            if type(name) is not str or not name:
                checked_name(f"parameter {name!r}", name, {})
            self.writer.constants.name(name, tensor)
        except TraceException:
            self._refusal = before
            raise

    def finish(
        self,
        outputs: Mapping[str, Tensor],
        function: Callable[..., Any] | None = None,
    ) -> TracedModel:
        """End the recording and give the graph.

        Args:
            outputs: The graph's outputs by name, in order.
            function: The eager function of the inputs, in order of declaration, that gives these
                outputs; :meth:`TracedModel.verify` runs it at other sizes.

        Raises:
            TraceException: INVALID_USAGE when an output is no tensor of this trace, the trace has
                ended, or the program caught a refusal and went on; IN_PLACE_MUTATION when a constant
                that the graph holds was written into.
        """
        before = self._refusal
        try:
            self._check_recording("finish")
            return self._finish(outputs, function)
        except TraceException:
            self._refusal = before
            raise

    def _finish(
        self, outputs: Mapping[str, Tensor], function: Callable[..., Any] | None
    ) -> TracedModel:
        if self._refusal is not None:
            raise invalid(
                "finish: the program caught a refusal of this trace and went on, so what it did instead "
                f"would be frozen into the graph; let it through ({self._refusal})"
            ) from self._refusal
        if not outputs or not isinstance(outputs, Mapping):
            raise invalid(
                "finish: expected a dict of output names and tensors with at least one entry"
            )
        values: list[tuple[str, GraphValue]] = []
        taken = dict(self._names)
        for name, tensor in outputs.items():
            checked_name(f"output {name!r}", name, taken)
            taken[name] = "an output"
            if not isinstance(tensor, Tensor):
                raise invalid(f"output {name!r}: expected a tensor, got {type(tensor).__name__}")
            trace = tensor._trace
            if not isinstance(trace, GraphValue) or trace.tracer is not self:
                raise invalid(
                    f"output {name!r} (shape {tensor._array.shape}) does not depend on an input of this "
                    "trace; what is constant needs no graph"
                )
            values.append((name, trace))
        self.writer.constants.check_unchanged()
        sizes = self._scope.symbol_sizes()
        graph = build_graph(self.writer, self._inputs, values, self._scope)
        self._stop("has finished")
        return TracedModel(
            graph,
            guards=tuple(self._scope.guards),
            axes=dict(self._scope.axes),
            example_sizes=sizes,
            examples=tuple(self._examples),
            input_axes=tuple(
                tuple(
                    extent if type(extent) is int else extent.expression for extent in value.shape
                )
                for _, value in self._inputs
            ),
            function=function,
        )

    # What the tensors report.

    def record(self, record: BackwardRecord, outputs: tuple[Tensor, ...]) -> None:
        """Write one operator call; see :class:`onemodel_tensors.recording.Recorder`."""
        operator = record.operator
        try:
            if not self.recording or get_ident() != self._thread:
                self._check_recording(operator)
            capture = self.writer.constants.capture
            inputs: list[GraphValue | None] = []
            for tensor in record.inputs:
                if tensor is None:
                    inputs.append(None)
                elif tensor._trace is None:
                    inputs.append(capture(tensor))
                else:
                    inputs.append(self._value(tensor))
            attributes = record.attributes
            if attributes:
                attributes = {name: unwrap(value) for name, value in attributes.items()}
            values = self._lower(operator, inputs, attributes, len(outputs))
        except TraceException:
            raise
        except SymbolicShapeError as error:
            raise TraceException(
                TraceErrorKind.SYMBOLIC_SHAPE, self._in_call(record, error)
            ) from None
        except OneModelError as error:
            raise TraceException(
                TraceErrorKind.UNSUPPORTED_OPERATION, self._in_call(record, error)
            ) from error
        for tensor, value in zip(outputs, values, strict=True):
            _check_example(operator, tensor, value)
            tensor._trace = value

    def _in_call(self, record: BackwardRecord, error: Exception) -> str:
        text = str(error)
        operator = record.operator
        named = text if text.startswith(operator) else f"{operator}: {text}"
        shown = ", ".join(self._described(t) for t in record.inputs if t is not None)
        return f"{named}; operands: {shown or 'none'}"

    def _lower(
        self, operator: str, inputs: list[GraphValue | None], attributes: dict[str, Any], count: int
    ) -> Sequence[GraphValue]:
        lowering = find(operator)
        if lowering is not None:
            result = lowering(self.writer, Recorded(operator, inputs, attributes, count))
        else:
            reason = refusal(operator)
            spec = None if reason else ops.find(operator)
            if spec is None or (spec.domain and "::" not in operator):
                raise TraceException(
                    TraceErrorKind.UNSUPPORTED_OPERATION,
                    f"{operator}: {reason or 'there is no way yet to write this operator in ONNX'}",
                )
            _require_plain(spec, attributes)
            return self.writer.emit_spec(spec, inputs, attributes, count)
        return result if isinstance(result, tuple) else (result,)

    def _value(self, tensor: Tensor) -> GraphValue:
        """The value of a traced tensor."""
        trace = tensor._trace
        if type(trace) is GraphValue and trace.tracer is self:
            return trace
        assert trace is not None
        state = "records on another thread" if trace.recorder is not None else "has ended"
        raise invalid(
            f"a tensor of shape {tensor._array.shape} belongs to a trace that {state}, so this trace "
            "cannot tell what it depends on; declare it as an input, or detach() and clone() it"
        )

    def _described(self, tensor: Tensor) -> str:
        trace = tensor._trace
        shape: Any = tensor._array.shape
        name = ""
        if isinstance(trace, GraphValue):
            shape = trace.shape
            name = f"{trace.label!r} " if trace.node is None and trace.label else ""
            if trace.node is not None:
                name = f"(result of {trace.node.operator}) "
        text = ", ".join(str(extent) if type(extent) is int else repr(extent) for extent in shape)
        return f"tensor {name}of shape ({text}{',' if len(shape) == 1 else ''}) and dtype {tensor.dtype}"

    def _refuse(self, kind: TraceErrorKind, what: str, tensor: Tensor, why: str) -> TraceException:
        refusal = TraceException(kind, f"{what} of {self._described(tensor)}: {why}")
        # Another thread that reads a traced tensor has no recorder of its own to remember this.
        self.note_refusal(refusal)
        return refusal

    def before_read(self, tensor: Tensor, what: str) -> None:
        """Refuse: Python would see values."""
        raise self._refuse(
            TraceErrorKind.DATA_DEPENDENT, what, tensor,
            "the value is known only when the graph runs, and what is decided from it here would be "
            "frozen; keep it a tensor (where, masks), or read it before the trace",
        )  # fmt: skip

    def before_write(self, tensor: Tensor, what: str) -> None:
        """Refuse: a graph's values are never written into."""
        raise self._refuse(
            TraceErrorKind.IN_PLACE_MUTATION, what, tensor,
            "a graph cannot write into a value; use the form that returns a new tensor (where, cat, "
            "scatter, x = x + y)",
        )  # fmt: skip

    def before_rebind(self, tensor: Tensor, what: str) -> None:
        """Allow ``x += y`` only where nothing else sees the storage of x."""
        storage = tensor._array.storage_id
        if any(example.storage_id == storage for example in self._examples):
            reason = "it is an input, whose storage the caller holds"
        elif tensor._array.storage_refs > 1:
            reason = "another live tensor shares its storage and would have to change with it"
        else:
            return
        raise self._refuse(
            TraceErrorKind.IN_PLACE_MUTATION, what, tensor,
            f"{reason}; write x = x + y (or the call without inplace=True)",
        )  # fmt: skip

    def before_capture(self, tensor: Tensor, source: Tensor, what: str) -> None:
        """Refuse: values of this run would leave the trace through an untraced tensor."""
        raise self._refuse(
            TraceErrorKind.DATA_DEPENDENT, what, source,
            f"its values would be frozen in an untraced tensor of shape {tensor._array.shape}; return "
            "the traced tensor instead",
        )  # fmt: skip

    def before_iteration(self, tensor: Tensor) -> None:
        """Refuse to iterate over a symbolic axis: the number of steps would be frozen."""
        trace = tensor._trace
        if isinstance(trace, GraphValue) and trace.shape and type(trace.shape[0]) is not int:
            raise self._refuse(
                TraceErrorKind.SYMBOLIC_SHAPE, "iteration", tensor,
                f"the first axis has {trace.shape[0].text()} entries, and the loop would be unrolled "
                "for this size only; use an operator over the whole axis",
            )  # fmt: skip

    def shape(self, tensor: Tensor) -> tuple[Any, ...]:
        """The shape as Python sees it: a size that differs from run to run is an Extent."""
        trace = tensor._trace
        return wrap_shape(trace.shape) if isinstance(trace, GraphValue) else tensor._array.shape

    def size_tensor(self, size: SymbolicSize, dtype: str) -> Tensor:
        """A traced 0-d tensor that holds a size."""
        self._check_recording("a size as a value")
        extent = unwrap(size)
        value = self.writer.sizes.scalar(extent)
        if dtype != "int64":
            value = self.writer.emit("Cast", value, to=dtype)
        tensor = Tensor(Array.full((), size.example, dtype))
        tensor._trace = value
        return tensor

    def before_layout(self, tensor: Tensor, what: str) -> None:
        """Refuse strides of a value with symbolic extents: they are products of sizes."""
        trace = tensor._trace
        if isinstance(trace, GraphValue) and not trace.is_static:
            raise self._refuse(
                TraceErrorKind.SYMBOLIC_SHAPE, what, tensor,
                "it depends on symbolic sizes, and on a memory layout that a graph does not have",
            )  # fmt: skip

    def before_no_grad(self, what: str) -> None:
        """Refuse: results computed inside would not be recorded."""
        raise TraceException(
            TraceErrorKind.NO_GRAD_IN_TRACE,
            f"{what} was entered while tracing: results inside would not be recorded and would be "
            "frozen; leave it out, a trace computes no gradients",
        )

    def before_random(self, what: str) -> None:
        """Refuse: the sample of this run would be frozen.

        Before the first input nothing can depend on one, so a draw is as good as one before the trace.
        """
        if not self._inputs:
            return
        raise TraceException(
            TraceErrorKind.UNSUPPORTED_OPERATION,
            f"{what} while tracing: a sample of this run would be frozen into the graph, and the model "
            "would draw others; draw before the trace, and make the sample an input if it is to change",
        )

    def before_backward(self, what: str) -> None:
        """Refuse: a trace records no gradients."""
        raise TraceException(
            TraceErrorKind.UNSUPPORTED_OPERATION,
            f"{what} while tracing: a trace is an inference graph without gradients; train before it",
        )

    def before_requires_grad(self, tensor: Tensor, value: bool) -> None:
        """Traced tensors report that they require a gradient; that cannot be switched off."""
        if not value:
            raise invalid(
                f"requires_grad_(False) of {self._described(tensor)}: a traced tensor is recorded "
                "whether it requires a gradient or not; leave the call out"
            )

    def refuse_operator(self, operator: str, tensor: Tensor, reason: str) -> None:
        """Refuse what no graph can express."""
        dependent = "value" in reason or "data" in reason
        kind = TraceErrorKind.DATA_DEPENDENT if dependent else TraceErrorKind.UNSUPPORTED_OPERATION
        raise self._refuse(kind, operator, tensor, reason)


def _require_plain(spec: ops.OpSpec, attributes: dict[str, Any]) -> None:
    """An attribute of a node is one number for every run; only an operand can hold a size."""
    for name, value in attributes.items():
        listed = value if type(value) is tuple else (value,)
        symbolic = [entry for entry in listed if type(entry) is SymbolicExtent]
        if symbolic and name in spec.attributes:
            raise TraceException(
                TraceErrorKind.SYMBOLIC_SHAPE,
                f"{spec.name}: the attribute {name!r} would be frozen at the size of this run; only an "
                "operand (an input that carries sizes) follows a symbolic axis",
            )


def _check_example(operator: str, tensor: Tensor, value: GraphValue) -> None:
    """The written node must compute what the eager call computed: shapes and dtypes must agree."""
    array = tensor._array
    came, shape = array.shape, value.shape
    # Static shapes, the usual case, are tuples of ints already; a symbolic extent equals no int.
    if shape != came:
        shape = tuple([extent if type(extent) is int else extent.example for extent in shape])
    if shape != came or value.dtype != array.dtype:
        raise TraceException(
            TraceErrorKind.UNSUPPORTED_OPERATION,
            f"{operator}: the graph would give {value.dtype} {shape} where the eager call gave "
            f"{tensor.dtype} {tensor._array.shape}; this is a defect of the tracer, please report it",
        )
