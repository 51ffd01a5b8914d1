"""What a trace gives: a graph, the relations it relies on, and ways to run, save and check it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onemodel_graph.ir import Graph
from onemodel_kernels.errors import MemoryLimitError
from onemodel_trace.extents import Axis, Expression, Guard

if TYPE_CHECKING:
    import onnx  # noqa: TID251 (the type that to_onnx promises)

    from onemodel_graph import ArithmeticMode, Session
    from onemodel_kernels import Array
    from onemodel_trace.verify import VerifyReport

__all__ = ["MAX_MODEL_BYTES", "TracedModel"]

MAX_MODEL_BYTES = 2**31 - 2**24
"""Bytes of initializers that one protobuf message holds, with room for the nodes."""


@dataclass(frozen=True, eq=False, repr=False)
class TracedModel:
    """A recorded model.

    Attributes:
        graph: The recorded graph, before the passes of a session.
        guards: Relations between axis sizes that it relies on, in order of recording; a session
            checks them for each input shape.
        axes: Declared symbolic axes by name.
        example_sizes: Size of each symbolic axis in the recorded run.
        examples: The input values of the recorded run.
        input_axes: For each input and axis a number or the expression of a symbolic size.
        function: The eager function of the inputs, if it is known.
    """

    graph: Graph
    guards: tuple[Guard, ...] = ()
    axes: Mapping[str, Axis] = field(default_factory=dict)
    example_sizes: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[Array, ...] = ()
    input_axes: tuple[tuple[int | Expression, ...], ...] = ()
    function: Callable[..., Any] | None = None

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs in order."""
        return [value.name for value in self.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs in order."""
        return [value.name for value in self.graph.outputs]

    def to_onnx(self, *, limit: int = MAX_MODEL_BYTES) -> onnx.ModelProto:
        """The graph as an ONNX model of opset 20 and IR version 9.

        Args:
            limit: Bytes that the initializers may have together.

        Raises:
            MemoryLimitError: The initializers pass the limit together.
        """
        from onemodel_graph import to_onnx

        total = sum(array.nbytes for array in self.graph.initializers.values())
        if total > limit:
            raise MemoryLimitError(
                f"to_onnx: expected initializers of at most {limit} bytes together, as protobuf holds "
                f"2 GiB, got {total}; save_onnx writes them to a file beside the model"
            )
        return to_onnx(self.graph)

    def save_onnx(self, path: str | Path, *, limit: int = MAX_MODEL_BYTES) -> None:
        """Write an ONNX file; equal graphs give equal bytes.

        Args:
            path: Where to write.
            limit: Bytes from which on the initializers go together to a file beside it.
        """
        from onemodel_graph import save_onnx

        save_onnx(self.graph, path, limit=limit)

    def save(self, path: str | Path) -> None:
        """Write the library format v1; ``Model.load`` and ``Session.load`` read it.

        Args:
            path: Where to write.
        """
        from onemodel_graph import save_v1

        save_v1(self.graph, path)

    def session(self, mode: ArithmeticMode | None = None, threads: int | None = None) -> Session:
        """A session that runs the graph.

        Args:
            mode: ``ArithmeticMode.FAST`` by default.
            threads: Threads of a run; None takes the process's setting.
        """
        from onemodel_graph import ArithmeticMode, Session

        chosen = ArithmeticMode.FAST if mode is None else mode
        return Session(self.graph, mode=chosen, threads=threads)

    def verify(
        self,
        sizes: Sequence[Mapping[str, int]] | int | None = None,
        *,
        function: Callable[..., Any] | None = None,
        inputs: Callable[[Mapping[str, int]], Sequence[Any]] | None = None,
        mode: ArithmeticMode | None = None,
        peer: bool = True,
        seed: int = 0,
    ) -> VerifyReport:
        """Run the eager function, the session and ONNX Runtime on fresh inputs at other sizes; compare.

        Args:
            sizes: Sizes of every symbolic axis for each run, or how many runs; by default 2. Chosen
                sizes differ from the example's and from each other, and start at 1 where permitted.
            function: The eager function, if the trace does not know it.
            inputs: Makes the input tensors for given sizes; by default random values within the
                range of the example's.
            mode: The session's mode; in ``ArithmeticMode.EXACT`` the results must have equal bits.
            peer: Whether ONNX Runtime runs the written file too, if it is installed.
            seed: Seed of the random inputs.

        Returns:
            The sizes that were run and the largest difference.

        Raises:
            TraceException: INVALID_USAGE when there is no function; naming the first output, axis and
                size that differ when the two disagree.
        """
        from onemodel_trace.verify import verify

        return verify(
            self, sizes, function=function, inputs=inputs, mode=mode, peer=peer, seed=seed
        )

    def __repr__(self) -> str:
        inputs = ", ".join(map(repr, self.graph.inputs))
        outputs = ", ".join(map(repr, self.graph.outputs))
        return f"TracedModel({inputs} -> {outputs}; {len(self.graph.nodes)} nodes)"
