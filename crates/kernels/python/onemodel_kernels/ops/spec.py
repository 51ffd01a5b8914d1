"""The form in which the facts of one operator are written down.

An :class:`OpSpec` says what an operator is called, what goes in and out, which attributes it has,
which types come out for given types, and which native kernel (or which other operators) computes
it. Everything else in the project that needs such a fact reads it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError
from onemodel_kernels.ops.extents import Extent

Shape = tuple[Extent, ...]
TensorType = tuple[str, Shape]
AttributeType = Literal[
    "int", "float", "string", "ints", "floats", "strings", "dtype", "tensor", "graph", "type"
]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its type, its default (``None`` = none) and whether it must be given.

    ``dtype`` is an ONNX element type, held as its name (``"float32"``) everywhere but in the file.
    """

    type: AttributeType
    default: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input or output.

    ``kind="operand"`` marks an ONNX input whose *value* shapes the result (the axes of a reduction,
    the shape of a Reshape): the kernel takes it as an attribute of the same name.
    """

    name: str
    kind: Literal["tensor", "operand"] = "tensor"
    optional: bool = False
    variadic: bool = False


@dataclass(eq=False, slots=True)
class Call:
    """One use of an operator: the types of its tensor inputs and all attributes, defaults and
    operands included.
    """

    operator: str
    shapes: Sequence[Shape | None]
    dtypes: Sequence[str | None]
    attributes: Mapping[str, Any]

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes.get(attribute)

    def has(self, index: int) -> bool:
        """Whether tensor input ``index`` is present."""
        return index < len(self.shapes) and self.shapes[index] is not None

    def shape(self, index: int = 0) -> Shape:
        """The shape of a tensor input that must be there."""
        shape = self.shapes[index] if index < len(self.shapes) else None
        if shape is None:
            raise ShapeError(f"tensor input {index} is required, but it is absent")
        return shape

    def dtype(self, index: int = 0) -> str:
        """The dtype of a tensor input that must be there."""
        dtype = self.dtypes[index] if index < len(self.dtypes) else None
        if dtype is None:
            raise DtypeError(f"tensor input {index} is required, but it is absent")
        return dtype

    def rank(self, index: int = 0) -> int:
        """The number of axes of a tensor input."""
        return len(self.shape(index))

    def axis(self, name: str = "axis", rank: int | None = None) -> int:
        """The attribute ``name`` as a non-negative axis of the first input (or of ``rank`` axes)."""
        return normalise_axis(self[name], self.rank() if rank is None else rank, name)

    def agree(self, *indices: int) -> str:
        """The one dtype that the named tensor inputs (all present ones, when none is named) have."""
        shapes, dtypes = self.shapes, self.dtypes
        present = len(shapes)
        found = [
            dtypes[i]
            for i in indices or range(len(dtypes))
            if i < present and shapes[i] is not None
        ]
        if not found or found[0] is None:
            raise DtypeError("at least one tensor input is required")
        for other in found[1:]:
            if other != found[0]:
                raise DtypeError(
                    f"inputs must share one dtype, but they are {', '.join(map(str, found))}"
                )
        return found[0]

    def static(self, name: str) -> Any:
        """The operand ``name``, which must be known."""
        value = self.attributes.get(name)
        if value is None:
            raise AttributeValueError(f"the operand {name!r} is required")
        return value


def normalise_axis(axis: Any, rank: int, name: str = "axis") -> int:
    """``axis`` in ``0 … rank-1``; raises ``ShapeError`` when it is outside ``-rank … rank-1``."""
    if axis is None:
        raise AttributeValueError(f"{name} is required")
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{name} {axis} is out of range for {rank} axes (allowed: {-rank} to {rank - 1})"
        )
    return int(axis) + rank if axis < 0 else int(axis)


def normalise_axes(axes: Sequence[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Each axis in ``0 … rank-1``, in the given order; raises ``ShapeError`` for a repeated one."""
    found = tuple(normalise_axis(axis, rank, name) for axis in axes)
    if len(set(found)) != len(found):
        raise ShapeError(f"{name} {tuple(axes)} names an axis twice")
    return found


class Emitter(Protocol):
    """What a decomposition writes to: each method adds operators and returns handles on their
    results.

    Attributes:
        outputs: How many outputs of the operator that is being decomposed are asked for.
        fast: Whether kernels that are not exact may be used.
    """

    outputs: int
    fast: bool

    def emit(self, operator: str, *inputs: Any, **attributes: Any) -> Any:
        """Adds an operator by its spec's name; one handle, or a tuple when it declares several
        outputs.
        """

    def kernel(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        """Adds a call of a native kernel; one handle, or a tuple when the kernel has several
        outputs.
        """

    def constant(self, value: Any, dtype: str) -> Any:
        """A constant of a number or of a (nested) list of numbers."""

    def type(self, handle: Any) -> TensorType:
        """The dtype and concrete shape of a handle."""


Rule = Callable[[Call], list[TensorType]]
Prepare = Callable[[Call], dict[str, Any]]
Decompose = Callable[[Emitter, Call, Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """The facts of one operator.

    Attributes:
        name: The operator's name; ONNX's spelling for ONNX operators.
        inputs: Inputs in ONNX's order, operands among them.
        outputs: Outputs in order.
        rule: Gives the output types of a :class:`Call`.
        attributes: Attributes by name, with ONNX's defaults.
        domain: ``""`` for ONNX's own, ``"onemodel"`` for operators that ONNX does not have.
        since_version: The opset version whose meaning this spec has.
        kernel: The native kernel, or ``None`` when ``decompose`` or the graph layer itself
            computes it.
        prepare: Kernel attributes of a call; by default the attributes and operands that are set.
        decompose: Writes the operator with other operators and kernels.
        dynamic: Writes the operator with others when the value of an operand is not known
            before the run; it gets every input in ONNX's order.
        in_shape: The result's elements are the input's in the same order, so it may be a view.
        data_dependent: The output shape depends on values, so it is known only when the
            operator has run.
        exact: The bits of the result depend on the inputs' bits alone.
        determinism: How the arithmetic is ordered, in words.
        doc: The formula in a line.
    """

    name: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[InputSpec, ...]
    rule: Rule
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    domain: str = ""
    since_version: int = 1
    kernel: str | None = None
    prepare: Prepare | None = None
    decompose: Decompose | None = None
    dynamic: Decompose | None = None
    in_shape: bool = False
    data_dependent: bool = False
    exact: bool = True
    determinism: str = "Each element depends on its own inputs; exact."
    doc: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tensor_inputs: tuple[InputSpec, ...] = ()
    operands: tuple[tuple[int, str], ...] = ()
    required: tuple[str, ...] = ()
    accepted: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "defaults", {n: a.default for n, a in self.attributes.items()})
        object.__setattr__(
            self, "tensor_inputs", tuple(i for i in self.inputs if i.kind == "tensor")
        )
        operands = tuple((p, i.name) for p, i in enumerate(self.inputs) if i.kind == "operand")
        object.__setattr__(self, "operands", operands)
        required = tuple(n for n, a in self.attributes.items() if a.required)
        object.__setattr__(self, "required", required)
        accepted = frozenset((*self.attributes, *(name for _, name in operands)))
        object.__setattr__(self, "accepted", accepted)

    def call(
        self,
        shapes: Sequence[Shape | None],
        dtypes: Sequence[str | None],
        attributes: Mapping[str, Any],
    ) -> Call:
        """A :class:`Call` with defaults filled in.

        ``shapes`` and ``dtypes`` run parallel to :attr:`tensor_inputs` (the arrays that a kernel
        takes; an absent optional one is ``None``, trailing ones may be left out); operands are in
        ``attributes`` by their input's name.
        """
        return Call(self.name, shapes, dtypes, {**self.defaults, **attributes})

    def infer(
        self,
        shapes: Sequence[Shape | None],
        dtypes: Sequence[str | None],
        attributes: Mapping[str, Any],
    ) -> list[TensorType]:
        """The dtype and shape of every output, optional ones included.

        Args:
            shapes: Shapes of the tensor inputs, of ints or symbolic extents; ``None`` where an
                optional one is absent.
            dtypes: Their dtypes.
            attributes: Attributes and operands by name; missing ones take their defaults.

        Raises:
            ShapeError, DtypeError, AttributeValueError: naming the operator, what was expected and
            what came.
        """
        try:
            self.check(attributes)
            return self.rule(self.call(shapes, dtypes, attributes))
        except (ShapeError, DtypeError, AttributeValueError) as error:
            text = str(error)
            if text.startswith(f"{self.name}: "):
                raise
            raise type(error)(f"{self.name}: {text} (input shapes {list(shapes)})") from None

    def check(self, attributes: Mapping[str, Any]) -> None:
        """Raises ``AttributeValueError`` for an unknown attribute or a required one that is
        missing.
        """
        for name in attributes:
            if name not in self.accepted:
                known = ", ".join(self.attributes) or "none"
                raise AttributeValueError(
                    f"{self.name}: unknown attribute {name!r}; it has {known}"
                )
        for name in self.required:
            if attributes.get(name) is None:
                raise AttributeValueError(f"{self.name}: the attribute {name!r} is required")

    def kernel_attributes(self, call: Call) -> dict[str, Any]:
        """The attributes that the native kernel takes for a call."""
        if self.prepare is not None:
            return self.prepare(call)
        return {name: value for name, value in call.attributes.items() if value is not None}


_FIELDS = {"?": {"optional": True}, "*": {"variadic": True}}


def slots(text: str) -> tuple[InputSpec, ...]:
    """Inputs or outputs written in one line: ``"data @axes?"``; ``@`` an operand, ``?`` optional,
    ``*`` variadic.
    """
    found = []
    for word in text.split():
        mark = _FIELDS.get(word[-1], {})
        name = word.strip("@?*")
        found.append(InputSpec(name, "operand" if word[0] == "@" else "tensor", **mark))
    return tuple(found)


def integer(default: int | None = None, required: bool = False) -> Attribute:
    """An integer attribute."""
    return Attribute("int", default, required)


def real(default: float | None = None, required: bool = False) -> Attribute:
    """A float attribute."""
    return Attribute("float", default, required)


def text(default: str | None = None, required: bool = False) -> Attribute:
    """A string attribute."""
    return Attribute("string", default, required)


def integers(default: tuple[int, ...] | None = None, required: bool = False) -> Attribute:
    """An attribute that is a list of integers."""
    return Attribute("ints", default, required)


def dtype_name(default: str | None = None, required: bool = False) -> Attribute:
    """An attribute that names an element type."""
    return Attribute("dtype", default, required)
