"""Locks that a forked child does not wait for.

A child has the thread that forked and no other. A lock that another thread held stays held in the
child for ever, unless it is made new there.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

__all__ = ["new_in_child"]

Lock = TypeVar("Lock")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_in_child(lock: Lock) -> Lock:
    """Have every forked child begin with this lock free, and return the lock.

    What the lock guards must be whole after every single step that is taken under it, as it is for
    a dictionary that is read and set: the child goes on from the step at which its parent forked.

    Args:
        lock: a ``threading.Lock`` or ``threading.RLock``.
    """
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
