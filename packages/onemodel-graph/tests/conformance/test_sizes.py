"""Plans made from a plan of other sizes, on the models of ONNX's backend suite."""

import collections
import itertools

import numpy as np
import onnx
import pytest
import suite
from onnx import numpy_helper

from onemodel_graph import Session
from onemodel_graph.planning.replanning import Outlines
from onemodel_kernels.errors import OneModelError

LARGEST = 20_000
"""Elements of an input that is still grown."""
PARTS = 4
LEAST = 0.85
"""Share of the core cases with several sizes that are planned from an outline."""


def resized(case):
    """The model with open extents, and inputs of several sizes.

    Inputs that read as operands become constants.
    """
    model = onnx.load_from_string(case.model)
    given = case.data_sets[0][0]
    if len(given) != len(model.graph.input) or not all(isinstance(x, np.ndarray) for x in given):
        return None
    feeds = {}
    kept = []
    for value, array in zip(list(model.graph.input), given, strict=True):
        if array.ndim <= 1 and array.dtype.kind in "iub" and len(given) > 1:
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            continue
        kept.append(value)
        feeds[value.name] = array
        for extent in value.type.tensor_type.shape.dim:
            extent.Clear()
    if not feeds or max(array.size for array in feeds.values()) > LARGEST:
        return None
    del model.graph.input[:]
    model.graph.input.extend(kept)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model.SerializeToString(), list(sizes(feeds))


def sizes(feeds):
    """Each axis grown for all inputs and for the first one, and cut to one element and to none."""
    yield feeds
    for axis in range(max(array.ndim for array in feeds.values())):
        first = next(iter(feeds))

        def changed(function, only=None, axis=axis):
            return {
                name: function(array) if array.ndim > axis and only in (None, name) else array
                for name, array in feeds.items()
            }

        yield changed(lambda a, axis=axis: np.concatenate([a, a], axis))
        yield changed(lambda a, axis=axis: np.concatenate([a, a, a], axis), first)
        for count in (1, 0):
            yield changed(lambda a, n=count, axis=axis: a.take(range(min(n, a.shape[axis])), axis))


def outcome(session, feeds):
    """The bits of the outputs, or the error."""
    try:
        return [
            (y.dtype, y.shape, y.tolist() if y.dtype == object else y.tobytes())
            if isinstance(y, np.ndarray)
            else str(y)
            for y in session.run(feeds)
        ]
    except OneModelError as error:
        return f"{type(error).__name__}: {error}"


def repeated(case, monkeypatch):
    """Runs a case in many sizes; whether some were planned from an outline."""
    found = resized(case)
    if found is None:
        return None
    model, variants = found
    try:
        # One plan is kept, so that every other size is planned again.
        shared = Session(model, mode="fast", plans=1)
    except OneModelError:
        return None
    used = []
    plain = Outlines.program

    def noting(self, values):
        made = plain(self, values)
        used.append(made is not None)
        return made

    monkeypatch.setattr(Outlines, "program", noting)
    wanted = [outcome(Session(model, mode="fast"), feeds) for feeds in variants]
    for _ in range(2):
        for feeds, want in zip(variants, wanted, strict=True):
            shapes = [x.shape for x in feeds.values()]
            assert outcome(shared, feeds) == want, (case.name, shapes)
    fine = sum(not isinstance(want, str) for want in wanted)
    return any(used) if fine > 1 else None


@pytest.mark.parametrize("part", range(PARTS))
def test_other_sizes_get_the_bits_of_a_fresh_session(part, monkeypatch):
    core = collections.Counter()
    for case in itertools.islice(suite.load(), part, None, PARTS):
        if case.group in ("random", "training", "image"):
            continue
        with monkeypatch.context() as patched:
            used = repeated(case, patched)
        if case.group == "core" and used is not None:
            core[used] += 1
    assert core[True] >= LEAST * core.total(), core
