"""Kernels that may write over an input give the bits that they give elsewhere."""

import pytest

from onemodel_kernels import Array, Kernel
from onemodel_kernels.testing import FAMILIES, cases_of


@pytest.mark.parametrize("family", FAMILIES)
def test_an_input_in_an_outputs_place_changes_no_bit(family):
    checked = 0
    for case in cases_of(family):
        kernel = Kernel(case.operator, **case.attributes)
        given = [None if x is None else Array.from_numpy(x) for x in case.inputs]
        for source, target in kernel.in_place:
            if source >= len(given) or given[source] is None:
                continue
            types = kernel.infer([None if a is None else (a.dtype, a.shape) for a in given])
            want = [Array.full(shape, 0, dtype) for dtype, shape in types]
            kernel.run_into(want, given)
            own = given[source].copy()
            if (own.dtype, own.shape) != tuple(types[target]):
                continue
            outputs = [Array.full(shape, 0, dtype) for dtype, shape in types]
            outputs[target] = own
            inputs = [*given[:source], own, *given[source + 1 :]]
            kernel.run_into(outputs, inputs)
            found, expected = ([y.tobytes() for y in arrays] for arrays in (outputs, want))
            assert found == expected, (case.operator, case.name, (source, target))
            checked += 1
    if not checked:
        pytest.skip("no kernel of the family writes over an input")
