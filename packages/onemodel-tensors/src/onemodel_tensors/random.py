"""Random numbers from a counter-based generator: the same on every machine, instruction set and thread count.

Each draw is a function of the generator's seed and of how many draws there were before (Philox4x32-10; Salmon et al.,
Parallel random numbers: as easy as 1, 2, 3, 2011). So a generator's state is two integers.
"""

from __future__ import annotations

import threading
from typing import Any

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.forking import new_in_child
from onemodel_tensors import recording
from onemodel_tensors.devices import require_cpu
from onemodel_tensors.dtypes import FLOATING, dtype_of, get_default_dtype
from onemodel_tensors.ops.comparison import lt
from onemodel_tensors.ops.in_place import before_write, write
from onemodel_tensors.ops.sizes import listed, sizes_of
from onemodel_tensors.tensor import Tensor

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]

_SEEDS = 2**63


class Generator:
    """A stream of random numbers.

    Args:
        seed: which stream.
    """

    def __init__(self, seed: int = 0) -> None:
        self._lock = new_in_child(threading.Lock())
        self._seed = int(seed) % _SEEDS
        self._counter = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed from its beginning, and return the generator.

        Raises:
            OneModelError: (a recorder's own) while a trace records.
        """
        _ask_recorder("manual_seed()")
        with self._lock:
            self._seed = int(seed) % _SEEDS
            self._counter = 0
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self._seed

    def get_state(self) -> tuple[int, int]:
        """The seed, and how many draws there were since."""
        return self._seed, self._counter

    def set_state(self, state: tuple[int, int]) -> Generator:
        """Continue where :meth:`get_state` was called, and return the generator.

        Raises:
            AttributeValueError: the state is no pair of integers that are not negative.
            OneModelError: (a recorder's own) while a trace records.
        """
        _ask_recorder("set_state()")
        seed, counter = state
        if int(seed) < 0 or int(counter) < 0:
            raise AttributeValueError(
                f"set_state: expected a seed and a count of at least 0, got {state}"
            )
        with self._lock:
            self._seed, self._counter = int(seed), int(counter)
        return self

    def take(self, what: str) -> tuple[int, int]:
        """The seed and the number of the next draw.

        Raises:
            OneModelError: (a recorder's own) while a trace records: a sample would be frozen.
        """
        _ask_recorder(what)
        with self._lock:
            start = self._counter
            self._counter += 1
            return self._seed, start

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, draws={self._counter})"


def _ask_recorder(what: str) -> None:
    if recording.active:
        recorder = recording.active_recorder()
        if recorder is not None:
            recorder.before_random(what)


default_generator = Generator()
"""The generator of every function here that is given none."""


def manual_seed(seed: int) -> Generator:
    """Start the default generator's stream of a seed from its beginning."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator from the operating system, and return the seed."""
    import secrets

    value = secrets.randbelow(_SEEDS)
    default_generator.manual_seed(value)
    return value


def get_rng_state() -> tuple[int, int]:
    """The default generator's state."""
    return default_generator.get_state()


def set_rng_state(state: tuple[int, int]) -> None:
    """Set the default generator's state."""
    default_generator.set_state(state)


def draw(
    name: str, shape: tuple[int, ...], generator: Generator | None, what: str, **attributes: Any
) -> Array:
    """The array that a random kernel gives for the next numbers of a generator."""
    start = (generator or default_generator).take(what)
    return Kernel(name, shape=shape, seed=start[0], counter=start[1], **attributes)()  # type: ignore[no-any-return]


def _float(dtype: Any) -> str:
    return get_default_dtype() if dtype is None else dtype_of(dtype)


def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    **given: Any,
) -> Tensor:
    """Numbers evenly distributed in [0, 1).

    Args:
        size: the extents, as ints or as one sequence.
        generator: the default one if ``None``.
        dtype: float32 or float64.
        requires_grad: whether gradients are to be computed for it.
        device: accepted where it is ``"cpu"``.
        given: the extents as ``size=…``.

    Determinism: given by the generator's state.
    """
    if given:
        size = listed(size, given, "size", "rand")
    require_cpu(device, "rand")
    return Tensor(
        _uniform(sizes_of(size), 0.0, 1.0, _float(dtype), generator, "rand()"), requires_grad
    )


def _uniform(
    shape: tuple[int, ...],
    low: float,
    high: float,
    dtype: str,
    generator: Generator | None,
    what: str,
) -> Array:
    return draw(
        "RandomUniform", shape, generator, what, low=float(low), high=float(high), dtype=dtype
    )


def _gauss(
    shape: tuple[int, ...],
    mean: float,
    std: float,
    dtype: str,
    generator: Generator | None,
    what: str,
) -> Array:
    return draw(
        "RandomNormal", shape, generator, what, mean=float(mean), std=float(std), dtype=dtype
    )


def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    **given: Any,
) -> Tensor:
    """Numbers normally distributed with mean 0 and standard deviation 1; see :func:`rand`."""
    if given:
        size = listed(size, given, "size", "randn")
    require_cpu(device, "randn")
    return Tensor(
        _gauss(sizes_of(size), 0.0, 1.0, _float(dtype), generator, "randn()"), requires_grad
    )


def rand_like(input: Tensor, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """As :func:`rand`, of a tensor's shape and dtype."""
    return Tensor(
        _uniform(input._array.shape, 0, 1, _float(dtype or input.dtype), generator, "rand_like()")
    )


def randn_like(input: Tensor, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """As :func:`randn`, of a tensor's shape and dtype."""
    return Tensor(
        _gauss(input._array.shape, 0, 1, _float(dtype or input.dtype), generator, "randn_like()")
    )


def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
) -> Tensor:
    """Numbers normally distributed; mean and standard deviation are numbers, or tensors that broadcast.

    Raises:
        ShapeError: both are numbers and no size is given.
    """
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        from onemodel_tensors.ops.promotion import operands

        wide = operands("normal", mean, std)
        shape = (wide[0] + wide[1])._array.shape
        return randn(shape, generator=generator, dtype=wide[0].dtype) * wide[1] + wide[0]
    if size is None:
        raise ShapeError("normal: expected a size when mean and std are numbers")
    return Tensor(_gauss(sizes_of((size,)), mean, std, _float(dtype), generator, "normal()"))


def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = "int64",
    device: Any = None,
) -> Tensor:
    """Integers evenly distributed in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises:
        AttributeValueError: the range is empty.
    """
    require_cpu(device, "randint")
    if size is None:
        low, high, size = 0, low, high
    if not low < high:
        raise AttributeValueError(f"randint: expected low < high, got {low} and {high}")
    shape = sizes_of((size,))
    array = draw(
        "RandomIntegers", shape, generator, "randint()", low=int(low), high=int(high), dtype="int64"
    )
    return Tensor(array).to(dtype)


def randint_like(
    input: Tensor, low: int, high: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Integers evenly distributed in [low, high), or [0, low), of the input's shape and dtype."""
    first, end = (0, low) if high is None else (low, high)
    return randint(first, end, input._array.shape, generator=generator, dtype=input.dtype)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = "int64") -> Tensor:
    """The numbers 0 to ``n - 1`` in a random order."""
    start = (generator or default_generator).take("randperm()")
    return Tensor(Kernel("RandomPermutation", n=int(n), seed=start[0], counter=start[1])()).to(
        dtype
    )


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element gives, else 0, in the input's dtype."""
    drawn = Tensor(_uniform(input._array.shape, 0, 1, input.dtype, generator, "bernoulli()"))
    return lt(drawn, input.detach()).to(input.dtype)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Positions along the last axis, drawn with probabilities in proportion to the elements.

    Args:
        input: (K,) or (B, K), not negative.
        num_samples: how many for each row.
        replacement: whether a position may come twice.
        generator: the default one if ``None``.

    Returns:
        (num_samples,) or (B, num_samples), int64.

    Raises:
        AttributeValueError: more samples than positions are asked without replacement.
    """
    from onemodel_tensors.ops.arithmetic import div, neg
    from onemodel_tensors.ops.mathematics import log
    from onemodel_tensors.ops.sorting import topk

    input._before_read("multinomial()")
    weights = input.detach().double()
    rows = weights if weights._array.ndim == 2 else weights.unsqueeze(0)
    count, extent = rows._array.shape
    if not replacement and num_samples > extent:
        raise AttributeValueError(
            f"multinomial: expected at most {extent} samples without replacement"
        )
    if replacement:
        edges = rows.cumsum(-1)
        drawn = rand(count, num_samples, generator=generator, dtype="float64") * edges[:, -1:]
        found = (drawn.unsqueeze(-1) >= edges.unsqueeze(1)).sum(-1).clamp(max=extent - 1)
    else:
        # The smallest of exponential variables of these rates: Efraimidis and Spirakis, 2006.
        times = div(neg(log(1.0 - rand(count, extent, generator=generator, dtype="float64"))), rows)
        found = topk(times, num_samples, -1, largest=False).indices
    return found if weights._array.ndim == 2 else found.squeeze(0)


def _require_float(input: Tensor, what: str) -> None:
    if input._array.dtype not in FLOATING:
        raise AttributeValueError(
            f"{what}: expected a floating-point tensor, got {input._array.dtype}"
        )


def uniform_(
    input: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Write numbers evenly distributed in [a, b) into the tensor, and return it."""
    before_write(input, "uniform_()")
    _require_float(input, "uniform_")
    return write(
        input,
        Tensor(_uniform(input._array.shape, a, b, input.dtype, generator, "uniform_()")),
        "uniform_()",
    )


def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Write normally distributed numbers into the tensor, and return it."""
    before_write(input, "normal_()")
    _require_float(input, "normal_")
    return write(
        input,
        Tensor(_gauss(input._array.shape, mean, std, input.dtype, generator, "normal_()")),
        "normal_()",
    )


def exponential_(
    input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Write exponentially distributed numbers of rate ``lambd`` into the tensor, and return it."""
    from onemodel_tensors.ops.mathematics import log1p

    before_write(input, "exponential_()")
    _require_float(input, "exponential_")
    drawn = _uniform(input._array.shape, 0, 1, input.dtype, generator, "exponential_()")
    return write(input, log1p(-Tensor(drawn)) / -float(lambd), "exponential_()")


def bernoulli_(input: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with probability ``p``, else 0, into the tensor, and return it."""
    before_write(input, "bernoulli_()")
    drawn = Tensor(_uniform(input._array.shape, 0, 1, "float32", generator, "bernoulli_()"))
    return write(input, lt(drawn, float(p)).to(input.dtype), "bernoulli_()")


def random_(
    input: Tensor, low: int = 0, high: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Write integers evenly distributed in [low, high) into the tensor, and return it."""
    before_write(input, "random_()")
    drawn = randint(low, 2**24 if high is None else high, input._array.shape, generator=generator)
    return write(input, drawn.to(input.dtype), "random_()")
