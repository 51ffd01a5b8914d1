"""Errors of all OneModel packages: each also is the builtin that a caller would expect.

Every message reads: operator (node or tensor): expected …, got ….
"""


class OneModelError(Exception):
    """Base of every error that OneModel raises on purpose."""


class ShapeError(OneModelError, ValueError):
    """Shapes, ranks or element counts do not fit."""


class DtypeError(OneModelError, TypeError):
    """An element type is not accepted, or two differ that must agree."""


class AttributeValueError(OneModelError, ValueError):
    """An attribute is missing, unknown, or outside its domain."""


class BoundsError(OneModelError, IndexError):
    """An index, an axis or a range lies outside."""


class MemoryLimitError(OneModelError, MemoryError):
    """An element count overflows or memory is refused."""


class UnsupportedError(OneModelError, ValueError):
    """The operation exists, but not in this combination."""


class UsageError(OneModelError, ValueError):
    """A call is wrong in itself: number of inputs, overlapping or read-only outputs."""


class InterfaceMismatchError(OneModelError, ImportError):
    """Two installed OneModel packages do not fit together."""
