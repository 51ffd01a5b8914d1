"""What a caller gives a run, as one array for each input of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onemodel_graph.conversion import require_dtype, to_array
from onemodel_graph.ir import Value
from onemodel_graph.texts import Texts
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError
from onemodel_kernels.ops.narrow import HELD


class Feeds:
    """The inputs of a model, and how a call names them.

    Args:
        inputs: In order.
        texts: What stands for strings; ``None`` where the model has none.

    Attributes:
        names: The inputs' names, in order.
    """

    def __init__(self, inputs: Sequence[Value], texts: Texts | None) -> None:
        self.names = tuple(value.name for value in inputs)
        self._set = frozenset(self.names)
        self._dtypes = tuple(value.dtype for value in inputs)
        self._texts = texts

    def values(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """One entry for each input: a contiguous array of the declared dtype.

        Args:
            inputs: One mapping, one list of all inputs, or the inputs themselves.
            named: Inputs by name.

        Raises:
            AttributeValueError: for an input that is missing, unknown, or given twice.
            DtypeError: naming the input, for another dtype than the declared one.
        """
        names = self.names
        given: Sequence[Any] = inputs
        if named:
            given = self._by_name(inputs, named)
        elif len(inputs) == 1:
            only = inputs[0]
            if isinstance(only, dict):
                given = (
                    [only[n] for n in names]
                    if only.keys() == self._set
                    else self._by_name((), only)
                )
            elif isinstance(only, Mapping):
                given = self._by_name((), only)
            elif isinstance(only, list | tuple) and self._takes_list(only):
                given = only
        if len(given) != len(names):
            raise AttributeValueError(
                f"Session: expected {len(names)} inputs ({', '.join(names)}), got {len(given)}"
            )
        found = []
        for value, dtype, name in zip(given, self._dtypes, names, strict=True):
            if dtype == "string" and self._texts is not None:
                found.append(self._texts.given(value, f"input {name!r}"))
                continue
            array = value if type(value) is Array else to_array(value, dtype, name)
            if type(array) is Array:
                if array.dtype != dtype and (dtype is None or array.dtype != HELD.get(dtype)):
                    require_dtype(array, dtype, name)
                if not array.is_contiguous:
                    array = array.contiguous()
            found.append(array)
        return found

    def _by_name(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        names = self.names
        unknown = [name for name in named if name not in self._set]
        if unknown:
            listed = ", ".join(names) or "none"
            raise AttributeValueError(
                f"Session: there is no input {unknown[0]!r}; the inputs are {listed}"
            )
        if any(name in named for name in names[: len(inputs)]):
            raise AttributeValueError("Session: an input is given by position and by name")
        rest = list(zip(names, self._dtypes, strict=True))[len(inputs) :]
        for name, dtype in rest:
            if name not in named and dtype != "optional":
                raise AttributeValueError(f"Session: the input {name!r} is missing")
        return [*inputs, *(named.get(name) for name, _ in rest)]

    def _takes_list(self, given: Sequence[Any]) -> bool:
        """Whether one list argument is the list of all inputs and not one input's numbers."""
        if len(self.names) != 1:
            return True
        return len(given) == 1 and self._dtypes[0] not in ("sequence", "optional")
