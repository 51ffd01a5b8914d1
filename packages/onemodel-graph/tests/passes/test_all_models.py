"""In exact mode no pass changes a bit: every model of the backend suite, with and without passes."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))

import suite

import onemodel_graph as og
from onemodel_kernels.errors import OneModelError

#: What is drawn anew in each run.
RANDOM = {"random"}


def bits(outputs):
    found = []
    for value in outputs:
        if isinstance(value, list):
            found.append(bits(value))
        elif value is None:
            found.append(None)
        else:
            array = np.asarray(value)
            held = array.tolist() if array.dtype == object else array.tobytes()
            found.append((str(array.dtype), array.shape, held))
    return found


@pytest.mark.slow
def test_passes_change_no_bit_in_exact_mode():
    compared, changed = 0, []
    for case in suite.load():
        if case.group in RANDOM:
            continue
        try:
            plain = og.Session(case.model, "exact", optimise=False)
            wanted = [bits(plain.run(*inputs)) for inputs, _ in case.data_sets]
        except OneModelError:
            continue
        session = og.Session(case.model, "exact")
        got = [bits(session.run(*inputs)) for inputs, _ in case.data_sets]
        compared += 1
        if got != wanted:
            changed.append(case.name)
    assert not changed
    assert compared > 1600
