"""Runs the eager function and the session at other sizes and compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onemodel_graph import ArithmeticMode
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import OneModelError
from onemodel_tensors.tensor import Tensor
from onemodel_trace.errors import TraceErrorKind, TraceException
from onemodel_trace.peer import PEER_TOLERANCE, Peer

if TYPE_CHECKING:
    from onemodel_trace.traced_model import TracedModel

__all__ = ["TOLERANCE", "VerifyReport", "verify"]

TOLERANCE = 1e-5
"""Greatest difference in fast mode, scaled by the greatest expected magnitude of the output."""

_RUNS = 2
_STEPS = (
    *range(9),
    10,
    12,
    14,
    16,
    20,
    24,
    28,
    32,
    40,
    48,
    56,
    64,
    80,
    96,
    112,
    128,
    160,
    192,
    224,
)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification ran.

    Attributes:
        sizes: Sizes of the symbolic axes of each run that was compared.
        refused: Sizes at which the eager function and the session both raised an error.
        difference: Greatest scaled difference over all runs and outputs.
        peer: The same to ONNX Runtime on the written file; None where it did not run.
    """

    sizes: tuple[Mapping[str, int], ...]
    refused: tuple[Mapping[str, int], ...]
    difference: float
    peer: float | None = None


def verify(
    model: TracedModel,
    sizes: Sequence[Mapping[str, int]] | int | None,
    *,
    function: Callable[..., Any] | None,
    inputs: Callable[[Mapping[str, int]], Sequence[Any]] | None,
    mode: ArithmeticMode | None,
    peer: bool,
    seed: int,
) -> VerifyReport:
    """See :meth:`TracedModel.verify`."""
    eager = function or model.function
    if eager is None:
        raise TraceException(
            TraceErrorKind.INVALID_USAGE,
            "verify: the trace does not know the eager function; give function=, called with one "
            "tensor for each input and returning the outputs",
        )
    chosen = ArithmeticMode.FAST if mode is None else mode
    session = model.session(chosen)
    other = Peer.of(model) if peer else None
    report = _Runs()

    def attempt(entry: Mapping[str, int]) -> bool:
        seed_of_run = seed * 1000 + len(report.sizes) + len(report.refused)
        given = (
            _random_inputs(model, entry, seed_of_run)
            if inputs is None
            else [_as_tensor(value) for value in inputs(entry)]
        )
        compared = _run(model, eager, session, given, entry, chosen)
        if compared is None:
            report.refused.append(entry)
            return False
        difference, expected = compared
        report.sizes.append(entry)
        report.difference = max(report.difference, difference)
        if other is not None:
            apart = _peer_difference(model, other, given, expected, entry)
            if apart is not None:
                report.peer = max(report.peer or 0.0, apart)
        return True

    if sizes is None or isinstance(sizes, int):
        for number in range(_RUNS if sizes is None else sizes):
            for entry in _candidates(model, number):
                if entry not in report.sizes and entry not in report.refused and attempt(entry):
                    break
    else:
        for asked in sizes:
            attempt(_complete(model, asked))
    return VerifyReport(tuple(report.sizes), tuple(report.refused), report.difference, report.peer)


@dataclass(slots=True)
class _Runs:
    sizes: list[Mapping[str, int]] = field(default_factory=list)
    refused: list[Mapping[str, int]] = field(default_factory=list)
    difference: float = 0.0
    peer: float | None = None


def _run(
    model: TracedModel,
    eager: Callable[..., Any],
    session: Any,
    given: list[Tensor],
    sizes: Mapping[str, int],
    mode: ArithmeticMode,
) -> tuple[float, list[Tensor]] | None:
    """Greatest scaled difference and eager outputs of a run, or None when both refuse these inputs."""
    from onemodel_tensors.autograd.mode import no_grad

    error: OneModelError | None = None
    expected: list[Tensor] = []
    try:
        with no_grad():
            expected = _outputs(eager(*given))
    except OneModelError as caught:
        error = caught
    try:
        found = session.run_arrays([tensor._array for tensor in given])
    except OneModelError as caught:
        if error is None:
            raise _differs(
                f"the graph refuses what the eager function computes: {caught}", sizes
            ) from caught
        return None
    if error is not None:
        raise _differs(
            f"the graph computes what the eager function refuses: {error}", sizes
        ) from error
    if len(expected) != len(found):
        raise _differs(
            f"the eager function gives {len(expected)} outputs, the graph {len(found)}", sizes
        )
    allowed = 0.0 if mode is ArithmeticMode.EXACT else TOLERANCE
    worst = 0.0
    for name, left, right in zip(model.output_names, expected, found, strict=True):
        worst = max(worst, _compare(name, left._array, right, sizes, allowed, "the graph"))
    return worst, expected


def _peer_difference(
    model: TracedModel,
    peer: Peer,
    given: list[Tensor],
    expected: list[Tensor],
    sizes: Mapping[str, int],
) -> float | None:
    """Greatest scaled difference of the eager outputs to ONNX Runtime's, or None where it did not run."""
    try:
        found = peer.run(model.input_names, given, sizes)
    except Exception as error:
        raise _differs(
            f"ONNX Runtime refuses what the eager function computes: {error}", sizes
        ) from error
    if found is None:
        return None
    worst = 0.0
    for name, left, right in zip(model.output_names, expected, found, strict=True):
        apart = _compare(name, left._array, right, sizes, PEER_TOLERANCE, "ONNX Runtime")
        worst = max(worst, apart)
    return worst


def _compare(
    name: str, expected: Array, found: Array, sizes: Mapping[str, int], allowed: float, who: str
) -> float:
    if expected.dtype != found.dtype:
        raise _differs(f"output {name!r}: eager gives {expected.dtype}, {who} {found.dtype}", sizes)
    if expected.shape != found.shape:
        axis = next(
            (
                f"axis {axis}: eager gives {left}, {who} {right}"
                for axis, (left, right) in enumerate(zip(expected.shape, found.shape, strict=False))
                if left != right
            ),
            f"eager gives {expected.ndim} axes, {who} {found.ndim}",
        )
        raise _differs(f"output {name!r}, {axis}", sizes)
    if expected.contiguous().tobytes() == found.contiguous().tobytes():
        return 0.0
    difference, place = _distance(expected, found)
    real = expected.dtype.startswith(("float", "bfloat"))
    if not real or not allowed or not difference <= allowed:
        raise _differs(
            f"output {name!r}: values differ by {difference:.3g} (scaled), first at {place}, between "
            f"eager and {who}",
            sizes,
        )
    return difference


def _distance(expected: Array, found: Array) -> tuple[float, tuple[int, ...]]:
    """Greatest difference scaled by the greatest finite magnitude, and where it first is."""
    left, right = _flat(expected), _flat(found)
    magnitude = max((abs(a) for a in left if a == a and abs(a) != float("inf")), default=0.0)
    worst, place = 0.0, 0
    for position, (a, b) in enumerate(zip(left, right, strict=True)):
        if a == b or (a != a and b != b):
            continue
        apart = abs(a - b) / max(magnitude, 1e-30)
        if not apart <= worst:
            worst, place = (apart if apart == apart else float("inf")), position
    index: list[int] = []
    for extent in reversed(expected.shape):
        index.append(place % extent)
        place //= extent
    return worst, tuple(reversed(index))


def _flat(array: Array) -> list[float]:
    flat = array.contiguous().reshape((array.size,)).tolist()
    return [float(number) for number in flat]


def _outputs(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, Mapping):
        result = result.values()
    flat: list[Tensor] = []
    for entry in result:
        if entry is not None:
            flat.extend(_outputs(entry))
    return flat


def _differs(what: str, sizes: Mapping[str, int]) -> TraceException:
    text = ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "the example's sizes"
    return TraceException(
        TraceErrorKind.INVALID_USAGE,
        f"verify at {text}: {what}; the model decides from something that the trace did not see "
        "(global state, a size remembered from elsewhere), or this is a defect of the tracer",
    )


def _complete(model: TracedModel, sizes: Mapping[str, int]) -> dict[str, int]:
    unknown = [name for name in sizes if name not in model.axes]
    if unknown:
        known = ", ".join(model.axes) or "none"
        raise TraceException(
            TraceErrorKind.INVALID_USAGE,
            f"verify: there is no symbolic axis {unknown[0]!r}; the axes are {known}",
        )
    return {name: sizes.get(name, example) for name, example in model.example_sizes.items()}


def _candidates(model: TracedModel, number: int) -> Iterator[dict[str, int]]:
    """Sizes for a run, permitted and other than the example's.

    Those of the first run start at the least permitted sizes, those of later ones above the
    example's, all distinct. They grow until the model takes them and all guards hold.
    """
    for step in _STEPS:
        sizes = {
            name: _size(model, name, position, number, step)
            for position, name in enumerate(model.axes)
        }
        if all(guard.holds(sizes) for guard in model.guards):
            yield sizes


def _size(model: TracedModel, name: str, position: int, number: int, step: int) -> int:
    axis, example = model.axes[name], model.example_sizes[name]
    multiple = axis.multiple
    least = max(1 if axis.minimum is None else axis.minimum, 1)
    first = -(-least // multiple)
    start = first if number == 0 else example // multiple + 2 * number - 1 + position
    units = start + step
    if axis.maximum is not None:
        span = axis.maximum // multiple - first + 1
        units = first + (units - first) % max(span, 1)
    if units * multiple == example:
        units += 1 if axis.maximum is None or (units + 1) * multiple <= axis.maximum else 0
    return units * multiple


def _random_inputs(model: TracedModel, sizes: Mapping[str, int], seed: int) -> list[Tensor]:
    """Fresh values within the range of each example, all different from one another."""
    made: list[Tensor] = []
    for number, (axes, example) in enumerate(zip(model.input_axes, model.examples, strict=True)):
        shape = tuple(
            extent if isinstance(extent, int) else extent.evaluate(sizes) for extent in axes
        )
        made.append(Tensor(_random(shape, example, seed * 100 + number)))
    return made


def _random(shape: tuple[int, ...], example: Array, seed: int) -> Array:
    dtype = example.dtype
    if dtype == "bool":
        return _drawn("RandomBernoulli", shape=shape, p=0.5, seed=seed, dtype=dtype)
    low, high = _range(example)
    if dtype.startswith(("int", "uint")):
        bounds = {"low": int(low), "high": int(high) + 1}
        return _drawn("RandomIntegers", shape=shape, seed=seed, dtype=dtype, **bounds)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    drawn = _drawn("RandomUniform", shape=shape, low=low, high=high, seed=seed, dtype=wide)
    return drawn if wide == dtype else _only(Kernel("Cast", to=dtype)(drawn))


def _drawn(kernel: str, **attributes: Any) -> Array:
    return _only(Kernel(kernel, counter=0, **attributes)())


def _only(result: Array | tuple[Array, ...]) -> Array:
    return result if isinstance(result, Array) else result[0]


def _range(example: Array) -> tuple[float, float]:
    """Least and greatest finite value of an example; a constant one is widened."""
    flat = [number for number in _flat(example) if abs(number) < 1e30]
    low, high = (min(flat), max(flat)) if flat else (-1.0, 1.0)
    if low == high and example.dtype.startswith(("float", "bfloat")):
        return low - 1.0, high + 1.0
    return low, high


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    from onemodel_tensors.interop import from_numpy

    return from_numpy(value)
