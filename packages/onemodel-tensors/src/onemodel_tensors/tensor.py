"""The tensor: an array, its place in the autograd graph, and the questions a recorder must be asked.

Operators are defined in :mod:`onemodel_tensors.ops`, one family a file; those that are methods too are listed in
:mod:`onemodel_tensors.operator_methods`, which gives them to the class once both exist.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onemodel_kernels import Array
from onemodel_kernels.errors import OneModelError, ShapeError
from onemodel_tensors.autograd.nodes import Hook, Leaf, Node, Output
from onemodel_tensors.devices import CPU, Device
from onemodel_tensors.dtypes import FLOATING
from onemodel_tensors.left_out import missing
from onemodel_tensors.record import BackwardRecord
from onemodel_tensors.recording import Recorder, TracedValue

if TYPE_CHECKING:
    import numpy as np

    from onemodel_tensors.autograd.hooks import HookHandle
    from onemodel_tensors.operator_methods import OperatorMethods
else:
    OperatorMethods = object

__all__ = ["Tensor", "ViewOf"]


class ViewOf:
    """Which tensor's storage a tensor shows, and how.

    Attributes:
        base: the tensor that is no view itself.
        replay: the view as a function of arrays of the base's shape.
    """

    __slots__ = ("base", "replay")

    def __init__(self, base: Tensor, replay: Callable[[Array], Array]) -> None:
        self.base = base
        self.replay = replay

    @classmethod
    def of(cls, source: Tensor, view: Tensor, replay: Callable[[Array], Array]) -> ViewOf:
        """The relation of ``view``, made from ``source`` by ``replay``; the base comes to know it weakly."""
        base, whole = source, replay
        if source._view is not None:
            base, first = source._view.base, source._view.replay

            def whole(array: Array) -> Array:
                return replay(first(array))

        views = base._views
        if views is None:
            base._views = [weakref.ref(view)]
        else:
            if len(views) >= 16 and len(views) & (len(views) - 1) == 0:
                views[:] = [known for known in views if known() is not None]
            views.append(weakref.ref(view))
        return cls(base, whole)


class Tensor(OperatorMethods):
    """An n-dimensional array of one dtype that operators and the backward pass work on.

    Make one with :func:`~onemodel_tensors.tensor`, :func:`~onemodel_tensors.from_numpy` or a factory; the class
    itself takes a native array.

    Args:
        array: the elements. The tensor shares its storage. Nested sequences of numbers and numpy arrays become a new
            tensor of the default dtype, as in PyTorch.
        requires_grad: whether gradients are to be computed for it.
    """

    __slots__ = ("__weakref__", "_array", "_node", "_trace", "_view", "_views")

    __array_ufunc__ = None
    """Makes numpy leave mixed expressions to the tensor's own operators."""

    __array_priority__ = 1000

    def __init__(self, array: Any, requires_grad: bool = False) -> None:
        if type(array) is not Array:
            from onemodel_tensors.interop import values_of

            array = values_of(array)
        self._array: Array = array
        self._node: Node | None = None
        self._trace: TracedValue | None = None
        self._view: ViewOf | None = None
        self._views: list[weakref.ref[Tensor]] | None = None
        if requires_grad:
            self.requires_grad_()

    def _asked(self) -> Recorder | None:
        """The recorder that must be asked before Python sees or changes this tensor."""
        return None if self._trace is None else self._trace.recorder

    def _before_read(self, what: str) -> None:
        recorder = self._asked()
        if recorder is not None:
            recorder.before_read(self, what)

    # What a tensor is.

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; those of symbolic axes are symbolic sizes while a trace records."""
        if self._trace is None:
            return self._array.shape
        recorder = self._trace.recorder
        return self._array.shape if recorder is None else recorder.shape(self)

    @property
    def dtype(self) -> str:
        """The name of the elements' type, as ``"float32"``."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def device(self) -> Device:
        """Where the elements are: always ``"cpu"``."""
        return CPU

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.numel() * self._array.itemsize

    def dim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis.

        Raises:
            ShapeError: there is no such axis.
        """
        shape = self.shape
        if dim is None:
            return shape
        if not -len(shape) <= dim < len(shape):
            raise ShapeError(
                f"size: expected an axis in [{-len(shape)}, {len(shape)}) of a tensor of shape {shape}, got {dim}"
            )
        return shape[dim]

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count = count * extent
        return count

    def nelement(self) -> int:
        """The number of elements."""
        return self.numel()

    def ndimension(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def is_complex(self) -> bool:
        """Whether the elements are complex: never."""
        return False

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return self._array.dtype != "bool" and not self._array.dtype.startswith("u")

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device: never."""
        return False

    def pin_memory(self) -> Tensor:
        """The tensor itself: no memory needs pinning for the CPU."""
        return self

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """The distance in elements between neighbours along each axis, or along one."""
        recorder = self._asked()
        if recorder is not None:
            recorder.before_layout(self, "stride()")
        strides = self._array.strides
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """The position of the first element in the storage, in elements."""
        recorder = self._asked()
        if recorder is not None:
            recorder.before_layout(self, "storage_offset()")
        return self._array.offset

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self._array.is_contiguous

    def is_floating_point(self) -> bool:
        """Whether the dtype is one of the floating-point ones."""
        return self._array.dtype in FLOATING

    @property
    def _version(self) -> int:
        """How often the storage has been written into."""
        return self._array.version

    @property
    def T(self) -> Tensor:
        """All axes in reverse order, as a view."""
        from onemodel_tensors.ops.permuting import reversed_axes

        return reversed_axes(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged, as a view."""
        return self.adjoint()

    @property
    def H(self) -> Tensor:
        """The last two axes exchanged, as a view."""
        return self.adjoint()

    # What autograd knows.

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is computed for this tensor; true for every traced one while its trace records."""
        return self._node is not None or self._asked() is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Say whether gradients are to be computed for this tensor, and return it.

        Raises:
            OneModelError: the dtype is no floating-point one, or the tensor is the result of an operator and is to
                stop requiring a gradient (use ``detach``).
        """
        recorder = self._asked()
        if recorder is not None:
            recorder.before_requires_grad(self, requires_grad)
            return self
        if not requires_grad:
            if self._node is not None and not isinstance(self._node, Leaf):
                raise OneModelError(
                    f"requires_grad_(False): expected a leaf tensor, got the result of {self._node_name()}; "
                    "detach() gives a tensor that does not require a gradient"
                )
            self._node = None
        elif self._node is None:
            if self._array.dtype not in FLOATING:
                raise OneModelError(
                    f"requires_grad_: expected a floating-point dtype, got {self._array.dtype}; "
                    "only such tensors have gradients"
                )
            self._node = Leaf()
            self._view = None
        return self

    def _node_name(self) -> str:
        node = self._node
        return (
            node.record.operator
            if isinstance(node, Output)
            else getattr(node, "operator", "nothing")
        )

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator made this tensor."""
        return self._node is None or isinstance(self._node, Leaf)

    @property
    def grad_fn(self) -> BackwardRecord | None:
        """The record of the operator that made this tensor, or ``None`` for a leaf."""
        node = self._node
        if node is None or isinstance(node, Leaf):
            return None
        return node.record if isinstance(node, Output) else node

    @property
    def grad(self) -> Tensor | None:
        """The gradients summed up by backward passes since it was last set to ``None``; same shape and dtype."""
        node = self._node
        if isinstance(node, Leaf):
            return node.grad
        from onemodel_tensors.autograd.hooks import retained

        return retained(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        node = self._node
        if value is not None and (
            value._array.shape != self._array.shape or value.dtype != self.dtype
        ):
            raise ShapeError(
                f"grad: expected a tensor of shape {self._array.shape} and dtype {self.dtype}, "
                f"got {value._array.shape} and {value.dtype}"
            )
        if isinstance(node, Leaf):
            node.grad = value
        elif value is not None:
            raise OneModelError(
                "grad: expected a leaf tensor that requires a gradient; call requires_grad_() first"
            )

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """See :func:`onemodel_tensors.autograd.backward`."""
        from onemodel_tensors.autograd.engine import backward

        backward((self,), (gradient,), retain_graph, create_graph, inputs)

    def register_hook(self, hook: Hook) -> HookHandle:
        """See :func:`onemodel_tensors.autograd.hooks.register_hook`."""
        from onemodel_tensors.autograd.hooks import register_hook

        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Hook) -> HookHandle:
        """See :func:`onemodel_tensors.autograd.hooks.register_post_accumulate_grad_hook`."""
        from onemodel_tensors.autograd.hooks import register_post_accumulate_grad_hook

        return register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        """See :func:`onemodel_tensors.autograd.hooks.retain_grad`."""
        from onemodel_tensors.autograd.hooks import retain_grad

        retain_grad(self)

    # What lets Python see values: a recorder is asked first.

    def item(self) -> Any:
        """The only element as a Python number.

        Raises:
            ShapeError: there is not exactly one element.
        """
        self._before_read("item()")
        if self._array.size != 1:
            raise ShapeError(
                f"item: expected a tensor of one element, got shape {self._array.shape}; tolist() gives all of them"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for a 0-d tensor."""
        self._before_read("tolist()")
        return self._array.tolist()

    def numpy(self) -> np.ndarray[Any, Any]:
        """A read-only numpy array that shares the storage.

        Raises:
            OneModelError: the tensor requires a gradient: say ``detach()`` first, as the array will not carry it.
        """
        self._before_read("numpy()")
        if self._node is not None:
            raise OneModelError(
                "numpy: expected a tensor that does not require a gradient, since numpy does not carry it; "
                "use detach().numpy()"
            )
        return self._array.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._before_read("__array__")
        array = self.detach().numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(
                    f"__array__: a {array.dtype} tensor cannot become {dtype} without a copy"
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    def __buffer__(self, flags: int) -> memoryview:
        self._before_read("buffer protocol")
        return memoryview(self._array)

    def __dlpack__(self, **options: Any) -> Any:
        self._before_read("__dlpack__")
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def data_ptr(self) -> int:
        """The address of the first element.

        A trace copies a weight whose address was asked for at once: code outside the library may write there.
        """
        self._before_read("data_ptr()")
        return self._array.data_ptr()

    @property
    def data(self) -> Tensor:
        """The same storage without autograd; writes through it are seen by version checks."""
        self._before_read("data")
        return Tensor(self._array)

    @data.setter
    def data(self, value: Tensor) -> None:
        recorder = self._asked()
        if recorder is not None:
            recorder.before_write(self, "data =")
        recorder = value._asked()
        if recorder is not None:
            recorder.before_capture(self, value, "data =")
        self._array = value._array

    def _scalar(self, what: str) -> Any:
        self._before_read(what)
        if self._array.size != 1:
            raise ShapeError(
                f"{what}: expected a tensor of one element, got shape {self._array.shape}; "
                "reduce it first, with any(), all() or sum()"
            )
        return self._array.item()

    def __bool__(self) -> bool:
        return bool(self._scalar("__bool__"))

    def __int__(self) -> int:
        return int(self._scalar("__int__"))

    def __float__(self) -> float:
        return float(self._scalar("__float__"))

    def __complex__(self) -> complex:
        return complex(self._scalar("__complex__"))

    def __index__(self) -> int:
        value = self._scalar("__index__")
        if isinstance(value, float):
            raise TypeError(f"__index__: expected an integer tensor, got dtype {self.dtype}")
        return int(value)

    def __contains__(self, element: Any) -> bool:
        self._before_read("__contains__")
        return bool((self == element).any())

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len: expected a tensor with an axis, got a 0-d one")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise TypeError("iteration: expected a tensor with an axis, got a 0-d one")
        recorder = self._asked()
        if recorder is not None:
            recorder.before_iteration(self)
        return iter(self.unbind(0))

    def __format__(self, specification: str) -> str:
        if self._array.ndim == 0 and specification:
            return format(self.item(), specification)
        return format(str(self), specification)

    __hash__ = object.__hash__

    def __reduce__(self) -> Any:
        self._before_read("pickle")
        from onemodel_tensors.interop import restored

        return restored, (
            self._array.contiguous().tobytes(),
            self.dtype,
            self._array.shape,
            self.requires_grad,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        self._before_read("deepcopy")
        if not self.is_leaf:
            raise OneModelError(
                f"deepcopy: expected a leaf tensor, got the result of {self._node_name()}; detach() it first"
            )
        copy = Tensor.__new__(type(self))
        Tensor.__init__(copy, self._array.copy(), self._node is not None)
        memo[id(self)] = copy
        if isinstance(self._node, Leaf) and self._node.grad is not None:
            copy.grad = Tensor(self._node.grad._array.copy())
        return copy

    def __getattr__(self, name: str) -> Any:
        raise missing(name, "Tensor")

    def __repr__(self) -> str:
        if self._asked() is not None:
            extents = ", ".join(str(extent) for extent in self.shape)
            return f"tensor(traced, shape=({extents}), dtype={self.dtype})"
        from onemodel_tensors.interop import formatted

        return formatted(self)
