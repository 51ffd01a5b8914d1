"""Random chains of operators on symbolic axes: traced once, run at random sizes; refused or right.

``nox -s fuzz-trace`` runs thousands.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_kernels.errors import OneModelError
from onemodel_trace import TraceException, Tracer
from onemodel_trace.testing import all_cases

CASES = {case.name: case for case in all_cases() if len(case.inputs) == 1}
SHAPES = ((3, 5), (2, 4, 9, 11), (2, 3, 6), (3, 4, 6))
PLAIN_ERRORS = (OneModelError, TypeError, ValueError, IndexError, ArithmeticError)


def first(found):
    return found if isinstance(found, om.Tensor) else first(found[0])


def run(chain, x):
    for name in chain:
        x = first(CASES[name].function(x))
    return x


def values(shape, seed):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.sampled_from(SHAPES),
    st.lists(st.sampled_from(list(CASES)), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.lists(
        st.lists(st.integers(1, 8), min_size=4, max_size=4),
        min_size=3,
        max_size=3,
    ),
)
def test_a_chain_is_refused_or_right(shape, chain, symbolic, tried):
    names = tuple(f"s{axis}" if symbolic[axis] else None for axis in range(len(shape)))
    try:
        size = run(chain, om.from_numpy(values(shape, 0))).numel()
    except PLAIN_ERRORS:
        return
    assume(size < 20_000)
    try:
        with Tracer.begin() as tracer:
            x = tracer.input("x", om.from_numpy(values(shape, 0)), axis_names=names)
            traced = tracer.finish({"y": run(chain, x)})
    except TraceException:
        return
    session = Session(traced.graph, mode="exact")
    for number, entry in enumerate([shape, *tried]):
        sizes = [entry[axis] if name else shape[axis] for axis, name in enumerate(names)]
        given_values = values(sizes, number)
        permitted = dict(zip(names, sizes, strict=True))
        if not all(guard.holds(permitted) for guard in traced.guards):
            with pytest.raises(OneModelError, match="holds only where"):
                session.run(given_values)
            continue
        try:
            expected = run(chain, om.from_numpy(given_values)).detach().numpy()
        except PLAIN_ERRORS:
            with pytest.raises(OneModelError):
                session.run(given_values)
            continue
        (found,) = session.run(given_values)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), (chain, sizes)
        assert found.tobytes() == expected.tobytes(), (chain, sizes)
