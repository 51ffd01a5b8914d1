"""What a trace refuses, and where in the user's code it happened."""

from __future__ import annotations

import enum
import sys
import sysconfig
from functools import cache
from types import FrameType

from onemodel_kernels.errors import OneModelError
from onemodel_tensors import recording

__all__ = ["TraceErrorKind", "TraceException", "user_location"]

_OWN_PACKAGES = frozenset(
    {
        "onemodel_kernels",
        "onemodel_tensors",
        "onemodel_graph",
        "onemodel_trace",
        "onemodel_training",
        "numpy",
    }
)


class TraceErrorKind(enum.Enum):
    """Why a trace refused something."""

    DATA_DEPENDENT = "data dependent"
    """Python read a value of a traced tensor: what it decides would be frozen."""

    IN_PLACE_MUTATION = "in-place mutation"
    """A traced tensor, or a constant that the graph holds, was written into."""

    NO_GRAD_IN_TRACE = "no_grad in trace"
    """``no_grad`` or ``inference_mode`` was entered: results inside would be frozen."""

    SYMBOLIC_SHAPE = "symbolic shape"
    """A symbolic axis reached something that cannot express it for every size."""

    INVALID_USAGE = "invalid usage"
    """The tracer was used in a way that has no meaning."""

    UNSUPPORTED_OPERATION = "unsupported operation"
    """An operator that no inference graph of the opset can express."""


class TraceException(OneModelError):
    """A trace refused a call.

    The tracer of the calling thread remembers it: a program that catches it and goes on another way
    than its eager run cannot be finished.

    Args:
        kind: Why.
        message: Operator or read, tensor, what was expected, what came and what to do.
        location: The user's ``file:line``; found on the stack when it is None.

    Attributes:
        kind: Why.
        location: The user's ``file:line``, or None when only library code is on the stack.
    """

    def __init__(self, kind: TraceErrorKind, message: str, location: str | None = None) -> None:
        self.kind = kind
        self.location = location if location is not None else user_location()
        place = f" [{self.location}]" if self.location else ""
        super().__init__(f"{kind.name}: {message}{place}")
        note = getattr(recording.active_recorder(), "note_refusal", None)
        if note is not None:
            note(self)


def user_location() -> str | None:
    """``file:line`` of the innermost frame that is neither the library's nor the standard library's."""
    frame: FrameType | None = sys._getframe(1)
    standard = _standard_library()
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        filename = frame.f_code.co_filename
        inner = filename.startswith("<") and package in ("", "importlib")
        if package not in _OWN_PACKAGES and not inner and not _is_standard(filename, standard):
            return f"{filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None


@cache
def _standard_library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return paths["stdlib"], paths["platstdlib"]


def _is_standard(filename: str, standard: tuple[str, ...]) -> bool:
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    return filename.startswith(standard)
