"""Symbolic axis sizes: their algebra, and the proxy that Python sees."""

from onemodel_trace.extents.expression import Expression
from onemodel_trace.extents.extent import Extent, unwrap, wrap_shape
from onemodel_trace.extents.scope import Axis, ExtentScope, Guard
from onemodel_trace.extents.symbolic import SymbolicExtent, SymbolicShapeError, expression_of

__all__ = [
    "Axis",
    "Expression",
    "Extent",
    "ExtentScope",
    "Guard",
    "SymbolicExtent",
    "SymbolicShapeError",
    "expression_of",
    "unwrap",
    "wrap_shape",
]
