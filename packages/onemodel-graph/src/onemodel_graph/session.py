"""Sessions: a model made ready to run."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from typing import Any

from onemodel_graph.conversion import to_numpy
from onemodel_graph.declared import Declared
from onemodel_graph.feeds import Feeds
from onemodel_graph.guards import bind, guards_of
from onemodel_graph.ir import Graph, Model, Value
from onemodel_graph.narrow import resolve, shown
from onemodel_graph.passes import optimise as rewritten
from onemodel_graph.planning import handlers  # noqa: F401  (registers them)
from onemodel_graph.planning.border import flat_arrays
from onemodel_graph.planning.context import Context
from onemodel_graph.planning.planned import Planned
from onemodel_graph.planning.steps import prepare
from onemodel_graph.profile import Profile
from onemodel_graph.requirements import require_dtypes, require_exact
from onemodel_graph.text_resolution import resolve as resolve_texts
from onemodel_graph.texts import labelled
from onemodel_kernels import Array, set_num_threads
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops.narrow import HELD

PLANS = 64
"""Input signatures for which a session keeps plans."""


class ArithmeticMode(enum.Enum):
    """How free a session is in its arithmetic.

    Attributes:
        FAST: Results stay within 1e-5 (scaled) of the exact ones.
        EXACT: Every bit of a result depends on the inputs' bits alone: not on the machine, the
            number of threads, the batch size or the passes.
    """

    FAST = "fast"
    EXACT = "exact"


class Session:
    """A model made ready to run, safe to use from many threads at once.

    Plans are made once for each combination of input shapes and kept; constants are shared by all.

    Args:
        model: A path, the bytes of a file, a :class:`~onemodel_graph.ir.Model` or a
            :class:`~onemodel_graph.ir.Graph`.
        mode: :class:`ArithmeticMode`, or its name in lower case.
        threads: The number of threads of the process's pool; ``None`` leaves it as it is.
        plans: How many combinations of input shapes to keep plans for.
        optimise: Whether passes may rewrite the graph; the bits stay the same in exact mode.

    Raises:
        UnsupportedError: listing every node whose operator is not supported, or that has no exact
            kernel in exact mode.
        OneModelError: for a damaged file or a graph that breaks the rules.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes | Model | Graph,
        mode: ArithmeticMode | str = ArithmeticMode.FAST,
        threads: int | None = None,
        *,
        plans: int = PLANS,
        optimise: bool = True,
    ) -> None:
        try:
            self._mode = ArithmeticMode(mode)
        except ValueError:
            allowed = ", ".join(repr(entry.value) for entry in ArithmeticMode)
            raise AttributeValueError(
                f"Session: mode must be one of {allowed}, got {mode!r}"
            ) from None
        if threads is not None:
            set_num_threads(threads)
        self._declared = Declared(model)
        loaded = self._declared.graph
        require_dtypes(loaded)
        resolved = resolve_texts(loaded)
        graph, narrow = resolve(resolved.graph)
        self._texts = resolved.texts
        self._kinds = [a or b for a, b in zip(resolved.outputs, narrow, strict=True)]
        coded = any(value.dtype in HELD for value in loaded.inputs)
        self._plain = resolved.texts is None and not coded and not any(narrow)
        self._context = Context(self._mode is ArithmeticMode.FAST, resolved.texts)
        # Passes rely on what is checked here, and errors name the nodes of the file.
        prepared = prepare(graph)
        if optimise:
            prepared = prepare(rewritten(graph, self._mode.value))
        if self._mode is ArithmeticMode.EXACT:
            require_exact(prepared)
        self._planned = Planned(prepared, self._context, capacity=plans)
        self._guards = guards_of(loaded)
        self._inputs, self._outputs = tuple(loaded.inputs), tuple(loaded.outputs)
        self._feeds = Feeds(self._inputs, self._texts)
        self._declared.release(prepared.graph.initializers.values())

    @classmethod
    def load(
        cls,
        model: str | os.PathLike[str] | bytes | Model | Graph,
        mode: ArithmeticMode | str = ArithmeticMode.FAST,
        threads: int | None = None,
    ) -> Session:
        """The same as the constructor."""
        return cls(model, mode, threads)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(repr, v)) or "none" for v in (self._inputs, self._outputs))
        symbols = ", ".join(self._declared.graph.symbols) or "none"
        return (
            f"<Session {self._declared.graph.name!r}, {self._mode.value} mode; inputs {inputs}; "
            f"outputs {outputs}; symbols {symbols}>"
        )

    @property
    def mode(self) -> ArithmeticMode:
        """The arithmetic mode."""
        return self._mode

    @property
    def graph(self) -> Graph:
        """The graph as it was loaded, before passes.

        A session of a path keeps no weights that passes have replaced, and reads them again here.

        Raises:
            AttributeValueError: when they are to be read again and the file is another one.
        """
        return self._declared.whole()

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Name, dtype and shape of each input, in order."""
        return self._inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Name, dtype and shape of each output, in order; symbolic extents by name."""
        return self._outputs

    def run(self, *inputs: Any, **named: Any) -> list[Any]:
        """Runs the model and returns its outputs as numpy arrays.

        Args:
            *inputs: One dict of inputs by name, one list of inputs in order, or the inputs
                themselves.
            **named: Inputs by name.

        Each input is a numpy array, an ``Array``, or anything with the buffer protocol, DLPack or
        ``__array__``; the dtype must be the declared one. Inputs are not copied.

        Returns:
            One numpy array for each output, read-only, in memory of its own.

        Raises:
            ShapeError, DtypeError, AttributeValueError: before anything is computed, naming the
            input.
            OneModelError: naming the node, the operator, the values and their shapes.
        """
        if self._plain and len(inputs) == 1 and not named and type(inputs[0]) is dict:
            program = self._planned.recent
            made = None if program is None else program.run_named(inputs[0], self._feeds.names)
            if made is not None:
                return made
        if self._texts is not None:
            with self._texts.run():
                return self._shown(self.run_arrays(*inputs, **named))
        made = self.run_arrays(*inputs, **named)
        if not self._plain:
            return self._shown(made)
        return [entry.numpy() if type(entry) is Array else to_numpy(entry) for entry in made]

    def run_arrays(self, *inputs: Any, **named: Any) -> list[Any]:
        """As :meth:`run`, with ``Array`` outputs.

        Numbers of 8 bits or fewer, of which numpy has no types, stand in ``int8``, ``uint8`` or
        ``float32`` arrays here, and codes of the model's own in the place of strings.
        """
        if self._texts is not None and not self._texts.running:
            with self._texts.run():
                return self.run_arrays(*inputs, **named)
        values = self._feeds.values(inputs, named)
        segment = self._planned.first(values, self._check)
        if segment.direct:
            program = segment.program
            assert program is not None
            return program.run(values)
        return self._planned.finish(segment, flat_arrays(values))

    def profile(self, *inputs: Any, **named: Any) -> Profile:
        """Runs the model once and says how long each kernel call took."""
        if self._texts is not None and not self._texts.running:
            with self._texts.run():
                return self.profile(*inputs, **named)
        values = self._feeds.values(inputs, named)
        profile = Profile()
        segment = self._planned.first(values, self._check)
        profile.outputs = self._planned.finish(segment, flat_arrays(values), profile.observe)
        return profile

    def _shown(self, made: Sequence[Any]) -> list[Any]:
        """Outputs with the types that numpy has no arrays of: narrow numbers, texts, dicts."""
        found = []
        for entry, kind in zip(made, self._kinds, strict=True):
            if kind == "string" and self._texts is not None:
                found.append(self._texts.shown(entry))
            elif isinstance(kind, tuple):
                found.append(labelled(entry, kind))
            else:
                plain = to_numpy(entry)
                found.append(plain if kind is None else shown(plain, kind))
        return found

    def _check(self, values: Sequence[Any]) -> None:
        symbols = bind(self._inputs, values)
        for guard in self._guards:
            if not guard.holds(symbols):
                sizes = ", ".join(f"{name} = {size}" for name, size in symbols.items())
                raise ShapeError(f"Session: the model holds only where {guard.text}, but {sizes}")


__all__ = ["ArithmeticMode", "Session"]
