"""Codes of texts: the numbers that stand for strings between the inputs and the outputs of a run.

A session gives each text of its model a code; texts that only a run brings get codes of their own,
which end with it. Everything between the inputs and the outputs works on ``int64`` codes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from onemodel_graph.planning.numbers import tensor
from onemodel_kernels import Array
from onemodel_kernels.errors import DtypeError, ShapeError


class Texts:
    """Codes of texts: those of the model for good, others for the run that brings them."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._run = threading.local()

    def constant(self, text: str) -> int:
        """The code of a text of the model."""
        code = self._codes.setdefault(text, len(self._texts))
        if code == len(self._texts):
            self._texts.append(text)
        return code

    @property
    def running(self) -> bool:
        """Whether this thread is in a run."""
        return self._run.__dict__.get("codes") is not None

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """A run of this thread; what it brought is forgotten afterwards."""
        before = self._run.__dict__.get("texts"), self._run.__dict__.get("codes")
        self._run.texts, self._run.codes = [], {}
        try:
            yield
        finally:
            self._run.texts, self._run.codes = before

    def code(self, text: str) -> int:
        """The code of a text in this run: at least 0 for those of the model."""
        found = self._codes.get(text)
        if found is None:
            found = self._run.codes.setdefault(text, -1 - len(self._run.texts))
            if found == -1 - len(self._run.texts):
                self._run.texts.append(text)
        return found

    def encode(self, texts: Sequence[str], shape: Sequence[int]) -> Array:
        """The codes of texts in row-major order."""
        flat: Array = tensor([self.code(text) for text in texts], "int64")
        return flat.view_or_copy(tuple(shape)) if len(shape) != 1 else flat

    def decode(self, codes: Array) -> list[str]:
        """The texts of codes in row-major order."""
        flat = codes.contiguous().view_or_copy((codes.size,)).tolist()
        return [self._texts[c] if c >= 0 else self._run.texts[-1 - c] for c in flat]

    def given(self, value: Any, where: str) -> Array:
        """The codes of an input: an array or nested lists of ``str`` (or UTF-8 ``bytes``).

        Bytes that are no UTF-8 become lone surrogates, as Python's ``surrogateescape`` does it.
        """
        import numpy

        array = numpy.asarray(value, dtype=None if isinstance(value, numpy.ndarray) else object)
        texts = [
            t.decode("utf-8", "surrogateescape") if isinstance(t, bytes) else t
            for t in array.ravel().tolist()
        ]
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None or isinstance(value, Array):
            raise DtypeError(f"{where}: expected strings, got {type(wrong or value).__name__}")
        return self.encode(texts, array.shape)

    def shown(self, codes: Array) -> Any:
        """The texts of an output, as a numpy array of ``object``."""
        import numpy

        found = numpy.empty(codes.size, object)
        found[:] = self.decode(codes)
        return found.reshape(codes.shape)


def labelled(scores: Array, labels: Sequence[Any]) -> list[dict[Any, float]]:
    """What ZipMap makes of scores ``(N, labels)``: a dict for each row."""
    if scores.ndim not in (1, 2) or scores.shape[-1] != len(labels):
        raise ShapeError(f"ZipMap: expected scores of shape (N, {len(labels)}), got {scores.shape}")
    rows = scores.tolist() if scores.ndim == 2 else [scores.tolist()]
    return [dict(zip(labels, row, strict=True)) for row in rows]
