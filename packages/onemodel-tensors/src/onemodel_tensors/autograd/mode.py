"""Whether operators record for the backward pass: a setting of the context, not of the process.

The setting lives in a :class:`contextvars.ContextVar`, so other threads and other asynchronous tasks do not see it.
That is not enough for generators, whose body runs in the context of whoever resumes it: a ``with no_grad():`` inside a
generator would stay in force for its consumer between two items. A setting entered by a generator or coroutine is
therefore bound to that frame, and counts only while the frame is on the stack.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, TypeVar, overload

from onemodel_tensors import recording

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]

Function = TypeVar("Function", bound=Callable[..., Any])

_SUSPENDING = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class _Entry:
    """One entered setting. ``frame`` is set when a suspending frame entered it; ``inside`` when others had."""

    __slots__ = ("enabled", "frame", "inside")

    def __init__(self, enabled: bool, frame: FrameType | None, inside: tuple[_Entry, ...]) -> None:
        self.enabled = enabled
        self.frame = frame
        self.inside = inside


_entries: ContextVar[tuple[_Entry, ...] | None] = ContextVar("onemodel_grad_mode", default=None)
current_entries = _entries.get
"""``None`` while nothing was entered in this context: with no frame-bound entry either, recording is enabled."""

bound_entries: dict[FrameType, list[_Entry]] = {}
"""What generators and coroutines have entered, by frame, for all threads: a frame runs on one at a time."""


def is_grad_enabled() -> bool:
    """Whether operators called here and now record for the backward pass."""
    entries = current_entries()
    top = entries[-1] if entries else None
    if bound_entries:
        bound = _innermost_bound(sys._getframe(1))
        if bound is not None and (top is None or bound not in top.inside):
            return bound.enabled
    return top is None or top.enabled


def _innermost_bound(frame: FrameType | None) -> _Entry | None:
    while frame is not None:
        entries = bound_entries.get(frame)
        if entries:
            return entries[-1]
        frame = frame.f_back
    return None


def _all_bound(frame: FrameType | None) -> tuple[_Entry, ...]:
    found: list[_Entry] = []
    while frame is not None:
        found += bound_entries.get(frame, ())
        frame = frame.f_back
    return tuple(found)


def _enter(enabled: bool, frame: FrameType | None) -> _Entry:
    inside = _all_bound(frame) if bound_entries else ()
    if frame is not None and frame.f_code.co_flags & _SUSPENDING:
        entry = _Entry(enabled, frame, inside)
        bound_entries.setdefault(frame, []).append(entry)
    else:
        entry = _Entry(enabled, None, inside)
        _entries.set((*(current_entries() or ()), entry))
    return entry


def _leave(entry: _Entry) -> None:
    if entry.frame is None:
        remaining = tuple(other for other in current_entries() or () if other is not entry)
        _entries.set(remaining or None)
        return
    entries = bound_entries.get(entry.frame, [])
    if entry in entries:
        entries.remove(entry)
    if not entries:
        bound_entries.pop(entry.frame, None)
    entry.frame = None


class GradMode:
    """A grad-mode setting: a context manager, and a decorator of functions, generators and coroutines."""

    def __init__(self, name: str, enabled: bool) -> None:
        self._name = name
        self._enabled = enabled
        self._entered: list[_Entry] = []

    def __enter__(self) -> None:
        if not self._enabled and recording.active:
            recorder = recording.active_recorder()
            if recorder is not None:
                recorder.before_no_grad(self._name)
        self._entered.append(_enter(self._enabled, sys._getframe(1)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _leave(self._entered.pop())

    def __call__(self, function: Function) -> Function:
        """Decorate: the setting holds whenever the function's own body runs, and never between two items it yields."""
        name, enabled = self._name, self._enabled
        wrapper: Callable[..., Any]
        if inspect.isasyncgenfunction(function):

            async def over_async_items(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
                with GradMode(name, enabled):
                    async for item in function(*args, **kwargs):
                        yield item

            wrapper = over_async_items
        elif inspect.iscoroutinefunction(function):

            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with GradMode(name, enabled):
                    return await function(*args, **kwargs)

            wrapper = awaited
        elif inspect.isgeneratorfunction(function):

            def over_items(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with GradMode(name, enabled):
                    return (yield from function(*args, **kwargs))

            wrapper = over_items
        else:

            def called(*args: Any, **kwargs: Any) -> Any:
                with GradMode(name, enabled):
                    return function(*args, **kwargs)

            wrapper = called
        return functools.wraps(function)(wrapper)  # type: ignore[return-value]


@contextmanager
def unrecorded() -> Generator[None]:
    """No recording for the library's own calls inside; unlike :func:`no_grad`, allowed while a trace records."""
    # The body runs in a generator of its own: the setting belongs to the context, not to that frame.
    entry = _Entry(False, None, _all_bound(sys._getframe(1)) if bound_entries else ())
    _entries.set((*(current_entries() or ()), entry))
    try:
        yield
    finally:
        _leave(entry)


class SetGradMode(GradMode):
    """``set_grad_enabled``: in force from the call on; as a context manager, until the end of its block."""

    def __init__(self, enabled: bool) -> None:
        super().__init__(f"set_grad_enabled({enabled})", enabled)
        if not enabled and recording.active:
            recorder = recording.active_recorder()
            if recorder is not None:
                recorder.before_no_grad(self._name)
        self._stated: _Entry | None = _enter(enabled, None)

    def _retract(self) -> None:
        if self._stated is not None:
            _leave(self._stated)
            self._stated = None

    def __enter__(self) -> None:
        self._retract()
        self._entered.append(_enter(self._enabled, sys._getframe(1)))

    def __call__(self, function: Function) -> Function:
        """Decorate, as every grad mode does."""
        self._retract()
        return super().__call__(function)


@overload
def no_grad() -> GradMode: ...
@overload
def no_grad(function: Function) -> Function: ...
def no_grad(function: Function | None = None) -> GradMode | Function:
    """A context manager or decorator in which operators record nothing.

    The setting holds for the calling thread and asynchronous task only; entered inside a generator it does not hold for
    the generator's consumer.

    Raises:
        OneModelError: (a recorder's own) while a trace records: results computed inside would be frozen.
    """
    mode = GradMode("no_grad", False)
    return mode if function is None else mode(function)


@overload
def enable_grad() -> GradMode: ...
@overload
def enable_grad(function: Function) -> Function: ...
def enable_grad(function: Function | None = None) -> GradMode | Function:
    """The opposite of :func:`no_grad`, for use inside it."""
    mode = GradMode("enable_grad", True)
    return mode if function is None else mode(function)


def inference_mode(mode: bool = True) -> GradMode:
    """The same as :func:`no_grad` (``mode=True``) or no change of kind (``mode=False`` enables recording)."""
    return GradMode("inference_mode", not mode)


def set_grad_enabled(mode: bool) -> SetGradMode:
    """Set recording from here on in this context; as a context manager, restore it at the end of the block."""
    return SetGradMode(mode)
