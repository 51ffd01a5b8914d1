"""Random shape programs: traced once, run at random sizes; either refused or right.

A program is a chain of shape operators on one symbolic input whose sizes are taken from x.shape, from
the numbers of the example, or left to -1. Values are consecutive integers, so a wrong reading cannot go
unnoticed. ``nox -s fuzz-trace`` runs thousands.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_kernels.errors import OneModelError
from onemodel_tensors import functional as F
from onemodel_trace import TraceErrorKind, TraceException, Tracer

SHAPES = (("B", 4, 6), ("B", "T", 6), ("T", "B", 8), ("B", "T", "W"), ("B", 3, "T", 4))
EXAMPLES = {"B": 2, "T": 5, "W": 7}
QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level = 4
QUIET.intra_op_num_threads = 1


def merged(x, place, open_end, _):
    """Two neighbouring axes as one."""
    if x.ndim < 2:
        return x.shape
    axis = place % (x.ndim - 1)
    shape = x.shape
    joined = -1 if open_end else shape[axis] * shape[axis + 1]
    return (*shape[:axis], joined, *shape[axis + 2 :])


def halved(x, place, open_end, number):
    """An axis as so many parts of it."""
    axis = place % x.ndim
    shape = x.shape
    rest = -1 if open_end else shape[axis] // number
    return (*shape[:axis], number, rest, *shape[axis + 1 :])


def split_by_size(x, place, open_end, number):
    """An axis by another axis's size, as merged batches are split again."""
    axis, other = place % x.ndim, number % x.ndim
    shape = x.shape
    rest = -1 if open_end else shape[axis] // shape[other]
    return (*shape[:axis], shape[other], rest, *shape[axis + 1 :])


def in_numbers(target):
    """A reshape that the program writes in the numbers of the example, as traced code may."""

    def reshape(x, place, literal, number):
        asked = target(x, place, literal == 2, number)
        plain = [extent if type(extent) is int else extent.example for extent in asked]
        if any("//" in str(extent) for extent in asked):
            raise OneModelError("numbers can stand for products of sizes only")
        return x.reshape(*plain)

    return reshape


def by_sizes(target):
    """The same with the sizes as they are, symbolic ones too."""
    return lambda x, place, literal, number: x.reshape(*target(x, place, literal == 2, number))


OPERATORS = {
    "merge": by_sizes(merged),
    "split": by_sizes(halved),
    "split by size": by_sizes(split_by_size),
    "merge by numbers": in_numbers(merged),
    "split by numbers": in_numbers(halved),
    "split by a size's number": in_numbers(split_by_size),
    "transpose": lambda x, p, q, n: x.transpose(p % x.ndim, n % x.ndim),
    "flatten": lambda x, p, q, n: x.flatten(
        min(p % x.ndim, n % x.ndim), max(p % x.ndim, n % x.ndim)
    ),
    "unsqueeze": lambda x, p, q, n: x.unsqueeze(p % (x.ndim + 1)),
    "squeeze": lambda x, p, q, n: x.squeeze() if q else x,
    "cat": lambda x, p, q, n: om.cat([x, x + 1000], p % x.ndim),
    "slice": lambda x, p, q, n: x[(slice(None),) * (p % x.ndim) + (slice(q, None),)],
    "cut": lambda x, p, q, n: x[(slice(None),) * (p % x.ndim) + (slice(None, -n or None),)],
    "step": lambda x, p, q, n: x[(slice(None),) * (p % x.ndim) + (slice(None, None, n),)],
    "narrow": lambda x, p, q, n: x.narrow(p % x.ndim, 0, x.shape[p % x.ndim] - q),
    "half": lambda x, p, q, n: x.narrow(p % x.ndim, 0, x.shape[p % x.ndim] // 2),
    "select": lambda x, p, q, n: x.select(p % x.ndim, -q if q < 2 else q) if x.ndim > 1 else x,
    "pad": lambda x, p, q, n: F.pad(x, (q, n)),
    "crop": lambda x, p, q, n: F.pad(x, (-q, 1 - n)),
    "reflect": lambda x, p, q, n: F.pad(x.flatten(0, -2), (q, n), mode="reflect"),
    "flip": lambda x, p, q, n: x.flip(p % x.ndim),
    "roll": lambda x, p, q, n: x.roll(q + 1, p % x.ndim),
    "repeat": lambda x, p, q, n: x.repeat(*([1] * (x.ndim - 1)), n),
    "interleave": lambda x, p, q, n: x.repeat_interleave(n, p % x.ndim),
    "sum": lambda x, p, q, n: x.sum(p % x.ndim, keepdim=q == 1) if x.ndim > 1 else x,
    "expand": lambda x, p, q, n: x.unsqueeze(0).expand(n, *x.shape),
    "expand by size": lambda x, p, q, n: x.unsqueeze(0).expand(x.shape[p % x.ndim], *x.shape),
    "add zeros": lambda x, p, q, n: x + om.zeros(*x.shape[p % x.ndim :]),
    "add positions": lambda x, p, q, n: x + om.arange(x.shape[-1]),
    "stack": lambda x, p, q, n: om.stack([x, x * 2], p % (x.ndim + 1)),
    "times size": lambda x, p, q, n: x * x.shape[p % x.ndim],
    "chunk": lambda x, p, q, n: x.chunk(2, p % x.ndim)[0],
    "windows": lambda x, p, q, n: F.max_pool1d(x.flatten(0, -3), n + 1, q + 1) if x.ndim > 2 else x,
    "diagonal": lambda x, p, q, n: x.diagonal(q - 1) if x.ndim > 1 else x,
    "tril": lambda x, p, q, n: x.tril(q - 1) if x.ndim > 1 else x,
    "sort": lambda x, p, q, n: x.sort(p % x.ndim).values,
    "cumsum": lambda x, p, q, n: x.cumsum(p % x.ndim),
}

steps = st.lists(
    st.tuples(
        st.sampled_from(list(OPERATORS)), st.integers(0, 3), st.integers(0, 2), st.integers(1, 4)
    ),
    min_size=1,
    max_size=6,
)
sizes = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 0])


def run(program, x):
    for name, place, literal, number in program:
        x = OPERATORS[name](x, place, literal, number)
        if x._array.size > 20_000 or x.ndim > 7:
            raise OneModelError("the program grows too large to be useful")
    return x


def values(shape):
    return np.arange(1, int(np.prod(shape)) + 1, dtype=np.float32).reshape(shape)


def check(shape, program, tried):
    extents = tuple(EXAMPLES.get(entry, entry) for entry in shape)
    names = tuple(entry if isinstance(entry, str) else None for entry in shape)
    try:
        run(program, om.from_numpy(values(extents)))
    except (OneModelError, ArithmeticError, TypeError):
        return "invalid"
    try:
        with Tracer.begin() as tracer:
            x = tracer.input("x", om.from_numpy(values(extents)), axis_names=names)
            traced = tracer.finish({"y": run(program, x)})
    except TraceException as error:
        assert error.kind is TraceErrorKind.SYMBOLIC_SHAPE, error
        return "refused"
    except OneModelError:
        return "invalid"
    session = Session(traced.graph, mode="exact")
    peer = onnxruntime.InferenceSession(
        traced.to_onnx().SerializeToString(), QUIET, providers=["CPUExecutionProvider"]
    )
    for entry in tried:
        x = values(tuple(entry.get(e, e) for e in shape))
        permitted = all(guard.holds(entry) for guard in traced.guards)
        if not permitted:
            with pytest.raises(OneModelError, match="holds only where"):
                session.run(x)
            continue
        try:
            expected = run(program, om.from_numpy(x)).numpy()
        except (OneModelError, ArithmeticError):
            continue
        (found,) = session.run(x)
        assert found.shape == expected.shape, (program, entry)
        assert found.tobytes() == expected.tobytes(), (program, entry)
        if expected.size and x.size:
            # ONNX Runtime refuses some operators on empty tensors and expands others wrongly.
            try:
                (found,) = peer.run(None, {"x": x})
            except Exception as error:
                assert "Only N can be zero" in str(error), (program, entry)
                continue
            assert found.shape == expected.shape, (program, entry)
            assert found.tobytes() == expected.tobytes(), (program, entry)
    return "right"


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.sampled_from(SHAPES),
    steps,
    st.lists(st.fixed_dictionaries({"B": sizes, "T": sizes, "W": sizes}), min_size=3, max_size=3),
)
def test_a_program_is_refused_or_right(shape, program, tried):
    check(shape, program, [dict(EXAMPLES), *tried])
