"""What all optimisers share: parameter groups, state by parameter, state dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import Tensor

__all__ = ["Optimizer", "ParameterGroup"]

ParameterGroup = dict[str, Any]
"""``params``, a list of tensors, and the options that hold for them."""

State = dict[str, Any]


class _States:
    """The states by parameter, as PyTorch's optimisers offer them."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def __getitem__(self, parameter: Tensor) -> State:
        return self._optimizer.state_of(parameter)

    def __contains__(self, parameter: Tensor) -> bool:
        return bool(self._optimizer._state.get(id(parameter)))

    def __iter__(self) -> Iterator[Tensor]:
        listed = [p for group in self._optimizer.param_groups for p in group["params"]]
        return iter([parameter for parameter in listed if parameter in self])

    def __len__(self) -> int:
        return len(list(iter(self)))


class Optimizer:
    """Updates parameters from their gradients.

    Args:
        params: tensors, or dicts with ``params`` and options of their own (parameter groups).
        defaults: the options of groups that do not set them.

    Every update is a fixed sequence of exactly defined kernels, so its bits do not depend on the
    machine or the thread count. Parameters without a gradient are left alone.
    """

    def __init__(
        self, params: Iterable[Tensor] | Iterable[ParameterGroup], defaults: Mapping[str, Any]
    ) -> None:
        self.defaults = dict(defaults)
        self.param_groups: list[ParameterGroup] = []
        self._state: dict[int, State] = {}
        entries = list(params)
        if not entries:
            raise AttributeValueError(f"{type(self).__name__}: expected parameters, got none")
        if isinstance(entries[0], Mapping):
            for group in entries:
                self.add_param_group(group)  # type: ignore[arg-type]
        else:
            self.add_param_group({"params": entries})

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds tensors with options of their own.

        Raises:
            AttributeValueError: an unknown or invalid option, a tensor that is in a group already.
        """
        kind = type(self).__name__
        added = dict(group)
        tensors = added.get("params")
        added["params"] = [tensors] if isinstance(tensors, Tensor) else list(tensors or ())
        unknown = sorted(set(added) - set(self.defaults) - {"params", "name"})
        if unknown:
            raise AttributeValueError(
                f"{kind}: unknown option {', '.join(unknown)}; the options are "
                f"{', '.join(sorted(self.defaults))}"
            )
        known = {id(tensor) for other in self.param_groups for tensor in other["params"]}
        for tensor in added["params"]:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{kind}: expected tensors, got {type(tensor).__name__}")
            if id(tensor) in known:
                raise AttributeValueError(f"{kind}: a parameter appears in more than one place")
            known.add(id(tensor))
        for name, value in self.defaults.items():
            added.setdefault(name, value)
        self._check(added)
        self.param_groups.append(added)

    def _check(self, group: ParameterGroup) -> None:
        """Raises when an option is out of range."""
        for name in ("lr", "eps", "weight_decay"):
            value = group.get(name, 0.0)
            if not value >= 0.0:
                raise AttributeValueError(
                    f"{type(self).__name__}: expected {name} of 0 or more, got {value}"
                )
        for beta in group.get("betas", ()):
            if not 0.0 <= beta < 1.0:
                raise AttributeValueError(
                    f"{type(self).__name__}: expected betas from 0 to below 1, got {group['betas']}"
                )

    @property
    def state(self) -> _States:
        """The state of each parameter: ``state[parameter]`` is a dict, empty at first."""
        return _States(self)

    def state_of(self, parameter: Tensor) -> State:
        """The mutable state that belongs to one parameter."""
        return self._state.setdefault(id(parameter), {})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops every gradient, or fills it with zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad.zero_()

    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:
        """Updates every parameter that has a gradient.

        Args:
            closure: computes the loss and its gradients first; its result is returned.
        """
        loss = closure() if closure is not None else None
        with om.no_grad():
            for group in self.param_groups:
                ready = [parameter for parameter in group["params"] if parameter.grad is not None]
                if ready:
                    self._update(group, ready)
        return loss

    def _update(self, group: ParameterGroup, parameters: list[Tensor]) -> None:
        """Updates the parameters of one group, all of which have gradients."""
        raise TypeError(f"{type(self).__name__}: a subclass defines _update(group, parameters)")

    def _gradient(self, group: ParameterGroup, parameter: Tensor) -> Tensor:
        """The gradient to descend along: negated where the group maximises."""
        gradient = parameter.grad
        if gradient is None or tuple(gradient.shape) != tuple(parameter.shape):
            raise ShapeError(
                f"{type(self).__name__}: expected a gradient of shape {tuple(parameter.shape)}, "
                f"got {None if gradient is None else tuple(gradient.shape)}"
            )
        return -gradient if group.get("maximize") else gradient

    def state_dict(self) -> dict[str, Any]:
        """Options and state with parameters as positions: tensors and plain values only."""
        positions: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                positions.setdefault(id(parameter), len(positions))
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [positions[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            positions[key]: {
                name: value.detach().clone() if isinstance(value, Tensor) else value
                for name, value in entries.items()
            }
            for key, entries in self._state.items()
            if key in positions
        }
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over options and state of an optimiser over the same parameters in order.

        Raises:
            AttributeValueError: when the groups do not match; nothing has changed then.
        """
        kind = type(self).__name__
        saved = state_dict["param_groups"]
        ours = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in saved]
        if ours != theirs:
            raise AttributeValueError(
                f"{kind}.load_state_dict: expected groups of {ours} parameters, got {theirs}"
            )
        tensors = [parameter for group in self.param_groups for parameter in group["params"]]
        positions = [position for group in saved for position in group["params"]]
        by_position = dict(zip(positions, tensors, strict=True))
        loaded: dict[int, State] = {}
        for key, entries in state_dict["state"].items():
            parameter = by_position[int(key)]
            for name, value in entries.items():
                if isinstance(value, Tensor) and value.ndim and value.shape != parameter.shape:
                    raise AttributeValueError(
                        f"{kind}.load_state_dict: expected {name} of shape "
                        f"{tuple(parameter.shape)}, got {tuple(value.shape)}"
                    )
            loaded[id(parameter)] = {
                name: value.detach().clone() if isinstance(value, Tensor) else value
                for name, value in entries.items()
            }
        for group, packed in zip(self.param_groups, saved, strict=True):
            for name, value in packed.items():
                if name != "params":
                    group[name] = tuple(value) if isinstance(value, list) else value
        self._state = loaded

    def __repr__(self) -> str:
        lines = [
            "  " + ", ".join(f"{k}={v}" for k, v in group.items() if k != "params")
            for group in self.param_groups
        ]
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"
