"""What ``Kernel.infer`` refuses before a kernel looks at it."""

from __future__ import annotations

import pytest

from onemodel_kernels import Kernel
from onemodel_kernels.errors import DtypeError, MemoryLimitError, ShapeError


@pytest.mark.parametrize("shape", [(2**62, 4), (2**40, 2**40), (2**61,), (0, 2**40, 2**40)])
def test_a_shape_that_no_array_has_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(MemoryLimitError, match="Add: expected an element count"):
        Kernel("Add").infer([("float32", shape), ("float32", shape)])


def test_too_many_axes_and_unknown_types_are_refused() -> None:
    with pytest.raises(ShapeError, match="at most 32 axes"):
        Kernel("Add").infer([("float32", (1,) * 33), ("float32", (1,))])
    with pytest.raises(DtypeError, match="Add"):
        Kernel("Add").infer([("complex64", (1,)), ("complex64", (1,))])


def test_the_largest_shape_that_fits_is_inferred() -> None:
    shape = (2**60,)
    assert Kernel("Add").infer([("int8", shape), ("int8", shape)]) == [("int8", shape)]
