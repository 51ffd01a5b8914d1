"""NnModule: the base class of layers and models."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from onemodel_tensors import Tensor
from onemodel_trace import TracedModel
from onemodel_training import module_state, tracing
from onemodel_training.backward_hooks import BackwardHooks
from onemodel_training.parameter import Parameter

__all__ = ["NnModule", "RemovableHandle"]


class RemovableHandle:
    """What registering a hook returns; ``remove()`` unregisters it. Usable in ``with``."""

    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self.id = next(RemovableHandle._ids)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Unregisters the hook; calling it again does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class NnModule:
    """The base class of layers and models, with PyTorch's names.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and sub-modules as
    attributes and defines ``forward``. Paths such as ``encoder.layers.0.weight`` name every
    parameter and buffer in :meth:`state_dict`, in checkpoints and in traced graphs.
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, NnModule | None]
    _transient_buffers: set[str]
    _forward_pre_hooks: dict[int, Callable[..., Any]]
    _forward_hooks: dict[int, Callable[..., Any]]
    _backward_pre_hooks: dict[int, Callable[..., Any]]
    _backward_hooks: dict[int, Callable[..., Any]]
    _with_kwargs: set[int]
    _training: bool

    def __init__(self) -> None:
        setter = super().__setattr__
        setter("_parameters", {})
        setter("_buffers", {})
        setter("_modules", {})
        setter("_transient_buffers", set())
        setter("_forward_pre_hooks", {})
        setter("_forward_hooks", {})
        setter("_backward_pre_hooks", {})
        setter("_backward_hooks", {})
        setter("_with_kwargs", set())
        setter("_training", True)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode. A trace refuses to read True."""
        if self._training:
            tracing.refuse_training_mode(self)
        return self._training

    @training.setter
    def training(self, mode: bool) -> None:
        object.__setattr__(self, "_training", bool(mode))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the hooks and ``forward``."""
        for key, pre_hook in tuple(self._forward_pre_hooks.items()):
            if key in self._with_kwargs:
                changed = pre_hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
                continue
            changed = pre_hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        crossed = None
        if self._backward_hooks or self._backward_pre_hooks:
            crossed = BackwardHooks(self)
            args = crossed.enter(args)
        result = self.forward(*args, **kwargs)
        for key, hook in tuple(self._forward_hooks.items()):
            if key in self._with_kwargs:
                changed = hook(self, args, kwargs, result)
            else:
                changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return result if crossed is None else crossed.leave(result)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            entries = self.__dict__.get(table)
            if entries is not None and name in entries:
                return entries[name]
        kind = type(self).__name__
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{kind}.{name}: the module is not initialised; call super().__init__() first"
            )
        if name == "forward":
            raise AttributeError(f"{kind}: no forward method; define forward(self, ...)")
        raise AttributeError(f"{kind}: no attribute, parameter, buffer or module {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Parameter, NnModule)):
            self._table(name)  # raises when super().__init__() has not run
            self._forget(name)
            if isinstance(value, Parameter):
                self.register_parameter(name, value)
            else:
                self.add_module(name, value)
            return
        for table in ("_parameters", "_modules"):
            if name in self.__dict__.get(table, ()):
                if value is not None:
                    wanted = "Parameter" if table == "_parameters" else "NnModule"
                    raise TypeError(
                        f"{type(self).__name__}.{name}: expected a {wanted} or None, "
                        f"got {type(value).__name__}"
                    )
                self.__dict__[table][name] = None
                return
        if name in self.__dict__.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"{type(self).__name__}.{name}: expected a Tensor or None for a buffer, "
                    f"got {type(value).__name__}"
                )
            tracing.refuse_buffer_write(self, name)
            self._buffers[name] = value
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._transient_buffers.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        own = [*self._parameters, *self._buffers, *self._modules]
        return sorted({*super().__dir__(), *own})

    def _table(self, name: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}.{name}: call super().__init__() before assigning "
                "parameters or modules"
            )

    def _forget(self, name: str) -> None:
        self.__dict__.pop(name, None)
        self._buffers.pop(name, None)
        self._transient_buffers.discard(name)
        self._parameters.pop(name, None)
        self._modules.pop(name, None)

    def _check_name(self, name: str, table: Mapping[str, object]) -> None:
        kind = type(self).__name__
        if not name or "." in name:
            raise ValueError(f"{kind}: expected a name without dots and not empty, got {name!r}")
        if name not in table and (name in self.__dict__ or hasattr(type(self), name)):
            raise ValueError(f"{kind}: attribute {name!r} exists already; choose another name")

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Registers ``parameter`` under ``name``; None reserves the name."""
        self._check_name(name, self._parameters)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"{type(self).__name__}.register_parameter({name!r}): expected a Parameter, "
                f"got {type(parameter).__name__}; wrap the tensor in Parameter(...)"
            )
        self._parameters[name] = parameter

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Registers state that is not trained; ``persistent=False`` keeps it out of state_dict."""
        self._check_name(name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"{type(self).__name__}.register_buffer({name!r}): expected a Tensor, "
                f"got {type(tensor).__name__}"
            )
        self._buffers[name] = tensor
        self._transient_buffers.discard(name)
        if not persistent:
            self._transient_buffers.add(name)

    def add_module(self, name: str, module: NnModule | None) -> None:
        """Registers a sub-module under ``name``."""
        self._check_name(name, self._modules)
        if module is not None and not isinstance(module, NnModule):
            raise TypeError(
                f"{type(self).__name__}.add_module({name!r}): expected an NnModule, "
                f"got {type(module).__name__}"
            )
        self._modules[name] = module

    register_module = add_module

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True, memo: set[int] | None = None
    ) -> Iterator[tuple[str, NnModule]]:
        """Yields (path, module) of this module and all below it, depth first."""
        memo = set() if memo is None else memo
        if remove_duplicate:
            if id(self) in memo:
                return
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(path, remove_duplicate, memo)

    def modules(self) -> Iterator[NnModule]:
        """Yields this module and all below it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, NnModule]]:
        """Yields (name, module) of the direct sub-modules."""
        return ((name, module) for name, module in self._modules.items() if module is not None)

    def children(self) -> Iterator[NnModule]:
        """Yields the direct sub-modules."""
        return (module for _, module in self.named_children())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (path, parameter); a tied parameter comes once, under its first path."""
        return module_state.named_members(self, "_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (path, buffer)."""
        return module_state.named_members(self, "_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> NnModule:
        """The module at a dotted path; the empty path is this module."""
        module: NnModule = self
        for name in target.split(".") if target else ():
            below = module._modules.get(name)
            if below is None:
                raise AttributeError(f"{type(self).__name__}: no module at path {target!r}")
            module = below
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        owner, _, name = target.rpartition(".")
        parameter = self.get_submodule(owner)._parameters.get(name)
        if parameter is None:
            raise AttributeError(f"{type(self).__name__}: no parameter at path {target!r}")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        owner, _, name = target.rpartition(".")
        buffer = self.get_submodule(owner)._buffers.get(name)
        if buffer is None:
            raise AttributeError(f"{type(self).__name__}: no buffer at path {target!r}")
        return buffer

    def apply(self, function: Callable[[NnModule], object]) -> Self:
        """Calls ``function`` on every module, children first."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets training mode on this module and all below it."""
        if not isinstance(mode, bool):
            raise TypeError(f"train: expected a bool, got {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Sets evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets ``requires_grad`` of every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops every gradient, or fills it with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.zero_()

    def to(self, *args: Any, dtype: Any = None, device: Any = None, **_: Any) -> Self:
        """Casts floating-point parameters and buffers to a dtype; integers stay.

        Args:
            args: a dtype, the name of the device ``"cpu"``, or a tensor whose dtype is meant.
            dtype: the dtype.
            device: nothing but the CPU.

        Raises:
            DtypeError: when the dtype is not floating point.
            AttributeValueError: another device.
        """
        module_state.move(self, (*args, device), dtype)
        return self

    def cpu(self) -> Self:
        """The module itself: there is no other device."""
        return self

    def half(self) -> Self:
        """``to("float16")``."""
        return self.to("float16")

    def bfloat16(self) -> Self:
        """``to("bfloat16")``."""
        return self.to("bfloat16")

    def float(self) -> Self:
        """``to("float32")``."""
        return self.to("float32")

    def double(self) -> Self:
        """``to("float64")``."""
        return self.to("float64")

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before forward; a result that is not None replaces args.

        With ``with_kwargs``, calls ``hook(module, args, kwargs)``, which may return both.
        """
        return self._register(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args, result)`` after forward; not None replaces the result.

        With ``with_kwargs``, calls ``hook(module, args, kwargs, result)``.
        """
        return self._register(self._forward_hooks, hook, prepend, with_kwargs)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` once the gradients of the inputs are known.

        Both are tuples, ``None`` where there is no gradient; ``grad_input`` has one entry for each
        positional argument, and what the hook returns replaces it.
        """
        return self._register(self._backward_hooks, hook, prepend, False)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before the module's backward pass; not None replaces it."""
        return self._register(self._backward_pre_hooks, hook, prepend, False)

    def _register(
        self,
        hooks: dict[int, Callable[..., Any]],
        hook: Callable[..., Any],
        prepend: bool,
        with_kwargs: bool,
    ) -> RemovableHandle:
        earlier = dict(hooks)
        handle = RemovableHandle(hooks, hook)
        if with_kwargs:
            self._with_kwargs.add(handle.id)
        if prepend:
            for key in earlier:
                hooks[key] = hooks.pop(key)
        return handle

    def state_dict(self, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Parameters and persistent buffers by path, in PyTorch's order and layouts.

        The tensors share the module's storage and are detached unless ``keep_vars``.
        """
        state: dict[str, Tensor] = {}
        module_state.collect(self, prefix, keep_vars, state)
        return state

    def load_state_dict(
        self, state: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> module_state.IncompatibleKeys:
        """Copies values into the parameters and buffers of the same paths.

        Args:
            state: path to tensor (Tensor, Array, numpy array or anything with ``__array__``),
                in the shapes of :meth:`state_dict`; floating dtypes are cast to the module's.
            strict: whether missing or unexpected paths are an error.
            assign: take the tensors themselves instead of copying values out of them.

        Returns:
            The missing and the unexpected paths.

        Raises:
            StateDictError: listing every path that is missing, unexpected or of another shape;
                nothing has been written then.
        """
        return module_state.load(self, state, strict, assign)

    def trace(
        self,
        *examples: Any,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        axis_names: Mapping[str, Any] | Sequence[Any] | None = None,
        verify: bool = True,
    ) -> TracedModel:
        """Records one run on ``examples`` as a graph: a ``onemodel_trace.TracedModel``.

        Every parameter and buffer that the outputs need becomes an initializer named by its
        state-dict path. No buffer, flag or random state changes.

        Args:
            examples: what ``forward`` takes; tensors become graph inputs, also those in tuples,
                lists and mappings (``states_0``, ``states.key``); plain values are frozen.
            input_names: one name for each tensor among the examples; forward's own by default.
            output_names: one name for each output tensor; ``output`` by default.
            axis_names: for each input (by name, or in order) its symbolic axes, as
                ``("batch", None)`` or ``{0: "batch"}``.
            verify: also run the graph at two other sizes of each symbolic axis and compare.

        Raises:
            TraceException: a module in training mode that behaves differently there, a parameter
                or buffer written in forward, or whatever the tracer refuses; the text names the path.
        """
        return tracing.trace_module(
            self, examples, input_names, output_names, axis_names, verify=verify
        )

    def extra_repr(self) -> str:
        """What ``repr`` shows between the brackets."""
        return ""

    def __repr__(self) -> str:
        head = self.extra_repr()
        lines = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if not lines:
            return f"{type(self).__name__}({head})"
        body = "\n  ".join(lines)
        return (
            f"{type(self).__name__}({head}\n  {body}\n)"
            if head
            else (f"{type(self).__name__}(\n  {body}\n)")
        )
