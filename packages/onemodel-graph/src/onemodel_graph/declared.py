"""The graph of a session as it was loaded, without the weights that passes have replaced.

A pass that folds one operator into another makes new weights. Where the session itself read the old
ones from a file, it gives them back, and reads them again if somebody asks for the graph.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from pathlib import Path

from onemodel_graph.format import is_v1
from onemodel_graph.ir import Graph, Model
from onemodel_graph.loading import load
from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError
from onemodel_kernels.forking import new_in_child

LEAST = 1 << 20
"""Replaced weights of fewer bytes than this are kept."""


class Declared:
    """A loaded graph.

    Args:
        source: What :func:`onemodel_graph.load` takes.

    Attributes:
        graph: The graph; it lacks the weights that :meth:`release` gave back.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes | Model | Graph) -> None:
        self._path = Path(source) if isinstance(source, str | os.PathLike) else None
        self._file = None if self._path is None else _identity(self._path)
        self.graph = load(source).graph
        self._released: frozenset[str] = frozenset()
        self._names = tuple(self.graph.initializers)
        self._lock = new_in_child(threading.Lock())

    def release(self, used: Collection[Array]) -> None:
        """Gives back the weights that are not among the arrays that a session goes on to use."""
        if self._path is None or self._file is None:
            return
        kept = {id(array) for array in used}
        held = self.graph.initializers
        unused = {name: array for name, array in held.items() if id(array) not in kept}
        size = sum(array.nbytes for array in unused.values())
        # More than the file holds stands beside it, and may change without it.
        if not LEAST <= size <= self._file[0]:
            return
        self._released = frozenset(unused)
        self.graph.initializers = {n: held[n] for n in self._names if n not in unused}

    def whole(self) -> Graph:
        """The graph with all its weights.

        Raises:
            AttributeValueError: when weights are to be read again, and the file is another one.
        """
        with self._lock:
            if self._released:
                assert self._path is not None
                if _identity(self._path) != self._file:
                    raise AttributeValueError(
                        f"Session.graph: the weights that passes replaced are read again, but "
                        f"{str(self._path)!r} is not the file that the session was made of; "
                        "load the model with onemodel_graph.load before"
                    )
                again = load(self._path).graph.initializers
                held = self.graph.initializers
                self.graph.initializers = {
                    name: again[name] if name in self._released else held[name]
                    for name in self._names
                }
                self._released = frozenset()
            return self.graph


def _identity(path: Path) -> tuple[int, ...] | None:
    """Size, and what else tells a file of ONNX from one in its place.

    ``None`` for format v1, whose weights are mapped and take no memory of their own.
    """
    try:
        with path.open("rb") as file:
            if is_v1(file.read(16)):
                return None
            found = os.fstat(file.fileno())
    except OSError:
        return None
    return found.st_size, found.st_ino, found.st_mtime_ns
